import { cp, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { openSender } from '../../src/cli/preview/sender.ts'
import { servePreview } from '../../src/cli/preview/server.ts'
import { openWorkshop } from '../../src/cli/preview/workshop.ts'
import { baseMailSet } from '../../src/presets/base/mails.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { MAILS, TEMPLATES } from '../support/learning.ts'
import { serveBodies } from '../support/servers.ts'
import { inChromium, SCREENS, screenName } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const templates = fileURLToPath(new URL('../../templates', import.meta.url))

inChromium('the preview', (open) => {
  /** The preview over a copy of the templates, and a way to edit one as an editor would. */
  async function openPreview({
    hash = '',
    dark = false,
    width = 1440,
    env = {},
    to = [],
  }: {
    hash?: string
    dark?: boolean
    width?: number
    env?: Record<string, string>
    to?: readonly string[]
  } = {}) {
    const folder = await emptyFolder()
    await cp(templates, folder, { recursive: true })
    const workshop = openWorkshop({ definitions: MAILS, folders: [{ path: folder }, ...baseMailSet.folders] })
    const school = { courses: [], language: 'en', zone: 'UTC', now: Date.now }
    const preview = await servePreview(workshop, 0, openSender(testContext().context, env, to), school)
    onTestFinished(async () => {
      await preview.close()
      workshop.close()
    })
    const { page, faults } = await open({ dark, width })
    await page.goto(`${preview.url}/${hash || '#'}${hash && '&'}key=${preview.key}`)
    await page.getByText('14 mails').waitFor()
    const edit = async (file: string, change: (text: string) => string) => {
      const full = path.join(folder, file)
      await writeFile(full, change(await readFile(full, 'utf8')))
    }
    return { page, faults, edit, url: preview.url }
  }

  const tab = (page: Page, name: string | RegExp) => page.getByRole('tab', { name }).click()

  test('shows every mail as a thumbnail with its subject and what lint says of it', async () => {
    const { page, faults } = await openPreview()
    for (const name of TEMPLATES) {
      const button = page.locator(`#mail-${name}`)
      await button.locator('.badge', { hasText: '✔ clean' }).waitFor()
      await button.scrollIntoViewIfNeeded()
      await button.frameLocator('iframe').locator('h1').waitFor({ state: 'attached' })
    }
    // The thumbnail is as wide as its frame: nothing is cut off and nothing is left over.
    const widths = await page
      .locator('#mail-welcome .thumb')
      .evaluate((thumb) => [thumb.clientWidth, thumb.firstElementChild?.getBoundingClientRect().width ?? 0])
    expect(Math.abs((widths[0] ?? 0) - (widths[1] ?? 0))).toBeLessThanOrEqual(1)
    expect(faults).toEqual([])
  })

  test('shows one mail in each of its views', async () => {
    const { page, faults } = await openPreview({ hash: '#course-day-1' })
    await page.frameLocator('#view iframe').getByRole('heading', { name: 'What a qubit is' }).waitFor()
    await page.getByText(/HTML \d+\.\d KB, \d+ % of where Gmail clips/).waitFor()
    expect(Number(await page.locator('meter').getAttribute('value'))).toBeGreaterThan(5000)

    await tab(page, 'All four')
    await page.getByText('Phone, dark').waitFor()
    const shown = await page.evaluate(`[...document.querySelectorAll('.four iframe')].map((frame) => {
      const { body, documentElement } = frame.contentDocument
      return [frame.clientWidth, getComputedStyle(body).backgroundColor, body.scrollWidth <= frame.clientWidth, frame.clientHeight >= documentElement.scrollHeight]
    })`)
    expect(shown).toEqual([
      [600, 'rgb(242, 241, 238)', true, true],
      [360, 'rgb(242, 241, 238)', true, true],
      [600, 'rgb(20, 23, 29)', true, true],
      [360, 'rgb(20, 23, 29)', true, true],
    ])

    await tab(page, 'Plain text')
    await page.getByText('Unsubscribe: https://www.example.com/').waitFor()
    await tab(page, 'Headers')
    await page.getByText('List-Unsubscribe=One-Click').waitFor()
    await tab(page, 'Source')
    await page.getByText('Content-Transfer-Encoding: quoted-printable').first().waitFor()
    await tab(page, /^Findings/)
    await page.getByText('support-partial').first().waitFor()
    expect(faults).toEqual([])
  })

  test('follows a save in the place, the tab, the width and the scheme that were chosen', async () => {
    const { page, edit, faults } = await openPreview({ hash: '#course-day-1' })
    await page.getByRole('button', { name: 'Phone' }).click()
    await page.getByRole('button', { name: 'Dark' }).click()
    const mail = page.frameLocator('#view iframe:not(.next)')
    await mail.getByRole('heading', { name: 'What a qubit is' }).waitFor()
    await page.evaluate("document.querySelector('#view').scrollTop = 300")
    await edit('course-day-1.md', (text) => text.replace('# What a qubit is', '# What a qubit really is'))
    await mail.getByRole('heading', { name: 'What a qubit really is' }).waitFor()
    expect(await page.evaluate("document.querySelector('#view').scrollTop")).toBe(300)
    expect(await page.locator('#view iframe').evaluate((frame) => frame.clientWidth)).toBe(360)
    await page.getByText('course-day-1 saved').waitFor()

    await tab(page, 'Source')
    await page.getByText('What a qubit really is').first().waitFor()
    await page.evaluate("document.querySelector('#view').scrollTop = 500")
    await edit('layout.mjml', (text) => text.replace('Quantum, from the beginning', 'Quantum, once more'))
    await page.getByText('Quantum, once more').first().waitFor()
    expect(await page.getByRole('tab', { selected: true }).textContent()).toBe('Source')
    expect(await page.evaluate("document.querySelector('#view').scrollTop")).toBe(500)
    expect(await page.evaluate('location.hash')).toBe('#course-day-1')
    expect(faults).toEqual([])
  })

  test('a template that stops compiling shows where, keeps the last good view, and recovers', async () => {
    const { page, edit, faults } = await openPreview({ hash: '#welcome' })
    const mail = page.frameLocator('#view iframe:not(.next)')
    await mail.getByRole('heading', { name: 'Your account is ready' }).waitFor()
    await edit('welcome.md', (text) => text.replace('{{startUrl}}', '{{startUrll}}'))
    await page.getByText('welcome.md:6: there is no slot startUrll').waitFor()
    await mail.getByRole('heading', { name: 'Your account is ready' }).waitFor()
    await page.locator('#mail-welcome .badge', { hasText: '✖ 1 error' }).waitFor()
    await page.getByText('14 mails, 1 broken').waitFor()
    await edit('welcome.md', (text) => text.replace('{{startUrll}}', '{{startUrl}}'))
    await page.locator('#mail-welcome .badge', { hasText: '✔ clean' }).waitFor()
    expect(await page.locator('#fault').isHidden()).toBe(true)
    // The frames of a broken mail answer 422, which the browser notes.
    expect(faults.filter((fault) => !fault.includes('422'))).toEqual([])
  })

  test('findings of lint appear after a save, with their place', async () => {
    const { page, edit } = await openPreview({ hash: '#welcome' })
    await tab(page, /^Findings/)
    await edit('welcome.md', (text) => text.replace('subject: Welcome', 'subject: WELCOME TO YOU'))
    await page.getByText('welcome.md:2:1').waitFor()
    await page.getByRole('tab', { name: /^Findings \d/ }).waitFor()
    await page.locator('#mail-welcome .badge', { hasText: '▲ 1 warning' }).waitFor()
  })

  test('for each mail client it says what the client shows without, and that the rest is everything', async () => {
    const { page } = await openPreview({ hash: '#welcome' })
    await tab(page, 'Clients')
    const row = (client: string) => page.locator(`#view dt:text-is("${client}") + dd`)
    expect(await row('Outlook on Windows').textContent()).toMatch(/^without .*border-radius/)
    expect(await page.locator('#view dt').count()).toBe(14)
    expect(await findingsOf(page)).toEqual([])
    expect(await fitsWidth(page)).toBe(true)
    await keepScreenshot(page, 'preview-clients')
  })

  test('sample values are beside the mail: it changes as one types, a wrong one says why, and the samples come back', async () => {
    const { page } = await openPreview({ hash: '#exam-passed' })
    await page.getByLabel(/^exam /).fill('<b>Entanglement</b> & more')
    await page.getByRole('heading', { name: 'Passed: <b>Entanglement</b> & more' }).waitFor()
    await page.getByLabel(/^resultUrl /).fill('javascript:alert(1)')
    await page.getByText('the value of the slot resultUrl is not an absolute http or https address').waitFor()
    await page.getByRole('button', { name: 'Back to the samples' }).click()
    await page.getByRole('heading', { name: 'Passed: Gates and measurement' }).waitFor()
    await page.getByLabel(/^exam /).fill('<img src=x onerror=alert(1)>')
    await page.getByRole('heading', { name: 'Passed: <img src=x' }).waitFor()
    await tab(page, 'HTML')
    const mail = page.frameLocator('#view iframe:not(.next)')
    await mail.getByText('<img src=x onerror=alert(1)>').waitFor()
    expect(await mail.locator('img').count()).toBe(0)
  })

  test.each(SCREENS)('can be used by everyone %o', { timeout: 90_000 }, async (screen) => {
    const { page } = await openPreview({ hash: '#exam-passed', ...screen })
    for (const [name, sign] of [
      ['HTML', '#view iframe:not(.next)'],
      [/^Findings/, '.finding'],
    ] as const) {
      await tab(page, name)
      await page.locator(sign).first().waitFor()
      expect(await findingsOf(page), String(name)).toEqual([])
      expect(await fitsWidth(page), String(name)).toBe(true)
    }
    await page.getByLabel(/^exam /).waitFor({ state: 'attached' })
    await tab(page, 'All four')
    await page.getByText('Phone, dark').waitFor()
    expect(await fitsWidth(page)).toBe(true)
    // No content is cut off at the side of the view either.
    expect(
      await page.evaluate(
        "document.querySelector('#view').scrollWidth <= document.querySelector('#view').clientWidth",
      ),
    ).toBe(true)
    await keepScreenshot(page, `preview-${screenName(screen)}`)
  })

  test('an invalid sample value can be corrected from every tab', async () => {
    const { page } = await openPreview({ hash: '#exam-passed' })
    await page.getByLabel(/^resultUrl /).fill('javascript:alert(1)')
    await page.getByText('the value of the slot resultUrl is not an absolute http or https address').waitFor()
    await tab(page, 'Plain text')
    await page.getByText('Correct the sample value named above').waitFor()
    await page.getByRole('button', { name: 'Back to the samples' }).click()
    await expect.poll(() => page.locator('#fault').isHidden()).toBe(true)
    await tab(page, 'Plain text')
    await page.locator('#view pre').waitFor()
  })

  test('a mail that is broken on page load says that there is nothing to show, and how to fix it', async () => {
    const { page, edit } = await openPreview({ hash: '#exam-passed' })
    await edit('welcome.md', (text) => text.replace('{{startUrl}}', '{{startUrll}}'))
    await page.locator('#mail-welcome .badge', { hasText: '✖ 1 error' }).waitFor()
    await page.goto(page.url().replace('#exam-passed', '#welcome'))
    await page.reload()
    await page.getByText('This mail does not compile, so there is nothing to show yet.').waitFor()
    await page.getByText('welcome.md:6: there is no slot startUrll').waitFor()
  })

  test('headers are decoded, the gallery can be filtered, and the message copied or downloaded', async () => {
    const { page, edit } = await openPreview({ hash: '#welcome' })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await edit('welcome.md', (text) => text.replace('subject: Welcome', 'subject: Grüße'))
    await page.getByRole('heading', { name: 'Grüße' }).waitFor()
    await page.getByText(/^Preview text: /).waitFor()
    await tab(page, 'Headers')
    await page.getByText('Grüße', { exact: true }).last().waitFor()
    await tab(page, 'Plain text')
    await page.locator('#view pre').waitFor()
    await page.getByRole('button', { name: 'Copy', exact: true }).click()
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
      await page.locator('#view pre').textContent(),
    )
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download .eml' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('welcome.eml')
    await page.getByRole('searchbox', { name: 'Search mails' }).fill('exam')
    await expect.poll(() => page.locator('#list li:visible').count()).toBe(1)
  })

  test('sends the mail as shown to the reader, and refuses requests from other sites', {
    timeout: 60_000,
  }, async () => {
    const sent: unknown[] = []
    const provider = await serveBodies((body, response) => {
      sent.push(JSON.parse(body))
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"id":"mail-1"}')
    })
    const env = {
      MAILER_API_KEY: 'a-key-of-a-provider',
      MAILER_API_URL: provider,
      MAILER_FROM: 'course@example.com',
    }
    const { page, url } = await openPreview({
      hash: '#exam-passed',
      width: 390,
      env,
      to: ['ada@example.com'],
    })
    const forged = await fetch(`${url}/mails/welcome.send`, {
      method: 'POST',
      headers: { 'Content-Type': 'text/plain', 'X-Preview-Token': 'guessed' },
      body: '{"to":"ada@example.com"}',
    })
    expect(forged.status).toBe(403)
    expect(sent).toEqual([])
    await page.getByText('Sample values').click()
    await page.getByLabel(/^exam /).fill('Entanglement')
    await page.getByRole('heading', { name: 'Passed: Entanglement' }).waitFor()
    await page.getByRole('button', { name: 'Send to me' }).click()
    await page.locator('#to:focus').waitFor()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Sent to ada@example.com').waitFor()
    expect(JSON.stringify(sent)).toContain('ada@example.com')
    expect(sent).toEqual([expect.objectContaining({ subject: 'Passed: Entanglement' })])
    expect(await findingsOf(page)).toEqual([])
    expect(await fitsWidth(page)).toBe(true)
    await keepScreenshot(page, 'preview-send-390')
  })

  test('without mail, the button to send says what is missing', async () => {
    const { page } = await openPreview({ hash: '#welcome' })
    await page.getByRole('button', { name: 'Send to me' }).click()
    await page.getByText(/^Mail is not configured\. .*MAILER_/).waitFor()
    expect(await page.getByLabel('Address', { exact: true }).isHidden()).toBe(true)
    await keepScreenshot(page, 'preview-send-missing')
  })

  test('a finding links to what it means', async () => {
    const { page } = await openPreview({ hash: '#course-day-1' })
    await tab(page, /^Findings/)
    const [meaning] = await Promise.all([
      page.waitForEvent('popup'),
      page.getByRole('link', { name: 'What support-partial means' }).first().click(),
    ])
    await meaning.getByRole('heading', { name: 'support-partial' }).waitFor()
    expect(meaning.url()).toMatch(/#support-partial$/)
    expect(await findingsOf(meaning)).toEqual([])
    await keepScreenshot(meaning, 'preview-meanings')
  })

  test('every mail fits a phone of 320 px, in both schemes', { timeout: 60_000 }, async () => {
    const { url, page } = await openPreview()
    await page.setViewportSize({ width: 320, height: 700 })
    for (const name of TEMPLATES)
      for (const scheme of ['light', 'dark']) {
        await page.goto(`${url}/mails/${name}.html?scheme=${scheme}`)
        expect(await fitsWidth(page), `${name}, ${scheme}`).toBe(true)
      }
  })

  test('a page of another name is refused', async () => {
    const { url } = await openPreview()
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      request(`${url}/mails.json`, { headers: { host: 'evil.example' } }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .on('error', reject)
        .end()
    })
    expect(status).toBe(421)
  })
})
