import { readFile } from 'node:fs/promises'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { definePlatform } from '../../src/platform/checked.ts'
import { inChromium, serveWeb } from './chromium.ts'
import { findingsOf, keepScreenshot } from './looks.ts'

const DAY = 86_400_000
const SCREENS: Record<string, BrowserContextOptions> = {
  desktop: { viewport: { width: 1280, height: 860 } },
  'dark desktop': { viewport: { width: 1280, height: 860 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
  'wide dark phone': { viewport: { width: 390, height: 844 }, colorScheme: 'dark', hasTouch: true },
  'dark phone': { viewport: { width: 320, height: 700 }, colorScheme: 'dark', hasTouch: true },
}

inChromium('/insights', (open) => {
  const serve = () => serveWeb(openPlatform({ env: { RATE_LIMIT_PER_MINUTE: '10000' } }))

  async function visitInsights(
    options: BrowserContextOptions = {},
    events: readonly unknown[][] = [],
    root?: string,
  ) {
    const url = `${root ?? (await serve())}/insights`
    const { context, page: first, faults } = await open(options)
    const items = events.map((event, index) => [
      `platform.event.${Number(event[1]).toString(36).padStart(9, '0')}.${index}`,
      JSON.stringify(event),
    ])
    const requests: string[] = []
    const visit = async (page: Page, stored: readonly (readonly string[])[] = []) => {
      // Written by the page itself as it begins: what another page has written may still be on its way.
      const before = await page.addInitScript((all) => {
        for (const [key, value] of all) localStorage.setItem(key ?? '', value ?? '')
      }, stored)
      page.on('request', (request) => requests.push(request.url()))
      await page.goto(url)
      await before.dispose()
      return page
    }
    const another = async () => visit(await context.newPage())
    return { page: await visit(first, items), another, requests, faults, url }
  }

  const overflows = (page: Page) =>
    page.evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth ||
      [...document.querySelectorAll('.figure table')].some(
        (table) => table.getBoundingClientRect().right > table.closest('.figure').getBoundingClientRect().right)`)
  const events = (count: number) =>
    Array.from({ length: count }, (_, index) => [
      index % 3 === 0 ? 'circuit.run' : 'lesson.viewed',
      Date.now() - (index % 20) * DAY,
      { lesson: 1 + (index % 7) },
      // Half of them were sent, and stay.
      ...(index % 2 ? [1] : []),
    ])

  test.each(Object.keys(SCREENS))(
    'a fresh browser is shown sample data, clearly marked, without an accessibility violation (%s)',
    async (screen) => {
      const { page, faults, requests, url } = await visitInsights(SCREENS[screen])
      await page.getByText('Sample data.', { exact: true }).waitFor()
      expect(await page.getByRole('table', { name: 'Exams (sample data)' }).count()).toBe(1)
      expect(Number(await page.locator('#total').textContent())).toBeGreaterThan(100)
      await page.getByText('Show as a table').click()
      expect(await findingsOf(page)).toEqual([])
      expect(await overflows(page)).toBe(false)
      await keepScreenshot(page, `insights-${screen.replaceAll(' ', '-')}`)
      expect(await page.evaluate('localStorage.length')).toBe(0)
      await page.getByRole('button', { name: 'Hide sample data' }).click()
      await page.getByText('Nothing is recorded in this browser yet.').waitFor()
      expect(await page.locator('#total').textContent()).toBe('0')
      expect(await findingsOf(page)).toEqual([])
      await page.getByRole('button', { name: 'Show sample data' }).click()
      expect(await page.getByText('Sample data.', { exact: true }).isVisible()).toBe(true)
      expect(faults).toEqual([])
      // The page itself and nothing else.
      expect(requests).toEqual([url])
    },
  )

  test.each(Object.keys(SCREENS))('own events are drawn, by range and by kind (%s)', async (screen) => {
    const { page, faults } = await visitInsights(SCREENS[screen], [
      ...events(60),
      ['lesson.viewed', Date.now() - 60 * DAY, {}],
    ])
    expect(await page.locator('#total').textContent()).toBe('60')
    expect(await page.getByText('sample data').count()).toBeGreaterThan(0)
    expect(await page.getByText('Sample data.', { exact: true }).isVisible()).toBe(false)
    await page.getByLabel('Range').selectOption('everything')
    expect(await page.locator('#total').textContent()).toBe('61')
    await page.getByLabel('Kind').selectOption('Circuits run')
    expect(await page.locator('#total').textContent()).toBe('20')
    expect(await page.getByRole('table', { name: 'Events of each kind' }).textContent()).toMatch(
      /Circuits run\s*20/,
    )
    const drawn = await page.evaluate(`(() => {
      const canvas = document.querySelector('canvas')
      return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.filter((value) => value > 0).length
    })()`)
    expect(drawn).toBeGreaterThan(1000)
    expect(await findingsOf(page)).toEqual([])
    expect(await overflows(page)).toBe(false)
    expect(faults).toEqual([])
  })

  test('all of it can be reached and used with the keyboard alone', async () => {
    const { page } = await visitInsights(SCREENS.desktop, events(10))
    const reached: string[] = []
    for (let step = 0; step < 10; step += 1) {
      await page.keyboard.press('Tab')
      reached.push(
        await page.evaluate<string>('document.activeElement.id || document.activeElement.textContent'),
      )
    }
    expect(reached.slice(0, 8)).toEqual([
      'platformctl',
      'range',
      'kind',
      'Show as a table',
      'export',
      'delete',
      'record',
      'Go to the start page',
    ])
    await page.getByText('Show as a table').press('Enter')
    expect(await page.getByRole('table', { name: 'Events on each day' }).getByRole('row').count()).toBe(11)
    await page.getByRole('switch').press('Space')
    expect(await page.evaluate(`localStorage['platform.optOut']`)).toBe('1')
    await page.getByText('Nothing is recorded and no errors are reported.').waitFor()
    await page.getByRole('switch').press('Space')
    expect(await page.evaluate(`localStorage['platform.optOut']`)).toBeUndefined()
  })

  test('my data can be exported and deleted, after being asked', async () => {
    const { page, another } = await visitInsights(SCREENS.desktop, events(12))
    const other = await another()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const file = await download
    expect(file.suggestedFilename()).toMatch(/^insights-\d{4}-\d\d-\d\d\.json$/)
    const exported = JSON.parse(await readFile(await file.path(), 'utf8')) as {
      version: number
      events: unknown[]
    }
    expect(exported.version).toBe(1)
    expect(exported.events).toHaveLength(12)

    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog', { name: 'Delete your data?' }).waitFor()
    expect(await findingsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    expect(await page.locator('#total').textContent()).toBe('12')
    await page.getByRole('button', { name: 'Delete…' }).click()
    // What is being sent just now goes too.
    await page.evaluate(`localStorage.setItem('platform.batch', '["batch-1",[]]')`)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Your data was deleted from this browser.').waitFor()
    expect(await page.evaluate('localStorage.length')).toBe(0)
    await other.getByText('Nothing is recorded in this browser yet.').waitFor()
    // A message that is no longer true goes.
    await other.evaluate(
      `localStorage.setItem('platform.event.zzzzzzzzz.1', JSON.stringify(['page.viewed', Date.now(), {}]))`,
    )
    await expect.poll(() => page.locator('#said').textContent()).toBe('')
  })

  test('events of a kind that the platform no longer has are counted, exported and deleted too', async () => {
    const { page } = await visitInsights(SCREENS.desktop, [['lesson.deleted', Date.now(), { day: 1 }]])
    expect(await page.locator('#kept').textContent()).toBe('This browser holds 1 event.')
    expect(await page.getByText('Nothing is recorded in this browser yet.').isVisible()).toBe(false)
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const exported = JSON.parse(await readFile(await (await download).path(), 'utf8')) as {
      events: unknown[]
    }
    expect(exported.events).toMatchObject([{ kind: 'lesson.deleted', properties: { day: 1 } }])
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Your data was deleted from this browser.').waitFor()
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })

  test('a tab in which recording was switched off says so when another switches it on again', async () => {
    const { page, another } = await visitInsights(SCREENS.desktop)
    await page.locator('#record').uncheck()
    const other = await another()
    await other.locator('#record').check()
    await page.getByText('Events are recorded in this browser.').waitFor()
    expect(await page.locator('#record').isChecked()).toBe(true)
  })

  test('reading a lesson counts it on the insights page as the visitor’s own', async () => {
    const { page, url } = await visitInsights(SCREENS.desktop)
    await page.goto(url.replace('/insights', '/lessons/1'))
    await page.goto(url)
    expect(await page.getByText('Sample data.', { exact: true }).isVisible()).toBe(false)
    expect(await page.getByRole('table', { name: 'Lessons viewed and completed' }).textContent()).toContain(
      'day-1',
    )
  })

  test('printed, it has no buttons and no filters', async () => {
    const { page } = await visitInsights(SCREENS.desktop, events(10))
    await page.emulateMedia({ media: 'print' })
    for (const hidden of ['.controls', '#export', '#record', 'main a[href="/"]'])
      expect(await page.locator(hidden).isVisible(), hidden).toBe(false)
    expect(await page.getByRole('heading', { name: 'Activity' }).isVisible()).toBe(true)
    await keepScreenshot(page, 'insights-print')
  })

  test('data that other scripts left in storage is sanitized again, and shown as text', async () => {
    const { page, faults } = await visitInsights(SCREENS.desktop, [
      ['device.selected', Date.now(), { device: '<img src=x onerror=alert(1)>', email: 'anna@example.com' }],
      ['lesson.deleted', Date.now(), {}],
      [],
    ])
    expect(await page.locator('#total').textContent()).toBe('1')
    expect(await page.getByRole('rowheader', { name: '<img src=x onerror=alert(1)>' }).count()).toBe(1)
    expect(await page.locator('img').count()).toBe(0)
    expect(faults).toEqual([])
  })

  test('bars are as long as their numbers, and a German page says numbers and unnamed rows in German', async () => {
    const german = openPlatform({
      env: {},
      platform: definePlatform({
        preset: 'base',
        brand: { language: 'de' },
        events: { 'kiln.rated': { kiln: 'string', stars: 'number' } },
        insights: {
          sections: [
            {
              id: 'stars',
              heading: 'Stars',
              caption: 'Stars',
              empty: 'None.',
              rowHead: 'Kiln',
              by: ['kiln'],
              bars: true,
              columns: [
                { head: 'Mean', kind: 'kiln.rated', compute: 'mean', property: 'stars' },
                { head: 'All', kind: 'kiln.rated', compute: 'count' },
              ],
            },
          ],
        },
      }),
    })
    const rated = [
      { kiln: 'a', stars: 5 },
      { kiln: 'b', stars: 2 },
      { kiln: 'b', stars: 3 },
      { kiln: 'c' },
      { stars: -4 },
    ]
    const { page } = await visitInsights(
      { ...SCREENS.desktop, locale: 'de-AT' },
      rated.map((properties) => ['kiln.rated', Date.now(), properties]),
      await serveWeb(german),
    )
    const rows = page.locator('#stars tbody tr')
    expect(await rows.locator('th').allTextContents()).toEqual(['(ohne Namen)', 'a', 'b', 'c'])
    expect(await rows.locator('.bar ~ .value').allTextContents()).toEqual(['-4', '5', '2,5', '–'])
    const bars = await rows.locator('.bar').all()
    expect(await Promise.all(bars.map((bar) => bar.getAttribute('style')))).toEqual(
      ['0%', '100%', '50%', '0%'].map((share) => `--share: ${share};`),
    )
  })

  test('a full ring of ten thousand events is drawn', async () => {
    const { page, faults } = await visitInsights(SCREENS.desktop, events(10_000))
    expect(await page.locator('#total').textContent()).toBe((10_000).toLocaleString())
    expect(faults).toEqual([])
  })

  test('without scripts the page says why it is empty', async () => {
    const { page } = await visitInsights({ ...SCREENS.desktop, javaScriptEnabled: false })
    expect(await page.locator('noscript .note').isVisible()).toBe(true)
    expect(await page.getByText('Sample data.', { exact: true }).isVisible()).toBe(false)
  })
})
