import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { listen } from '../../src/daemon/listen.ts'
import { hasChromium, launchChromium } from './chromium.ts'

describe.runIf(hasChromium())('the pages of the web service in Chromium', () => {
  let browser: Browser
  let origin: string
  let closePlatform: () => Promise<void>
  beforeAll(async () => {
    const platform = openPlatform({ env: {} })
    const listener = await listen({ host: '127.0.0.1', port: 0 })
    listener.serve(platform.web)
    origin = `http://127.0.0.1:${listener.port}`
    closePlatform = async () => {
      await listener.close()
      await platform.close()
    }
    browser = await launchChromium()
  })
  afterAll(async () => {
    await browser?.close()
    await closePlatform()
  })

  async function open(
    url: string,
    { dark = false, phone = false } = {},
  ): Promise<{ page: Page; faults: string[] }> {
    const context = await browser.newContext({
      colorScheme: dark ? 'dark' : 'light',
      viewport: phone ? { width: 320, height: 700 } : { width: 1280, height: 860 },
    })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text())
    })
    await page.goto(url)
    return { page, faults }
  }

  // Frames are left to themselves: a mail runs no script, so nothing can be injected into it.
  const violations = async (page: Page) =>
    (await new AxeBuilder({ page }).setLegacyMode(true).analyze()).violations.map(
      ({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 120)}`,
    )
  const overflows = (page: Page) =>
    page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth')

  const routes = [
    '/',
    '/lessons/5',
    '/api/email/unsubscribe?s=forged&t=forged',
    '/api/email/confirm?token=forged',
    '/nowhere',
    '/lessons/8',
    '/api/checkout',
  ]
  test.each(
    routes.flatMap((route) => [
      { route, dark: false, phone: false },
      { route, dark: true, phone: true },
    ]),
  )(
    '$route has no accessibility violation and fits its screen (dark: $dark, phone: $phone)',
    async ({ route, ...screen }) => {
      const { page, faults } = await open(`${origin}${route}`, screen)
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
      expect(await violations(page)).toEqual([])
      expect(await overflows(page)).toBe(false)
      expect(faults.filter((fault) => !/status of 4\d\d/.test(fault))).toEqual([])
    },
  )
})
