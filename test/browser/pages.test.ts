import { AxeBuilder } from '@axe-core/playwright'
import { createTransport } from 'nodemailer'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { listen } from '../../src/daemon/listen.ts'
import { hasChromium, launchChromium } from './chromium.ts'

describe.runIf(hasChromium())('in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

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

  test('the inbox shows a mail as soon as it arrives, in each of its views', async () => {
    const inbox = await openInbox({ pagePort: 0 })
    onTestFinished(() => inbox.close())
    const { page, faults } = await open(inbox.pageUrl)
    await page.getByText('Mails appear here by themselves').waitFor()
    const transport = createTransport(inbox.smtpUrl)
    await transport.sendMail({
      from: 'a@example.com',
      to: 'b@example.com',
      subject: 'Hello <there>',
      html: '<html><head></head><body><p>the body</p></body></html>',
      text: 'the text',
    })
    transport.close()
    await page.getByRole('heading', { name: 'Hello <there>' }).waitFor()
    await page.frameLocator('iframe').getByText('the body').waitFor()
    await page.getByRole('tab', { name: 'Plain text' }).click()
    await page.getByText('the text').waitFor()
    await page.getByRole('tab', { name: 'Source' }).click()
    await page.getByText('MIME-Version: 1.0').waitFor()
    expect(await violations(page)).toEqual([])
    expect(faults).toEqual([])
  })

  test.each([
    { dark: false, phone: false },
    { dark: true, phone: true },
  ])(
    'the pages of the web service have no accessibility violation and fit their screen %o',
    async (screen) => {
      const platform = openPlatform({ env: {} })
      const listener = await listen({ host: '127.0.0.1', port: 0 })
      listener.serve(platform.web)
      onTestFinished(async () => {
        await listener.close()
        await platform.close()
      })
      for (const route of [
        '/',
        '/lessons/5',
        '/api/email/unsubscribe?s=forged&t=forged',
        '/api/email/confirm?token=forged',
        '/nowhere',
        '/lessons/8',
        '/api/checkout',
      ]) {
        const { page, faults } = await open(`http://127.0.0.1:${listener.port}${route}`, screen)
        expect(await page.getByRole('heading', { level: 1 }).count(), route).toBe(1)
        expect(await violations(page), route).toEqual([])
        expect(await overflows(page), route).toBe(false)
        expect(
          faults.filter((fault) => !/status of 4\d\d/.test(fault)),
          route,
        ).toEqual([])
      }
    },
  )
})
