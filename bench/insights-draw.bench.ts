import type { Browser, Page } from 'playwright-core'
import { openPlatform } from '../src/daemon/index.ts'
import { listen } from '../src/daemon/listen.ts'
import { launchChromium } from '../test/browser/chromium.ts'
import type { Benchmark } from './harness.ts'

const EVENTS = 10_000
const DAY = 86_400_000

export const benchmark: Benchmark = {
  name: 'insights-draw',
  title: `Drawing the insights page from ${EVENTS.toLocaleString('en')} events`,
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 200,
  notes: 'In Chromium, from a full ring; from the first line of the script to the last figure.',
  async open(opened) {
    const platform = openPlatform({ env: { RATE_LIMIT_PER_MINUTE: '1000000' } })
    opened.defer(() => platform.close())
    const listener = await listen('127.0.0.1', 0)
    opened.defer(async () => void (await listener.close()))
    listener.serve(platform.web)
    const url = `http://127.0.0.1:${listener.port}`
    const browser = await launchChromium()
    opened.defer(() => browser.close())
    const [full, empty] = [await visitor(browser, url, EVENTS), await visitor(browser, url, 0)]
    return {
      contenders: [
        { name: 'a full ring', role: 'ours', measure: () => draw(full, url) },
        { name: 'an empty one', role: 'floor', measure: () => draw(empty, url) },
      ],
    }
  },
}

async function visitor(browser: Browser, url: string, events: number): Promise<Page> {
  const page = await (await browser.newContext()).newPage()
  await page.goto(`${url}/lessons/1`)
  const items = Array.from({ length: events }, (_, index) => {
    const at = Date.now() - (index % 60) * DAY
    const kind = index % 3 === 0 ? 'circuit.run' : 'lesson.viewed'
    return [
      `platform.event.${at.toString(36).padStart(9, '0')}.${index}`,
      JSON.stringify([kind, at, { lesson: index % 7 }]),
    ]
  })
  await page.evaluate(`for (const [key, value] of ${JSON.stringify(items)}) localStorage.setItem(key, value)`)
  return page
}

async function draw(page: Page, url: string): Promise<number> {
  await page.goto(`${url}/insights`)
  return page.evaluate<number>(`performance.getEntriesByName('insights')[0].duration`)
}
