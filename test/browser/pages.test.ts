import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openPlatform } from '../../src/daemon/index.ts'
import { serve } from '../support/servers.ts'
import { testTransport } from '../support/test-transport.ts'
import { inChromium, serveWeb } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

inChromium('the pages of the web service', (open) => {
  async function visit(url: string, { dark = false, phone = false } = {}) {
    const { page, faults } = await open({ dark, ...(phone && { width: 320, height: 700 }) })
    await page.goto(url)
    return { page, faults }
  }

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
      const { page, faults } = await visit((await serveWeb(openPlatform({ env: {} }))) + route, screen)
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
      expect(await findingsOf(page)).toEqual([])
      expect(await fitsWidth(page)).toBe(true)
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
    service = await serveWeb(platform)

    const { page, faults } = await visit(listed, { phone: true })
    const subscribe = async (address: string) => {
      await page.getByRole('textbox', { name: 'E-mail address' }).fill(address)
      await page.getByRole('button', { name: 'Subscribe' }).click()
    }
    const answer = page.getByRole('status')
    await subscribe('reader@example.com')
    await expect
      .poll(() => answer.textContent())
      .toBe('If this address can subscribe, a link to confirm it is on its way.')
    await expect.poll(() => recipients).toEqual(['reader@example.com'])
    expect(faults).toEqual([])
    expect(await findingsOf(page)).toEqual([])
    expect(await fitsWidth(page)).toBe(true)
    await subscribe('reader@example')
    await expect.poll(() => answer.textContent()).toBe('This is not a complete e-mail address.')

    const { page: unlisted } = await visit(listed.replace('localhost', '127.0.0.1'))
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
    const url = await serveWeb(platform)
    for (const { name, width, dark } of [
      { name: 'desktop', width: 1280, dark: false },
      { name: 'phone', width: 390, dark: true },
    ]) {
      const { page } = await open({ javaScriptEnabled: false, dark, width })
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
    const { page } = await visit(url)
    expect(await findingsOf(page)).toEqual([])
    await page.goto(`${url}/lessons/1`)
    expect(await findingsOf(page)).toEqual([])
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('ada@localhost')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Check the address' }).waitFor()
    expect(await findingsOf(page)).toEqual([])
  })
})
