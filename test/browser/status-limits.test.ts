import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { manyServices } from '../support/many-services.ts'
import { inChromium } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

const NOW = Date.UTC(2026, 10, 21, 7, 26, 34)
/** Fifty-two letters without a place to break. */
const WORD = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswer'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 320, height: 700 }

inChromium('the status page at its limits', (open) => {
  const script = readFileSync(new URL('../../dist/status.js', import.meta.url), 'utf8')

  async function openWith(
    many: Parameters<typeof manyServices>[1] = {},
    options: Parameters<typeof open>[0] = {},
  ) {
    const { page: start, all } = manyServices(NOW, { script, ...many })
    const { page } = await open(options)
    await page.route('**/*', (route) => {
      const { pathname } = new URL(route.request().url())
      const found = { '/': start, '/incidents/index.html': all }[pathname]
      if (found === undefined) return route.fulfill({ status: 404 })
      const headers = { 'Content-Security-Policy': found.policy }
      return route.fulfill({ body: found.html, contentType: 'text/html', headers })
    })
    await page.goto('http://status.example/')
    return { page, start, all }
  }

  async function isUsable(page: Page, picture: string): Promise<void> {
    expect(await fitsWidth(page), picture).toBe(true)
    expect(await findingsOf(page), picture).toEqual([])
    await keepScreenshot(page, `status-limit-${picture}`)
  }

  test.each([
    ['phone', PHONE],
    ['desktop', DESKTOP],
  ] as const)(
    'names and texts of fifty-two letters break, on a %s',
    { timeout: 120_000 },
    async (name, viewport) => {
      expect(WORD).toHaveLength(52)
      const { page } = await openWith({ services: 3, incidents: 20, word: WORD }, { viewport })
      await isUsable(page, `words-${name}`)
      await page.goto('http://status.example/incidents/index.html')
      await isUsable(page, `words-incidents-${name}`)
    },
  )

  test('zoomed to 200 %, it reflows and nothing is cut', { timeout: 120_000 }, async () => {
    const viewport = { width: DESKTOP.width / 2, height: DESKTOP.height / 2 }
    const { page } = await openWith({ services: 5, incidents: 20 }, { viewport, deviceScaleFactor: 2 })
    await isUsable(page, 'zoom')
    const cut = `[...document.querySelectorAll('main *')].filter((one) => getComputedStyle(one).overflowX !== 'visible' && !one.matches('svg *, svg, thead') && one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML.slice(0, 80))`
    expect(await page.evaluate(cut)).toEqual([])
  })

  test('a hundred services can be searched by the keyboard alone', { timeout: 120_000 }, async () => {
    const { page } = await openWith({ services: 100 })
    expect(await page.locator('details.service').count()).toBe(100)
    await isUsable(page, 'hundred')
    await page.getByRole('searchbox').focus()
    await page.keyboard.type('99')
    await page.getByText('1 of 100').waitFor()
    for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key)
    expect(await page.locator('#service-service-99').getAttribute('open')).not.toBeNull()
  })

  test('a thousand incidents leave the page small, and are listed on their own', {
    timeout: 120_000,
  }, async () => {
    const { page, start, all } = await openWith({ services: 5, incidents: 1000 })
    expect(start.html.length - script.length).toBeLessThan(60 * 1024)
    expect(all.html.length).toBeLessThan(400 * 1024)
    await isUsable(page, 'thousand')
    await page.getByRole('link', { name: /1,?000/ }).click()
    await page.waitForLoadState()
    await page.getByText(/600/).waitFor()
    expect(await page.locator('.list li').count()).toBe(400)
  })

  test('with Tab alone everything is reached in its order, and shows where the focus is', {
    timeout: 120_000,
  }, async () => {
    const { page } = await openWith({ services: 3, incidents: 3 })
    const focusable = `[...document.querySelectorAll('a[href], summary, button, input, [tabindex="0"]')].filter((one) => one.checkVisibility()).length`
    const now = `(() => {
      const one = document.activeElement
      const [style, box] = [getComputedStyle(one), one.getBoundingClientRect()]
      window.seen ??= []
      const isNew = !window.seen.includes(one)
      const isLater = window.seen.length === 0 || !!(window.seen.at(-1).compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING)
      window.seen.push(one)
      return { isNew, isLater, outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, inView: box.bottom > 0 && box.top < innerHeight }
    })()`
    const many = Number(await page.evaluate(focusable))
    expect(many).toBeGreaterThan(15)
    for (let index = 0; index < many; index += 1) {
      await page.keyboard.press('Tab')
      expect(await page.evaluate(now)).toEqual({ isNew: true, isLater: true, outline: true, inView: true })
    }
    await page.locator('.menu summary').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Atom' }).waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Escape')
    expect(await page.evaluate('document.activeElement.tagName')).toBe('SUMMARY')
    expect(await page.locator('.menu').getAttribute('open')).toBeNull()
  })

  test('nothing moves, whether or not a person asks for less motion', async () => {
    for (const reducedMotion of ['reduce', 'no-preference'] as const) {
      const { page } = await openWith({ services: 12, incidents: 3 }, { reducedMotion })
      await page.locator('details.service summary').first().click()
      expect(await page.evaluate('document.getAnimations().length')).toBe(0)
      const moving = `[...document.querySelectorAll('*')].filter((one) => { const style = getComputedStyle(one); return style.transitionDuration !== '0s' || style.animationName !== 'none' || style.scrollBehavior !== 'auto' }).length`
      expect(await page.evaluate(moving)).toBe(0)
    }
  })

  test.each(['light', 'dark'] as const)(
    'in forced %s colors states keep their shapes, and controls their borders',
    { timeout: 120_000 },
    async (colorScheme) => {
      const { page } = await openWith({ services: 3, incidents: 3 }, { forcedColors: 'active', colorScheme })
      await isUsable(page, `forced-${colorScheme}`)
      const ground = await page.evaluate('getComputedStyle(document.body).backgroundColor')
      const strokes = `[...document.querySelectorAll('main .sign')].map((one) => getComputedStyle(one).color)`
      for (const color of (await page.evaluate(strokes)) as string[]) expect(color).not.toBe(ground)
      // Each state is a pattern of its own, and not of the color of the page.
      const patterns = `[...document.querySelectorAll('pattern')].map((one) => [one.firstElementChild.getAttribute('d'), getComputedStyle(one).fill])`
      const drawn = (await page.evaluate(patterns)) as [string, string][]
      expect(new Set(drawn.map(([shape]) => shape)).size).toBe(4)
      for (const [, fill] of drawn) expect(fill).not.toBe(ground)
      expect(
        await page.evaluate(`getComputedStyle(document.querySelector('.menu summary')).borderTopWidth`),
      ).toBe('1px')
    },
  )
})
