import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { recordEnvelopes } from '../support/envelopes.ts'
import { inChromium } from './chromium.ts'
import { openSite } from './site.ts'

/** Other processes take their time, on a busy machine more of it. */
const eventually = <T>(look: () => T | Promise<T>) => expect.poll(look, { timeout: 15_000 })

inChromium('error reporting', (open) => {
  async function visit() {
    const site = await openSite()
    const recorder = await recordEnvelopes()
    const { context, page } = await open()
    await context.addCookies([{ name: 'session', value: 'canary-cookie', url: site.url }])
    // Every trace is kept, at whatever rate.
    await context.addInitScript('Math.random = () => 0')
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    await page.goto(`${site.url}/play?c=canary-circuit#canary-fragment`)
    await page.waitForFunction('window.platform !== undefined')
    return { site, page, requested, ...recorder }
  }
  const start = (page: Page, dsn: string) =>
    page.evaluate(`platform.start({ dsn: '${dsn}', build: '2026.11.21-abc', environment: 'staging' })`)

  test('without a DSN the SDK is not loaded, and reports are no-ops', async () => {
    const { page, requested } = await visit()
    await page.evaluate(
      `platform.start({ endpoint: '/api/analytics' }); platform.reportError(new Error('x'))`,
    )
    await page.waitForLoadState('networkidle')
    expect(requested.filter((url) => url.includes('errortrack'))).toEqual([])
  })

  test('with a DSN what really goes over the wire is scrubbed and stamped', async () => {
    const { page, dsn, envelopes, raw, requested, site } = await visit()
    await start(page, dsn)
    // Before the SDK has arrived: nothing of it is lost.
    await page.evaluate(
      `platform.reportError(new TypeError('early, at ' + location.href), { email: 'canary@example.com', url: location.href })`,
    )
    await eventually(() => requested.some((url) => url.includes('errortrack'))).toBe(true)
    await page.waitForLoadState('networkidle')
    await page.evaluate(`
      platform.setUserContext({ id: 'user-17', email: 'canary@example.com' })
      history.pushState(null, '', '/play?c=canary-second')
      fetch('/api?c=canary-fetch', { method: 'POST', body: 'canary-body', headers: { 'x-token': 'canary-header' } })
      platform.reportMessage('canary@example.com looked at ' + location.href, 'warning', { cookie: document.cookie })
      setTimeout(() => { throw new RangeError('uncaught at ' + location.href) })
      setTimeout(() => Promise.reject(new URIError('rejected at ' + location.href)))
    `)
    const payloads = () => envelopes.flatMap(({ items }) => items.map(({ payload }) => payload))
    const values = () =>
      payloads().flatMap(
        (payload) => (payload.exception as { values: { value: string }[] } | undefined)?.values ?? [],
      )
    await eventually(() =>
      values()
        .map(({ value }) => value)
        .sort(),
    )
      // A message comes with the place it was sent from, and so looks like an exception.
      .toEqual([
        `[address] looked at ${site.url}/play`,
        `early, at ${site.url}/play`,
        `rejected at ${site.url}/play`,
        `uncaught at ${site.url}/play`,
      ])
    await eventually(() => payloads().some(({ type }) => type === 'transaction')).toBe(true)

    expect(payloads().flatMap(({ breadcrumbs }) => (breadcrumbs as unknown[]) ?? []).length).toBeGreaterThan(
      0,
    )
    expect(raw.flatMap((sent) => [...sent.matchAll(/.{0,80}canary.{0,30}/g)].map(([leak]) => leak))).toEqual(
      [],
    )
    const allowed = new Set(['event', 'transaction'])
    expect(envelopes.flatMap(({ items }) => items.filter(({ header }) => !allowed.has(header.type)))).toEqual(
      [],
    )
    for (const payload of payloads()) {
      expect(payload).toMatchObject({ release: '2026.11.21-abc', environment: 'staging' })
      expect(payload).not.toHaveProperty('request')
    }
    const rates = envelopes.flatMap(
      ({ headers }) => (headers.trace as { sample_rate?: string })?.sample_rate ?? [],
    )
    expect([...new Set(rates)]).toEqual(['0.1'])

    // An objection in another tab stops it at once.
    const other = await page.context().newPage()
    await other.goto(site.url)
    await other.waitForFunction('window.platform !== undefined')
    await other.evaluate('platform.optOut()')
    const before = envelopes.length
    await eventually(() => page.evaluate(`localStorage['platform.optOut']`)).toBe('1')
    await page.evaluate(`
      platform.reportError(new Error('after the objection'))
      setTimeout(() => { throw new Error('after the objection') })
    `)
    await page.goto('about:blank')
    await other.close()
    expect(raw.slice(before).join('\n')).not.toContain('after the objection')
  })
})
