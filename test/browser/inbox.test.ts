import { readFile } from 'node:fs/promises'
import { createTransport, type SendMailOptions } from 'nodemailer'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { inChromium, SCREENS, screenName } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const HTML =
  '<html><head><style>body{color-scheme: light dark;background:#fff}@media (prefers-color-scheme: dark){body{background:#000}}</style></head><body><p>The lesson.</p></body></html>'

inChromium('the inbox of the demo', (open) => {
  async function openPage(screen: Parameters<typeof open>[0] = {}) {
    const inbox = await openInbox({ pagePort: 0 })
    const transport = createTransport(inbox.smtpUrl)
    onTestFinished(async () => {
      transport.close()
      await inbox.close()
    })
    const { page } = await open({ height: 800, ...screen })
    await page.goto(inbox.pageUrl)
    const send = (subject: string, parts: SendMailOptions = {}) =>
      transport.sendMail({
        from: 'course@example.com',
        to: 'ada@example.com',
        subject,
        html: HTML,
        text: `Text of ${subject}`,
        ...parts,
      })
    return { page, send }
  }

  const subject = (page: Page) => page.locator('#subject').textContent()

  test('a mail is shown as soon as it arrives, in each of its views', async () => {
    const { page, send } = await openPage()
    await page.getByText('Mails appear here as they arrive.').waitFor()
    await send('Hello <there>')
    await page.getByRole('heading', { name: 'Hello <there>' }).waitFor()
    await page.frameLocator('#view iframe:not(.next)').getByText('The lesson.').waitFor()
    await page.getByRole('tab', { name: 'Plain text' }).click()
    await page.getByText('Text of Hello <there>').waitFor()
    await page.getByRole('tab', { name: 'Headers' }).click()
    await page
      .getByRole('definition')
      .filter({ hasText: /^Hello <there>$/ })
      .waitFor()
    await page.getByRole('tab', { name: 'Source' }).click()
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
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Second')
    expect(await page.locator('#status').textContent()).toBe('2 mails')
    await expect.poll(() => news.isVisible()).toBe(false)
  })

  test('by keyboard alone: search, open, step through the list, change the width, the scheme and the view', async () => {
    const { page, send } = await openPage()
    await send('Superposition')
    await send('Entanglement')
    await page.getByText('2 mails').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('entangl')
    await page.getByText('1 of 2 found').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Entanglement' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.press('Delete')
    await page.locator('#mail-2').focus()
    await page.keyboard.press('j')
    await page.getByRole('heading', { name: 'Superposition' }).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('mail-1')
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'Entanglement' }).waitFor()
    await page.getByRole('button', { name: 'Phone' }).focus()
    await page.keyboard.press('Enter')
    const width = () =>
      page
        .locator('#view iframe:not(.next)')
        .boundingBox()
        .then((box) => box?.width)
    await expect.poll(width).toBe(360)
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('#view iframe[src$="scheme=dark"]').waitFor()
    await page.getByRole('tab', { name: 'HTML' }).focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    await page.getByText('Text of Entanglement').waitFor()
  })

  test('each mail has an address, to which a reload and the Back button return', async () => {
    const { page, send } = await openPage()
    await send('First')
    await send('Second')
    await page.getByRole('button', { name: /First/ }).click()
    await page.getByRole('heading', { name: 'First' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#1')
    await page.reload()
    await page.getByRole('heading', { name: 'First' }).waitFor()
    await page.getByRole('button', { name: /Second/ }).click()
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'First' }).waitFor()
  })

  test('a mail can be deleted, and all of them, and the next is shown', async () => {
    const { page, send } = await openPage()
    for (const name of ['First', 'Second', 'Third']) await send(name)
    await page.getByRole('button', { name: /Third/ }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('heading', { name: 'Second' }).waitFor()
    await expect.poll(() => page.locator('#list li').count()).toBe(2)
    await page.getByRole('button', { name: 'Delete all' }).click()
    await page.getByText('Mails appear here as they arrive.').waitFor()
    await send('Fourth')
    await page.getByRole('heading', { name: 'Fourth' }).waitFor()
  })

  test('links and attachments are listed, and what is seen can be copied', async () => {
    const { page, send } = await openPage()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const attachments = [{ filename: 'slides.pdf', content: Buffer.alloc(2048) }]
    await send('With parts', { html: '<a href="https://example.com/x?a=1&amp;b=2">Read on</a>', attachments })
    await page.getByRole('tab', { name: 'Links and attachments' }).click()
    await page.getByText('https://example.com/x?a=1&b=2 Read on').waitFor()
    await page.getByText('slides.pdf, application/pdf, 2.0 KB').waitFor()
    await page.getByRole('tab', { name: 'Plain text' }).click()
    await page.getByText('Text of With parts').waitFor()
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('Text of With parts')
  })

  test('on a phone either the list is shown or one mail, and Back leads to the list', async () => {
    const { page, send } = await openPage({ width: 390 })
    await send('First')
    await page.getByText('1 mail, 1 unread').waitFor()
    expect(await page.locator('#mail').isVisible()).toBe(false)
    await page.getByRole('button', { name: /First/ }).click()
    await page.getByRole('heading', { name: 'First' }).waitFor()
    expect(await page.locator('#list').isVisible()).toBe(false)
    await page.getByRole('link', { name: 'All mails' }).click()
    await page.getByRole('button', { name: /First/ }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'First' }).waitFor()
  })

  test('the exact message can be downloaded', async () => {
    const { page, send } = await openPage()
    await send('To keep')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download .eml' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('1.eml')
    expect(await readFile(await download.path(), 'utf8')).toContain('Subject: To keep')
  })

  test.each(SCREENS)(
    'fits $width px and leaves axe nothing to find (dark: $dark)',
    { timeout: 60_000 },
    async (screen) => {
      const { page, send } = await openPage(screen)
      await send('Day 1: what a qubit is, and why it is not a bit that cannot decide')
      await send('Day 2')
      await page.getByText('2 mails').waitFor()
      expect(await findingsOf(page)).toEqual([])
      await page.getByRole('button', { name: /Day 1/ }).click()
      await page.frameLocator('#view iframe:not(.next)').getByText('The lesson.').waitFor()
      expect(await fitsWidth(page)).toBe(true)
      await keepScreenshot(page, `inbox-${screenName(screen)}`)
      expect(await findingsOf(page)).toEqual([])
    },
  )
})
