import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../src/core/host.ts'
import { WHOLE_SERVICE } from '../../../src/core/status/history.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { openLearning } from '../../support/learning.ts'
import { openPage } from '../../support/page-dom.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const NOW = Date.UTC(2026, 10, 21, 7, 26)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'], now: NOW })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** The status page of a platform whose record the test writes, with its script. */
async function visit({ isKept = false } = {}) {
  const history = await openHistory(undefined)
  const platform = openLearning({ env: {}, history, clock: { ...systemClock, now: Date.now } })
  onTestFinished(async () => {
    await platform.close()
    await history.close()
  })
  const look = async (state: 'ok' | 'failing', ago = 0) => {
    const at = Date.now() - ago
    const credit = { state, from: at - MINUTE, to: at }
    const seen = { service: 'web', state, reason: undefined, latencyMs: 5, credit }
    const observations = [WHOLE_SERVICE, 'mail'].map((probe) => ({ ...seen, probe }))
    await history.record({ at, observations, builds: {} })
  }
  const ask = async (target: string) =>
    platform.web.fetch(
      new Request(new URL(target, 'http://web.example'), { headers: { Accept: 'text/html' } }),
    )
  for (let day = 89; day >= 0; day -= 1) await look('ok', day * DAY)
  const html = isKept ? (await platform.keptStatus()).html : await (await ask('/')).text()
  // What another host keeps, nobody writes any more.
  let answer = isKept ? async (_: string) => new Response(html) : ask
  const { page, fire } = openPage(html, (target) => answer(target))
  vi.resetModules()
  // The browser's files need the types of the DOM, which tests of servers do without: they are imported by name.
  const script = '../../../src/browser/status.ts'
  await import(script)
  const bars = page.querySelector('[data-line="web/mail"]')
  if (!bars) throw new Error('the page has no bars')
  return {
    page,
    look,
    answers: (next: typeof answer) => {
      answer = next
    },
    /** What is said of a day once the reader has pressed a key. */
    async says(key: string, text: RegExp) {
      const said = () => {
        fire('keydown', { key, target: bars })
        return bars.getAttribute('aria-valuetext')
      }
      await expect.poll(said).toMatch(text)
    },
  }
}

test('a bar is a day in UTC, wherever its reader is, and times are in the zone of the reader', async () => {
  const { page, says } = await visit()
  await says('End', /^21 Nov 2026: /)
  await says('Home', /^24 Aug 2026: /)
  const here = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
  for (const time of page.querySelectorAll('time:not(.ago)')) {
    const at = Date.parse(time.getAttribute('datetime') ?? '')
    expect(time.textContent).toContain(here.format(at))
    expect(time.getAttribute('title')).toContain('UTC')
  }
})

test('where the browser does not know its zone, times are in UTC and the page is refreshed', async () => {
  const known = new Intl.DateTimeFormat().resolvedOptions()
  const asked = vi.spyOn(Intl.DateTimeFormat.prototype, 'resolvedOptions')
  onTestFinished(() => asked.mockRestore())
  asked.mockReturnValue({ ...known, timeZone: 'Etc/Unknown' })
  const { page, answers } = await visit()
  for (const time of page.querySelectorAll('time:not(.ago)'))
    expect(time.textContent).toBe(time.getAttribute('title'))
  answers(() => Promise.reject(new TypeError('no connection')))
  await vi.advanceTimersByTimeAsync(MINUTE)
  await expect.poll(() => page.querySelector('#stale')?.textContent).toContain('1 min')
})

test('after a refresh a day says what was seen since', async () => {
  const { says, look } = await visit()
  await says('End', /^21 Nov 2026: no trouble$/)
  vi.setSystemTime(NOW + MINUTE)
  await look('failing')
  await vi.advanceTimersByTimeAsync(MINUTE)
  // The incident goes on.
  await says('End', /^21 Nov 2026: failing for 1 min\. Mail \(Web\)/)
})

test.each<[what: string, answer: () => Promise<Response>]>([
  ['nothing answers', () => Promise.reject(new TypeError('no connection'))],
  ['the server is down', async () => new Response('<main id="main"></main>', { status: 503 })],
  ['a proxy answers with a page of its own', async () => new Response('<main id="main">Sign in</main>')],
])('if %s, the page stays and says how old it is', async (_, answer) => {
  const { page, answers } = await visit()
  answers(answer)
  const stale = page.querySelector('#stale')
  await vi.advanceTimersByTimeAsync(3 * MINUTE)
  await expect.poll(() => stale?.textContent).toContain('This page is 3 min old')
  expect(stale).toMatchObject({ hidden: false })
  expect(page.querySelectorAll('[data-line="web/mail"]')).toHaveLength(1)
})

test('a page on another host says how old it is once nobody has written it for a quarter of an hour', async () => {
  const { page } = await visit({ isKept: true })
  const stale = page.querySelector('#stale')
  await vi.advanceTimersByTimeAsync(15 * MINUTE)
  expect(stale).toMatchObject({ hidden: true })
  await vi.advanceTimersByTimeAsync(MINUTE)
  expect(stale).toMatchObject({ hidden: false, textContent: expect.stringContaining('16 min old') })
})
