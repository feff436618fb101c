import { readFile } from 'node:fs/promises'
import { createTransport } from 'nodemailer'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { INBOX_TEXTS } from '../../src/cli/demo/inbox-page.ts'
import { hasChromium, launchChromium } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const HTML =
  '<html><head><style>body{color-scheme: light dark;background:#fff}@media (prefers-color-scheme: dark){body{background:#000}}</style></head><body><p>The lesson.</p></body></html>'

describe.runIf(hasChromium())('the inbox of the demo in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

  async function openPage({ width = 1280, dark = false } = {}) {
    const inbox = await openInbox({ pagePort: 0 })
    const context = await browser.newContext({
      colorScheme: dark ? 'dark' : 'light',
      viewport: { width, height: 800 },
    })
    const transport = createTransport(inbox.smtpUrl)
    onTestFinished(async () => {
      await context.close()
      transport.close()
      await inbox.close()
    })
    const page = await context.newPage()
    await page.goto(inbox.pageUrl)
    const send = (subject: string) =>
      transport.sendMail({
        from: 'course@example.com',
        to: 'ada@example.com',
        subject,
        html: HTML,
        text: `Text of ${subject}`,
      })
    return { page, send }
  }

  const subject = (page: Page) => page.locator('#subject').textContent()

  test('a mail is shown as soon as it arrives, in each of its views', async () => {
    const { page, send } = await openPage()
    await page.getByText(INBOX_TEXTS.empty).waitFor()
    await send('Hello <there>')
    await page.getByRole('heading', { name: 'Hello <there>' }).waitFor()
    await page.frameLocator('iframe').getByText('The lesson.').waitFor()
    await page.getByRole('tab', { name: INBOX_TEXTS.text }).click()
    await page.getByText('Text of Hello <there>').waitFor()
    await page.getByRole('tab', { name: INBOX_TEXTS.headers }).click()
    await page.getByRole('row', { name: /^Subject Hello <there>/ }).waitFor()
    await page.getByRole('tab', { name: INBOX_TEXTS.source }).click()
    await page.getByText('MIME-Version: 1.0').waitFor()
  })

  test('an open mail stays open, and keeps the keyboard focus, while others arrive', async () => {
    const { page, send } = await openPage()
    await send('First')
    await page.getByRole('heading', { name: 'First' }).waitFor()
    await page.getByRole('button', { name: /First/ }).focus()
    await send('Second')
    const news = page.getByRole('button', { name: '1 new: show the newest' })
    await news.waitFor()
    expect(await subject(page)).toBe('First')
    expect(await page.evaluate('document.activeElement.textContent')).toContain('First')
    expect(await page.locator('#status').textContent()).toBe('2 mails, 1 unread')
    await news.click()
    expect(await subject(page)).toBe('Second')
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Second')
    expect(await page.locator('#status').textContent()).toBe('2 mails')
    await expect.poll(() => news.isVisible()).toBe(false)
  })

  test('by keyboard alone: search, open, change the view, the width and the scheme', async () => {
    const { page, send } = await openPage()
    await send('Superposition')
    await send('Entanglement')
    await page.getByText('2 mails').waitFor()
    await page.getByRole('searchbox', { name: 'Search mails' }).focus()
    await page.keyboard.type('entangl')
    await page.getByText('1 of 2 found').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await subject(page)).toBe('Entanglement')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect
      .poll(() =>
        page
          .locator('#view iframe')
          .boundingBox()
          .then((box) => box?.width),
      )
      .toBe(360)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('#view iframe[src$="scheme=dark"]').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('ArrowRight')
    await page.getByText('Text of Entanglement').waitFor()
  })

  test('the exact message can be downloaded', async () => {
    const { page, send } = await openPage()
    await send('To keep')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download .eml' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('mail-1.eml')
    expect(await readFile(await download.path(), 'utf8')).toContain('Subject: To keep')
  })

  test.each([
    { width: 390, dark: false },
    { width: 390, dark: true },
    { width: 1280, dark: false },
    { width: 1280, dark: true },
  ])('fits $width px and leaves axe nothing to find (dark: $dark)', async ({ width, dark }) => {
    const { page, send } = await openPage({ width, dark })
    await send('Day 1: what a qubit is, and why it is not a bit that cannot decide')
    await send('Day 2')
    await page.getByText('2 mails').waitFor()
    await page.frameLocator('iframe').getByText('The lesson.').waitFor()
    expect(await fitsWidth(page)).toBe(true)
    await keepScreenshot(page, `inbox-${width}-${dark ? 'dark' : 'light'}`)
    expect(await findingsOf(page)).toEqual([])
  })
})
