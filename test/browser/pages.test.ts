import { readFile } from 'node:fs/promises'
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { listen } from '../../src/daemon/listen.ts'
import { serve } from '../support/servers.ts'
import { testTransport } from '../support/test-transport.ts'
import { hasChromium, launchChromium } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

describe.runIf(hasChromium())('the pages of the web service in Chromium', () => {
  let browser: Browser
  let origin: string
  let closePlatform: () => Promise<void>
  beforeAll(async () => {
    const platform = openPlatform({ env: {} })
    const listener = await listen('127.0.0.1', 0)
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
      const name = route.replace(/[?].*/, '').replaceAll('/', '-')
      await keepScreenshot(page, `page${name}-${screen.phone ? 'phone-dark' : 'desktop-light'}`)
      expect(faults.filter((fault) => !/status of 4\d\d/.test(fault))).toEqual([])
    },
  )

  test('the form of the examples subscribes from a site of its own if its origin is listed, and says why it cannot', async () => {
    const form = await readFile(new URL('../../examples/subscribe-form.html', import.meta.url), 'utf8')
    const recipients: string[] = []
    let service = ''
    const site = await serve((_, response) => {
      response
        .writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' })
        .end(form.replace('https://platform.example.com', service))
    })
    const listed = site.replace('127.0.0.1', 'localhost')
    const platform = openPlatform({
      env: { CORS_ALLOWED_ORIGINS: listed },
      mailer: testTransport(async ({ to, key }) => {
        recipients.push(to.address)
        return { kind: 'sent', id: key }
      }),
    })
    const listener = await listen('127.0.0.1', 0)
    listener.serve(platform.web)
    onTestFinished(async () => {
      await listener.close()
      await platform.close()
    })
    service = `http://127.0.0.1:${listener.port}`

    const { page, faults } = await open(listed, { phone: true })
    const subscribe = async (address: string) => {
      await page.getByRole('textbox', { name: 'E-mail address' }).fill(address)
      await page.getByRole('button', { name: 'Subscribe' }).click()
    }
    const answer = page.getByRole('status')
    await subscribe('reader@example.com')
    await expect
      .poll(() => answer.textContent())
      .toBe('Look into your mail: a link to confirm the address is on its way.')
    await expect.poll(() => recipients).toEqual(['reader@example.com'])
    expect(faults).toEqual([])
    expect(await violations(page)).toEqual([])
    expect(await overflows(page)).toBe(false)
    await subscribe('reader@example')
    await expect.poll(() => answer.textContent()).toBe('This is not a complete e-mail address.')

    const { page: unlisted } = await open(listed.replace('localhost', '127.0.0.1'))
    await unlisted.getByRole('textbox', { name: 'E-mail address' }).fill('other@example.com')
    await unlisted.getByRole('button', { name: 'Subscribe' }).click()
    await expect
      .poll(() => unlisted.getByRole('status').textContent())
      .toBe('The server cannot be reached. Please try again later.')
    expect(recipients).toEqual(['reader@example.com'])
  })

  test('a visitor subscribes by the keyboard, without scripts, on the page of a lesson and on a phone', async () => {
    const recipients: string[] = []
    const platform = openPlatform({
      env: {},
      mailer: testTransport(async ({ to, key }) => {
        recipients.push(to.address)
        return { kind: 'sent', id: key }
      }),
    })
    const listener = await listen('127.0.0.1', 0)
    listener.serve(platform.web)
    onTestFinished(async () => {
      await listener.close()
      await platform.close()
    })
    const url = `http://127.0.0.1:${listener.port}`
    for (const { name, width, dark } of [
      { name: 'desktop', width: 1280, dark: false },
      { name: 'phone', width: 390, dark: true },
    ]) {
      const context = await browser.newContext({
        javaScriptEnabled: false,
        colorScheme: dark ? 'dark' : 'light',
        viewport: { width, height: 800 },
      })
      onTestFinished(() => context.close())
      const page = await context.newPage()
      const looksRight = async (state: string) => {
        await keepScreenshot(page, `subscribe-${state}-${name}`)
        expect(await fitsWidth(page)).toBe(true)
      }
      for (const path of ['/', '/lessons/1']) {
        await page.goto(`${url}${path}`)
        const field = page.getByRole('textbox', { name: 'E-mail address' })
        expect(await field.getAttribute('autocomplete')).toBe('email')
        for (const target of [field, page.getByRole('button', { name: 'Subscribe' })])
          expect((await target.boundingBox())?.height).toBeGreaterThanOrEqual(44)
        await looksRight(path === '/' ? 'status' : 'lesson')
      }
      await page.getByRole('textbox', { name: 'E-mail address' }).focus()
      // The browser takes this for an address; the platform does not.
      await page.keyboard.type('ada@localhost')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Check the address' }).waitFor()
      await looksRight('refused')
      await page.getByRole('textbox', { name: 'E-mail address' }).fill(`${name}@example.com`)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: 'Check your mail' }).waitFor()
      await looksRight('done')
    }
    await expect.poll(() => recipients).toEqual(['desktop@example.com', 'phone@example.com'])
    // axe needs scripts.
    const { page } = await open(url)
    expect(await findingsOf(page)).toEqual([])
    await page.goto(`${url}/lessons/1`)
    expect(await findingsOf(page)).toEqual([])
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('ada@localhost')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Check the address' }).waitFor()
    expect(await findingsOf(page)).toEqual([])
  })
})
