import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { recordDays } from '../../src/cli/demo/sample-history.ts'
import { systemClock } from '../../src/core/clock.ts'
import { openHistory } from '../../src/core/store/open.ts'
import { listen } from '../../src/daemon/listen.ts'
import { learningSampleHealth } from '../../src/presets/learning/sample-health.ts'
import { openLearning } from '../support/learning.ts'
import { hasChromium, launchChromium } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const NOW = Date.UTC(2026, 10, 21, 7, 26, 34)
const TOKEN = 'a-health-token-of-thirty-two-bytes'

describe.runIf(hasChromium())('the status page in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

  async function serve(state: 'ok' | 'degraded' | 'failing'): Promise<string> {
    const history = await openHistory(undefined)
    await recordDays(history, NOW, { sample: learningSampleHealth, state })
    const platform = openLearning({
      env: { HEALTH_DEEP_TOKEN: TOKEN },
      clock: { ...systemClock, now: () => NOW },
      history,
    })
    const listener = await listen({ host: '127.0.0.1', port: 0 })
    listener.serve(platform.web)
    onTestFinished(async () => {
      await listener.close()
      await platform.close()
      await history.close()
    })
    return `http://127.0.0.1:${listener.port}`
  }

  test.each([
    { state: 'ok', dark: false, width: 1280 },
    { state: 'degraded', dark: true, width: 1280 },
    { state: 'failing', dark: false, width: 320 },
    { state: 'failing', dark: false, width: 390 },
    { state: 'failing', dark: true, width: 390 },
    { state: 'failing', dark: false, width: 1280 },
  ] as const)('has no accessibility violation and fits its screen %o', async ({ state, dark, width }) => {
    const context = await browser.newContext({
      colorScheme: dark ? 'dark' : 'light',
      viewport: { width, height: 900 },
    })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const faults: string[] = []
    page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
    await page.goto(await serve(state))
    expect(await findingsOf(page)).toEqual([])
    expect(await fitsWidth(page)).toBe(true)
    await keepScreenshot(page, `status-${state}-${width}-${dark ? 'dark' : 'light'}`)
    expect(faults).toEqual([])
    // Ninety days of each row are drawn, next to each other and within the page.
    for (const bars of await page.locator('main svg.bars[role=img]').all()) {
      const box = await bars.boundingBox()
      expect(box?.height).toBeGreaterThan(15)
      expect(box?.width).toBeGreaterThan(width > 500 ? 300 : 200)
    }
  })

  test('is whole without scripts, and shows reasons to who gives the token where the browser asks for it', async () => {
    const url = await serve('failing')
    const context = await browser.newContext({
      javaScriptEnabled: false,
      httpCredentials: { username: 'operator', password: TOKEN },
    })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.goto(url)
    await page.getByRole('heading', { level: 1, name: /^Mail \(Web\) is failing/ }).waitFor()
    expect(await page.getByText('no answer in time').count()).toBe(0)
    await page.getByRole('link', { name: 'Details for operators' }).click()
    await page.getByText('no answer in time').first().waitFor()
  })

  test('the badge is a picture that another site can show', async () => {
    const url = await serve('degraded')
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.setContent(`<img src="${url}/badge.svg" alt="">`)
    const width = () => page.evaluate('document.querySelector("img").naturalWidth')
    await expect.poll(width).toBeGreaterThan(100)
  })
})
