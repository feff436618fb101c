import type { Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { noticeSamples } from '../../src/cli/preview/page.ts'
import { openSender } from '../../src/cli/preview/sender.ts'
import { servePreview } from '../../src/cli/preview/server.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { kilnSchool } from '../support/kiln-school.ts'
import { inChromium, SCREENS, screenName } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const GAP = 'course=firing&zone=Europe/Berlin&start=2026-03-28T01:00'

inChromium('the courses of the preview', (open) => {
  async function openPage(path: string, { dark = false, width = 1280, scripts = true, days = 3 } = {}) {
    const school = await kilnSchool(await emptyFolder(), { days })
    const { courses, language } = school.platform
    const preview = await servePreview(school.workshop, 0, openSender(testContext().context, {}), {
      courses,
      language,
      zone: 'UTC',
      now: () => Date.parse('2026-11-22T12:00:00Z'),
      notices: noticeSamples(school.platform),
    })
    onTestFinished(async () => {
      await preview.close()
      school.workshop.close()
    })
    const { page, faults } = await open({ dark, width, javaScriptEnabled: scripts })
    page.on('request', (request) => {
      if (!request.url().startsWith(preview.url) && !request.url().startsWith('data:'))
        faults.push(request.url())
    })
    await page.goto(`${preview.url}${path}`)
    return { page, faults, school }
  }

  const subject = (page: Page, text: string) => page.locator('.lesson a', { hasText: text }).first().waitFor()

  test('a choice is made by the keyboard, is in the address, and survives a save and a reload', async () => {
    const { page, faults, school } = await openPage(`/courses?${GAP}&language=en`)
    await page.getByText('skips 02:30').waitFor()
    await page.getByLabel('Subscriber’s language').focus()
    await page.keyboard.press('End')
    await page.keyboard.press('Home')
    // English, German as the package has it, and the course's own.
    for (let times = 0; times < 2; times += 1) await page.keyboard.press('ArrowDown')
    await subject(page, 'عجن الطين')
    expect(new URL(page.url()).searchParams.get('language')).toBe('ar')
    expect(await page.evaluate('document.activeElement.id')).toBe('language')
    await page.getByLabel('Subscriber’s time zone').fill('Asia/Tokyo')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.getByText('skips 02:30').count()).toBe(0)
    await school.write('firing/ar/1-clay.md', school.lesson('طين جديد'))
    await subject(page, 'طين جديد')
    await page.getByText('ar/firing-1-clay saved').waitFor()
    await page.reload()
    await subject(page, 'طين جديد')
    expect(await page.getByLabel('Subscriber’s time zone').inputValue()).toBe('Asia/Tokyo')
    await page.getByLabel('Subscriber’s time zone').fill('Mars/Olympus')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('Mars/Olympus is not an IANA time zone').waitFor()
    expect(await page.getByLabel('Subscriber’s time zone').getAttribute('aria-invalid')).toBe('true')
    expect(faults).toEqual([])
  })

  test('a mail in two languages follows a save of one, and both are shown as high as they are', async () => {
    const { page, faults, school } = await openPage('/languages?mail=firing-1-clay&left=en&right=ar')
    const right = page.frameLocator('.panes section:nth-child(2) iframe')
    await right.getByRole('heading', { name: 'عجن الطين' }).waitFor()
    expect(await right.locator('html').getAttribute('dir')).toBe('rtl')
    // Text begins at the right, and so does the button.
    const rightEdge = (part: string) =>
      right
        .locator(part)
        .first()
        .evaluate((found) => {
          const range = found.ownerDocument.createRange()
          range.selectNodeContents(found)
          return range.getBoundingClientRect().right
        })
    const edge = await rightEdge('h1')
    for (const part of ['p', 'td:has(> a)'])
      expect(Math.abs((await rightEdge(part)) - edge), part).toBeLessThan(30)
    await school.write('firing/ar/1-clay.md', school.lesson('طين جديد'))
    await right.getByRole('heading', { name: 'طين جديد' }).waitFor()
    const fits = `[...document.querySelectorAll('iframe')].every((frame) => frame.clientHeight >= frame.contentDocument.documentElement.scrollHeight)`
    await expect.poll(() => page.evaluate(fits)).toBe(true)
    await keepScreenshot(page, 'languages-right-to-left')
    await page.getByLabel('Mail', { exact: true }).selectOption('firing-3-glaze')
    await page.getByText('There is no translation into Arabic').waitFor()
    expect(new URL(page.url()).searchParams.get('mail')).toBe('firing-3-glaze')
    expect(faults).toEqual([])
  })

  test('a link leads from a lesson to its two languages and to its mail', async () => {
    const { page, faults } = await openPage(`/courses?${GAP}&language=de`)
    await page.getByRole('link', { name: 'Compare languages: Lesson 1' }).click()
    await page.getByRole('heading', { name: 'Den Ton schlagen' }).waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'Den Ton schlagen' }).click()
    await page.getByRole('heading', { name: 'Den Ton schlagen', level: 2 }).waitFor()
    expect(faults).toEqual([])
  })

  test('the mail about incidents is shown for an end and an announcement by one click', async () => {
    const { page, faults } = await openPage('/#status-notice')
    for (const [kind, subject] of [
      ['Works again', /works again/],
      ['Announced', /no sign-in for ten minutes/],
    ] as const) {
      await page.getByRole('button', { name: kind, exact: true }).click()
      await page.getByRole('heading', { name: subject, level: 2 }).waitFor()
    }
    expect(faults).toEqual([])
  })

  test('without scripts the form shows a course as well', async () => {
    const { page } = await openPage('/courses', { scripts: false, days: 365 })
    await page.getByLabel('Course').selectOption('year')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('A year of clay').last().waitFor()
    expect(await page.locator('.lesson').count()).toBe(365)
    expect(await fitsWidth(page)).toBe(true)
  })

  test.each(SCREENS)('can be used by everyone %o', { timeout: 90_000 }, async (screen) => {
    const { page } = await openPage(`/courses?${GAP}&language=ar`, screen)
    for (const [path, picture] of [
      [`/courses?${GAP}&language=ar`, 'timeline'],
      ['/languages?mail=firing-2-wheel&left=de&right=ar&scheme=dark', 'languages'],
    ] as const) {
      await page.goto(new URL(path, page.url()).href)
      expect(await fitsWidth(page), picture).toBe(true)
      expect(await findingsOf(page), picture).toEqual([])
      await keepScreenshot(page, `preview-${picture}-${screenName(screen)}`)
    }
  })
})
