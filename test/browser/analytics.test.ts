import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { inChromium } from './chromium.ts'
import { openSite, type Site } from './site.ts'

const browserPart = fileURLToPath(new URL('../../dist/browser.js', import.meta.url))

/** A little longer than the sender waits for more events. */
const QUIET = 5100

/** Other processes take their time, on a busy machine more of it. */
const eventually = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: 15_000 })

inChromium('analytics', (open) => {
  async function visit({ script = '' } = {}) {
    const site = await openSite()
    const { context, page, errors: faults } = await open()
    if (script) await context.addInitScript(script)
    const visitOn = async (one: Page) => {
      await one.clock.install()
      await one.goto(site.url)
      await ready(one)
      return one
    }
    return {
      site,
      context,
      faults,
      page: await visitOn(page),
      open: async () => visitOn(await context.newPage()),
    }
  }

  const ready = (page: Page) => page.waitForFunction('window.platform !== undefined')
  const start = async (page: Page) => {
    await page.evaluate(`platform.start({ endpoint: '/api/analytics' })`)
    // The sender is a chunk of its own: who asks for it later has it later.
    const [chunk] = /chunks\/sender-[\w-]+\.js/.exec(await readFile(browserPart, 'utf8')) ?? []
    await page.evaluate(`import('/dist/${chunk}').then(() => {}, () => {})`)
  }
  const track = (page: Page, count: number, properties = '{}') =>
    page.evaluate(
      `for (let n = 0; n < ${count}; n += 1) platform.track('lesson.viewed', { n, ...${properties} })`,
    )
  const items = async (page: Page): Promise<unknown[][]> =>
    (
      (await page.evaluate(
        `Object.keys(localStorage).filter((key) => key.startsWith('platform.event.')).sort().map((key) => localStorage[key])`,
      )) as string[]
    ).map((text) => JSON.parse(text))
  /** Waits until a sender that a timer woke has decided: it asks for the lock first, and this asks after it. */
  const senderRests = (page: Page) => page.evaluate(`navigator.locks.request('platform.send', () => {})`)
  const sentOf = async (page: Page) => (await items(page)).filter((item) => item.length === 4).length
  const bodies = (site: Site) =>
    site.received.map(
      ({ body }) => JSON.parse(body) as { batch: string; events: { properties: { n: number } }[] },
    )

  test.each(['{}', `{ endpoint: ' ', dsn: ' ' }`])(
    'without an endpoint (%s) events stay on the device, sanitised, and there is no cookie',
    async (options) => {
      const { page, site, context, faults } = await visit()
      await page.evaluate(`platform.start(${options})`)
      await page.evaluate(
        `platform.track('lesson.viewed', { lesson: 3, email: 'anna@example.com', note: 'anna@example.com', deep: {} })`,
      )
      await page.evaluate(
        `platform.track('lesson.deleted', {}); platform.track(); platform.track('lesson.viewed', null)`,
      )
      await page.clock.runFor(3_600_000)
      expect(await items(page)).toEqual([['lesson.viewed', expect.any(Number), { lesson: 3 }]])
      expect(site.received).toEqual([])
      expect(await context.cookies()).toEqual([])
      expect(faults).toEqual([])
    },
  )

  test('tracked events reach the real ingest in batches, and are sent once', async () => {
    const { page, site } = await visit()
    const file = path.join(await emptyFolder(), 'store.sqlite')
    const platform = openPlatform({
      env: { STORE_URL: `sqlite:${file}`, ANALYTICS_DATASTORE_TABLE: 'visits' },
    })
    onTestFinished(() => platform.close())
    site.answer = ({ url, headers, body }) =>
      platform.web.fetch(
        new Request(new URL(url, site.url), {
          method: 'POST',
          headers: { 'content-type': String(headers['content-type']) },
          body,
        }),
      )
    await start(page)
    await track(
      page,
      1200,
      `{ topic: 'ünï', email: 'canary', note: 'canary@example.com', nested: { canary: 1 } }`,
    )
    for (const acknowledged of [500, 1000, 1200]) {
      await page.clock.runFor(QUIET)
      await eventually(() => sentOf(page)).toBe(acknowledged)
    }
    expect(site.received.map(({ body }) => body).join()).not.toContain('canary')
    await platform.close()
    const database = new Database(file.replace('.sqlite', '-analytics.sqlite'), { readonly: true })
    onTestFinished(() => void database.close())
    expect(database.prepare('SELECT sum(size) AS events, max(size) AS most FROM visits').get()).toEqual({
      events: 1200,
      most: 500,
    })
    expect((await items(page)).every((item) => item[3] === 1)).toBe(true)
    expect(
      site.received.every(({ headers }) => headers.cookie === undefined && headers.referer === undefined),
    ).toBe(true)
  })

  test('the buffer survives a reload, and what was not acknowledged goes out under the same id', async () => {
    const { page, site } = await visit()
    site.answer = async () => undefined
    await start(page)
    await track(page, 3)
    await page.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBeGreaterThan(0)
    site.answer = async () => new Response('{}', { status: 202 })
    await page.reload()
    await ready(page)
    await start(page)
    await track(page, 1, '{ n: 99 }')
    const seen = site.received.length
    await page.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBe(seen + 1)
    const [first, ...others] = bodies(site)
    for (const body of others) expect(body).toEqual(first)
    await eventually(() => sentOf(page)).toBe(3)
    await page.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBe(seen + 2)
    expect(
      bodies(site)
        .at(-1)
        ?.events.map(({ properties }) => properties.n),
    ).toEqual([99])
  })

  test('waiting events are sent when the visitor leaves', async () => {
    const { page, site } = await visit()
    await start(page)
    await track(page, 2)
    await page.goto('about:blank')
    await eventually(() => site.received.length).toBe(1)
    expect(bodies(site)[0]?.events).toHaveLength(2)
  })

  test('a large backlog leaves with the visitor in one body that outlives the page, and the rest is kept for the next', async () => {
    const { open: openNext, page, site } = await visit()
    await start(page)
    const properties = Array.from({ length: 15 }, (_, n) => `p${n}: '量'.repeat(64)`)
    await track(page, 60, `{ ${properties.join()} }`)
    // The page is gone long before the answer.
    const held = Promise.withResolvers<void>()
    site.answer = async () => {
      await held.promise
      return new Response('{}', { status: 202 })
    }
    await page.close({ runBeforeUnload: true })
    await eventually(() => site.received.length).toBe(1)
    held.resolve()
    const [left] = site.received
    expect(Buffer.byteLength(left?.body ?? '')).toBeLessThan(65_536)
    const next = await openNext()
    await start(next)
    expect(await sentOf(next)).toBe(0)
    for (let call = 0; call < 4; call += 1) {
      const seen = site.received.length
      await next.clock.runFor(QUIET)
      await eventually(() => site.received.length).toBe(seen + 1)
      await eventually(() => next.evaluate(`localStorage['platform.batch']`)).toBeUndefined()
    }
    // The batch whose answer nobody read came again as it was; the others once.
    expect(site.received[1]?.body).toBe(left?.body)
    const numbers = bodies(site)
      .slice(1)
      .flatMap(({ events }) => events.map(({ properties }) => properties.n))
    // Events of the same millisecond have no order.
    expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n))
    await eventually(() => sentOf(next)).toBe(60)
  })

  test('backs off longer and longer from a busy server, and honors its Retry-After', async () => {
    const { page, site } = await visit()
    site.answer = async () => new Response('{}', { status: 503, headers: { 'Retry-After': '600' } })
    await start(page)
    await track(page, 1)
    await page.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBe(1)
    await page.evaluate('new Promise((resolve) => resolve())')
    await page.clock.runFor(590_000)
    expect(site.received.length).toBe(1)
    expect((await items(page))[0]).toHaveLength(3)
    site.answer = async () => new Response('{}', { status: 202 })
    await page.clock.runFor(20_000)
    await eventually(() => site.received.length).toBe(2)
    expect(bodies(site)[1]).toEqual(bodies(site)[0])
  })

  test('a Retry-After of a month does not make a timer that fires at once', async () => {
    const { page, site } = await visit()
    site.answer = async () => new Response('{}', { status: 429, headers: { 'Retry-After': '2678400' } })
    await start(page)
    await track(page, 1)
    const answered = page.waitForEvent('requestfinished')
    await page.clock.runFor(QUIET)
    await answered
    await page.clock.runFor(60_000)
    await senderRests(page)
    expect(site.received.length).toBe(1)
  })

  const FILL = `(() => {
      for (let size = 2 ** 20; size >= 1; size = size > 1 ? Math.floor(size / 2) : 0)
        for (let n = 0; ; n += 1) try { localStorage['x' + size + '.' + n] = 'x'.repeat(size) } catch { break }
    })()`

  test('an objection counts at once in a full storage, and is kept where an event can make room', async () => {
    const { page, site, faults } = await visit()
    await page.evaluate(FILL)
    await start(page)
    await track(page, 3)
    await page.evaluate('platform.optOut()')
    await track(page, 2)
    await page.clock.runFor(60_000)
    await senderRests(page)
    expect(site.received).toEqual([])
    await page.evaluate('localStorage.clear(); platform.optOut(false)')
    await track(page, 3)
    await page.evaluate(FILL)
    await page.evaluate('platform.optOut()')
    expect(await page.evaluate(`localStorage['platform.optOut']`)).toBe('1')
    expect(await items(page)).toHaveLength(2)
    expect(faults).toEqual([])
  })

  test('a full storage costs the page nothing, and what was tracked is still sent', async () => {
    const { page, site, faults } = await visit()
    await page.evaluate(FILL)
    await start(page)
    await track(page, 5)
    expect(await items(page)).toEqual([])
    await page.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBe(1)
    expect(bodies(site)[0]?.events).toHaveLength(5)
    expect(faults).toEqual([])
  })

  test.each([
    [
      'forbidden',
      `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError') } })`,
    ],
    ['absent', `Object.defineProperty(window, 'localStorage', { value: null })`],
    [
      'broken',
      `Object.defineProperty(window, 'localStorage', { value: new Proxy({}, { get() { throw new Error('broken') }, ownKeys() { throw new Error('broken') } }) })`,
    ],
  ])('a storage that is %s costs the page nothing', async (_, script) => {
    const { page, site, faults } = await visit({ script })
    await start(page)
    await track(page, 3)
    await page.evaluate('platform.optOut(); platform.optOut(false)')
    await page.clock.runFor(60_000)
    expect(faults).toEqual([])
    expect(site.received).toEqual([])
  })

  test('two tabs tracking at the same time lose no event and send none twice', async () => {
    const { page: one, open: openNext, site } = await visit()
    const two = await openNext()
    await start(one)
    await start(two)
    await Promise.all([track(one, 200, `{ tab: 1 }`), track(two, 200, `{ tab: 2 }`)])
    // Another process sees what a tab wrote a moment later.
    await eventually(async () => (await items(one)).length).toBe(400)
    await Promise.all([one.clock.runFor(QUIET), two.clock.runFor(QUIET)])
    await eventually(() => sentOf(one)).toBe(400)
    const sent = new Map(bodies(site).map(({ batch, events }) => [batch, events]))
    expect([...sent.values()].flat()).toHaveLength(400)
  })

  test('the ring holds ten thousand events, and the oldest go', async () => {
    const { page } = await visit()
    await track(page, 10_400)
    const left = await items(page)
    expect(left.length).toBeLessThanOrEqual(10_000)
    expect(left.length).toBeGreaterThan(9_700)
    const numbers = left.map((item) => (item[2] as { n: number }).n)
    expect(numbers).toContain(10_399)
  })

  test('an objection stops all tabs at once, also what is under way', async () => {
    const { page: one, open: openNext, site } = await visit()
    const two = await openNext()
    let aborted = false
    site.answer = () => new Promise(() => {})
    two.on('requestfailed', (request) => {
      if (request.url().includes('/api/analytics')) aborted = true
    })
    await start(two)
    await track(two, 1)
    await two.clock.runFor(QUIET)
    await eventually(() => site.received.length).toBe(1)
    expect(aborted).toBe(false)
    await one.evaluate('platform.optOut()')
    await eventually(() => aborted).toBe(true)
    // Another process sees what a tab wrote a moment later.
    await eventually(() => two.evaluate(`localStorage['platform.optOut']`)).toBe('1')
    await track(two, 5)
    await two.clock.runFor(7_200_000)
    expect(await items(two)).toHaveLength(1)
    expect(site.received.length).toBe(1)
    expect(await one.evaluate(`localStorage['platform.optOut']`)).toBe('1')
    await one.evaluate('platform.optOut(false)')
    await eventually(() => two.evaluate(`localStorage['platform.optOut'] === '1'`)).toBe(false)
    await track(two, 2)
    expect(await items(two)).toHaveLength(3)
  })

  test('Global Privacy Control is an objection', async () => {
    const { page, site } = await visit({
      script: `Object.defineProperty(navigator, 'globalPrivacyControl', { value: true })`,
    })
    await page.evaluate(
      `platform.start({ endpoint: '/api/analytics', dsn: location.origin.replace('//', '//key@') + '/1' })`,
    )
    await track(page, 3)
    await page.evaluate(`platform.reportError(new Error('x'))`)
    await page.clock.runFor(60_000)
    expect(await items(page)).toEqual([])
    expect(site.received).toEqual([])
  })
})
