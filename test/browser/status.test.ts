import type { Route } from 'playwright-core'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import type { CountedKind } from '../../src/core/mail/feedback/sending.ts'
import type { History } from '../../src/core/status/history.ts'
import { openHistory, openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { openLearning } from '../support/learning.ts'
import { manyServices } from '../support/many-services.ts'
import { recordLearningDays } from '../support/sample-health.ts'
import { inChromium, SCREENS, screenName, serveWeb } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const NOW = Date.UTC(2026, 10, 21, 7, 26, 34)
const TOKEN = 'a-health-token-of-thirty-two-bytes'
const OPERATOR = { username: 'operator', password: TOKEN }
const someMailer = {
  kind: 'api',
  send: async () => ({ kind: 'sent', id: '' }) as const,
  verify: async () => {},
  close: async () => {},
} as const
/** The figures that the readout of a day covers. */
const OVERLAPS = `(() => {
  const tip = document.querySelector('.tip').getBoundingClientRect()
  return [...document.querySelectorAll('.num, .up')].filter((one) => {
    const box = one.getBoundingClientRect()
    const text = document.createRange()
    text.selectNodeContents(one)
    const ink = text.getBoundingClientRect()
    return box.height > 1 && ink.left < tip.right && tip.left < ink.right && ink.top < tip.bottom && tip.top < ink.bottom
  }).map((one) => one.textContent)
})()`

inChromium('the status page', (open) => {
  afterAll(async () => {
    for (const history of records.values()) await (await history).close()
  })

  type State = 'ok' | 'degraded' | 'failing'
  /** Ninety days take seconds to record; each test only reads them. */
  const records = new Map<State, Promise<History>>()
  async function record(state: State): Promise<History> {
    const history = await openHistory(undefined)
    await recordLearningDays(history, NOW, { state })
    return history
  }

  async function serve(state: State, options: Partial<Parameters<typeof openLearning>[0]> = {}) {
    const recorded = records.get(state) ?? record(state)
    records.set(state, recorded)
    const clock = { ...systemClock, now: () => NOW }
    const env = { HEALTH_DEEP_TOKEN: TOKEN }
    return serveWeb(openLearning({ env, clock, history: await recorded, ...options }))
  }

  test.each([
    { state: 'ok', dark: false, width: 1280 },
    { state: 'degraded', dark: true, width: 1280 },
    { state: 'failing', dark: false, width: 320 },
    { state: 'failing', dark: false, width: 390 },
    { state: 'failing', dark: true, width: 390 },
    { state: 'failing', dark: false, width: 1280 },
  ] as const)(
    'has no accessibility violation and fits its screen %o',
    { timeout: 60_000 },
    async ({ state, dark, width }) => {
      const { page, faults } = await open({ dark, width })
      await page.goto(await serve(state))
      expect(await findingsOf(page)).toEqual([])
      expect(await fitsWidth(page)).toBe(true)
      await keepScreenshot(page, `status-${state}-${screenName({ width, dark })}`)
      expect(faults).toEqual([])
      // Ninety days of each row are drawn, next to each other and within the page.
      for (const bars of await page.locator('main svg.bars[data-line]').all()) {
        const box = await bars.boundingBox()
        expect(box?.height).toBeGreaterThan(15)
        expect(box?.width).toBeGreaterThan(width > 500 ? 300 : 200)
      }
    },
  )

  test.each(SCREENS.flatMap((screen) => ['operator', 'fifty'].map((view) => ({ view, ...screen }))))(
    'the operator view and fifty services fit their screen and leave axe nothing to find %o',
    { timeout: 60_000 },
    async ({ view, ...screen }) => {
      const { page } = await open({ ...screen, extraHTTPHeaders: { Authorization: `Bearer ${TOKEN}` } })
      const url = await serve('failing')
      await page.route('**/fifty', (route) =>
        route.fulfill({ body: manyServices(NOW).page.html, contentType: 'text/html' }),
      )
      await page.goto(view === 'fifty' ? `${url}/fifty` : `${url}/?details`)
      if (view === 'fifty') expect(await page.locator('details.service').count()).toBe(50)
      else await page.getByText('no answer in time').first().waitFor()
      expect(await findingsOf(page)).toEqual([])
      expect(await fitsWidth(page)).toBe(true)
      await keepScreenshot(page, `status-${view}-${screenName(screen)}`)
    },
  )

  test('works without scripts, and shows reasons after the browser asked for the token', async () => {
    const url = await serve('failing')
    const { page } = await open({ javaScriptEnabled: false, httpCredentials: OPERATOR })
    await page.goto(url)
    await page.getByRole('heading', { level: 1, name: /^Mail \(Web\) is failing/ }).waitFor()
    expect(await page.getByText('no answer in time').count()).toBe(0)
    await page.getByRole('link', { name: 'Details for operators' }).click()
    await page.getByText('no answer in time').first().waitFor()
    await page.getByRole('link', { name: 'Back to the public page' }).click()
    await page.getByRole('link', { name: 'Details for operators' }).waitFor()
    expect(await page.getByText('no answer in time').count()).toBe(0)
  })

  /** Two weeks of mail; on one day too many recipients did not exist, and today courses pause. */
  async function storeWithMail(): Promise<Store> {
    const store = await openStore(undefined)
    const on = (daysAgo: number, kind: CountedKind, count: number) => ({
      at: NOW - daysAgo * 24 * 60 * 60 * 1000,
      kind,
      source: kind === 'sent' ? 'api' : 'postmark',
      domain: 'gmail.com',
      count,
    })
    for (let ago = 13; ago >= 0; ago -= 1)
      await store.sending.count([
        on(ago, 'sent', 800 + ago * 17),
        on(ago, 'hard-bounce', ago === 4 ? 61 : 3 + (ago % 4)),
        on(ago, 'soft-bounce', 9),
        ...(ago % 5 === 0 ? [on(ago, 'complaint', ago === 0 ? 6 : 1)] : []),
      ])
    await store.sending.check(NOW)
    return store
  }

  test.each([390, 1280])(
    'shows operators how mail is received, at %i px',
    async (width) => {
      const store = await storeWithMail()
      onTestFinished(() => store.close())
      const url = await serve('ok', { store, mailer: someMailer })
      const { page } = await open({ width, httpCredentials: OPERATOR })
      await page.goto(url)
      expect(await page.getByRole('heading', { name: 'Mail, last 14 days' }).count()).toBe(0)
      await page.goto(`${url}/?details`)
      await page.getByRole('img', { name: /^Hard bounces: 0\.\d\d % \(\d+ of \d+ messages\)/ }).waitFor()
      await page.getByText('Courses are paused').waitFor()
      await page.getByText('By day').click()
      await page.getByRole('row', { name: /^2026-11-17/ }).waitFor()
      expect(await findingsOf(page)).toEqual([])
      expect(await fitsWidth(page)).toBe(true)
      await keepScreenshot(page, `status-mail-${width}`)
    },
    60_000,
  )

  test('a day tells what happened and how long, by mouse, by keyboard and by touch', async () => {
    const url = await serve('failing')
    const { page } = await open({ hasTouch: true })
    await page.goto(url)
    const tip = page.locator('.tip')
    const days = page.getByRole('slider', { name: 'Days of Web', exact: true })
    const box = await days.boundingBox()
    if (box === null) throw new Error('the days are not drawn')
    const today = { x: box.width - 2, y: box.height / 2 }
    await days.hover({ position: today })
    const said = /^21 Nov 2026|^Nov 21, 2026/
    await expect.poll(() => tip.textContent()).toMatch(said)
    expect(await tip.textContent()).toMatch(
      /: failing for \d+ min\. Mail \(Web\) has been failing for 15 minutes/,
    )
    await page.mouse.move(5, 5)
    await expect.poll(() => tip.isVisible()).toBe(false)

    await days.focus()
    for (const key of ['End', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft', 'ArrowLeft'])
      await page.keyboard.press(key)
    await expect.poll(() => days.getAttribute('aria-valuetext')).toMatch(/17.*: degraded for 3 h/)
    expect(await tip.isVisible()).toBe(true)
    await page.keyboard.press('Escape')
    expect(await tip.isVisible()).toBe(false)
    // Back is the browser's own.
    await page.keyboard.press('Alt+ArrowLeft')
    expect(await days.getAttribute('aria-valuenow')).toBe('86')
    expect(await tip.isVisible()).toBe(false)

    await page.getByRole('slider', { name: 'Days of Payments (Web)' }).tap({ position: { x: 3, y: 5 } })
    await expect.poll(() => tip.textContent()).toMatch(/: no data$/)
  })

  test('refreshes itself each minute where the reader is, and says how old it is when it cannot', async () => {
    const url = await serve('ok')
    const { page } = await open()
    await page.clock.install({ time: NOW })
    await page.goto(url)
    await page.getByRole('slider', { name: 'Days of API', exact: true }).focus()
    const worse = await (await fetch(await serve('failing'))).text()
    await page.route('**/', (route) => route.fulfill({ body: worse, contentType: 'text/html' }))
    await page.clock.runFor(61_000)
    await page.getByRole('heading', { level: 1, name: /^Mail \(Web\) is failing/ }).waitFor()
    expect(await page.title()).toMatch(/^Mail \(Web\) is failing/)
    expect(decodeURIComponent((await page.locator('link[rel=icon]').getAttribute('href')) ?? '')).toContain(
      '#b3261e',
    )
    expect(await page.evaluate('document.activeElement.dataset.line')).toBe('api/')
    await page.unroute('**/')
    await page.route('**/', (route) => route.abort())
    await page.clock.runFor(121_000)
    await page.getByText(/^This page is [12] min old/).waitFor()
    expect(await page.getByText('Mail (Web) is failing').count()).toBe(1)
  })

  test('a refresh keeps what a person typed, chose, opened, selected and scrolled to', async () => {
    const url = await serve('ok', { mailer: someMailer })
    const { page } = await open({ height: 700 })
    await page.clock.install({ time: NOW })
    await page.goto(url)
    await page.getByText(/features are off/).click()
    await page.getByText('Subscribe', { exact: true }).first().click()
    await page.locator('#subscribe-status-email').fill('ada@exam')
    const course = page.locator('#subscribe-email')
    await course.fill('grace@example.com')
    await course.focus()
    const place = () =>
      page.evaluate(
        `[Math.round(document.querySelector('#subscribe-email').getBoundingClientRect().top / 4), document.activeElement.id]`,
      )
    const before = await place()
    const worse = await (await fetch(await serve('failing', { mailer: someMailer }))).text()
    await page.route('**/', (route) => route.fulfill({ body: worse, contentType: 'text/html' }))
    await page.clock.runFor(61_000)
    await page.getByRole('heading', { level: 1, name: /^Mail \(Web\) is failing/ }).waitFor()
    // An incident came in above, and nothing moved.
    await expect.poll(place).toEqual(before)
    expect(before).toEqual([expect.any(Number), 'subscribe-email'])
    expect(await course.inputValue()).toBe('grace@example.com')
    expect(await page.locator('#off').getAttribute('open')).not.toBeNull()
    expect(await page.locator('#subscribe-status-email').inputValue()).toBe('ada@exam')
    expect(await page.locator('#subscribe').getAttribute('open')).not.toBeNull()
    const selected = `getSelection().toString()`
    await page.evaluate(`getSelection().selectAllChildren(document.querySelector('#api'))`)
    expect(await page.evaluate(selected)).toBe('API')
    await page.clock.runFor(61_000)
    expect(await page.evaluate(selected)).toBe('API')
  })

  test('the age of the last check goes on, and times are in the zone of the reader with UTC on hover', async () => {
    const { page } = await open({ timezoneId: 'Europe/Vienna' })
    // The clock of the reader is a day off.
    await page.clock.install({ time: NOW + 86_400_000 })
    await page.goto(await serve('failing'))
    const age = page.locator('.verdict time')
    expect(await age.textContent()).toBe('24 seconds ago')
    await page.clock.runFor(8000)
    expect(await age.textContent()).toBe('32 seconds ago')
    const since = page.locator('.incident time').first()
    expect(await since.textContent()).toBe('21 Nov 2026, 08:11 CET')
    expect(await since.getAttribute('title')).toBe('21 Nov 2026, 07:11 UTC')
  })

  test('an incident has a page of its own, and the list of all leads to it', async () => {
    const { page } = await open()
    const url = await serve('failing')
    await page.goto(url)
    await page.getByRole('link', { name: /^Mail \(Web\) has been failing/ }).click()
    expect(new URL(page.url()).pathname).toMatch(/^\/incidents\/web-mail-\d+\.html$/)
    await page.getByRole('heading', { level: 1, name: /^Mail \(Web\) has been failing/ }).waitFor()
    expect(await findingsOf(page)).toEqual([])
    await keepScreenshot(page, 'status-incident')
    await page.goto(`${url}/incidents/index.html`)
    await page.getByRole('link', { name: /^Job store/ }).click()
    await page.getByText('felt by Web and Agent').waitFor()
    await page.getByRole('link', { name: '← Status' }).click()
    expect(new URL(page.url()).pathname).toBe('/')
    expect((await fetch(`${url}/incidents/web-mail-1.html`)).status).toBe(404)
  })

  test.each([1280, 390])('pointing at a day marks it and hides no figure, at %i px', async (width) => {
    const { page } = await open({ width })
    await page.goto(await serve('failing'))
    const tip = page.locator('.tip')
    for (const line of ['web/', 'web/mail', 'api/job_store']) {
      const row = page.locator(`.bars[data-line="${line}"]`)
      await row.focus()
      for (const key of ['Home', 'PageUp', 'End']) {
        await page.keyboard.press(key)
        await expect.poll(() => tip.textContent()).toMatch(/: /)
        expect(await row.locator('.mark').count()).toBe(1)
        expect(await page.evaluate(OVERLAPS)).toEqual([])
      }
    }
    // Hours are told in the legend.
    await page.locator('.hours[data-line="web/"]').focus()
    await page.keyboard.press('End')
    await page.getByText(/^21 Nov 2026, 07:00–08:00/).waitFor()
    await keepScreenshot(page, `status-hour-${width}`)
    await page.keyboard.press('Escape')
    await page.getByText('Response times, last 24 hours').first().waitFor()
  })

  test.each([
    ['a server that hangs', () => new Promise<void>(() => {})],
    [
      'a page of the proxy in front',
      (route: Route) => route.fulfill({ body: '<main>Back soon</main>', contentType: 'text/html' }),
    ],
  ])('%s makes the page say how old it is', async (_, answer) => {
    const { page } = await open()
    await page.clock.install({ time: NOW })
    await page.goto(await serve('ok'))
    await page.route('**/', answer)
    const asked = page.waitForRequest('**/')
    await page.clock.runFor(60_000)
    await asked
    await page.clock.runFor(20_000)
    await page.getByText(/^This page is 1 min old/).waitFor()
    expect(await page.getByRole('heading', { level: 1, name: /^Everything works/ }).count()).toBe(1)
  })

  test('printed, it is black on white, with its days and without links', async () => {
    const { page } = await open({ dark: true })
    await page.goto(await serve('ok'))
    await page.emulateMedia({ media: 'print' })
    await keepScreenshot(page, 'status-print')
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(255, 255, 255)')
    expect(await page.evaluate('getComputedStyle(document.body).color')).toBe('rgb(0, 0, 0)')
    // The green for white paper, whatever the screen had.
    const green = 'getComputedStyle(document.querySelector(".word.ok")).color'
    expect(await page.evaluate(green)).toBe('rgb(30, 122, 70)')
    expect(await page.getByRole('link', { name: 'JSON' }).isVisible()).toBe(false)
    expect(await page.locator('main svg.bars').first().isVisible()).toBe(true)
  })

  test('the badge is a picture that another site can show', async () => {
    const url = await serve('degraded')
    const { page } = await open()
    await page.setContent(`<img src="${url}/badge.svg" alt="">`)
    const width = () => page.evaluate('document.querySelector("img").naturalWidth')
    await expect.poll(width).toBeGreaterThan(100)
  })
})
