import { tmpdir } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { ANNOUNCEMENT } from '../../src/cli/demo/live.ts'
import { runDemo } from '../../src/cli/demo/run.ts'
import { testContext } from '../support/context.ts'
import { inChromium } from './chromium.ts'
import { findingsOf, fitsWidth, keepScreenshot } from './looks.ts'

inChromium('the live page of the demo', (open) => {
  test('every button breaks what it says, is told by the page, an alert and a mail, and heals', {
    timeout: 180_000,
  }, async () => {
    const ending = new AbortController()
    const { context, stderr } = testContext({ signal: ending.signal })
    const demo = runDemo(context, { address: 'you@example.com', dayMs: 100, exit: false })
    onTestFinished(async () => {
      ending.abort()
      await demo
    })
    await expect.poll(stderr, { timeout: 30_000 }).toMatch(/seven lessons/)
    const url = /live +(http:\S+)/.exec(stderr())?.[1] ?? ''
    const { page } = await open({ width: 1440 })
    await page.goto(url)
    const story = page.locator('#story')
    const verdict = page.frameLocator('#site').locator('h1').first()
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const long = { timeout: 40_000 }
    await expect.poll(() => verdict.textContent(), long).toMatch(/Everything works/)
    expect(await findingsOf(page)).toEqual([])

    await press('Break mail')
    await story.getByText('Alert: platformctl: Mail (web) is failing').waitFor(long)
    await expect.poll(() => verdict.textContent(), long).toMatch(/Mail .*failing/)
    await press('Heal')
    await story.getByText('Alert: platformctl: Mail (web) works again').waitFor(long)

    await press('Stop API')
    await story.getByText(/Alert: platformctl: API .*is failing/).waitFor(long)
    await page.locator('#from').getByText('API is not working').waitFor(long)
    await press('Hang the store')
    await story.getByText(/Alert: platformctl: Store .*is failing/).waitFor(long)
    expect(await page.getByRole('button', { name: 'Announce maintenance' }).isDisabled()).toBe(true)
    await keepScreenshot(page, 'live-broken')
    await press('Heal')
    await story.getByText(/Alert: platformctl: Store .*works again/).waitFor(long)
    await expect.poll(() => verdict.textContent(), long).toMatch(/Everything works/)

    await press('Announce maintenance')
    await page.frameLocator('#site').getByText(ANNOUNCEMENT).first().waitFor(long)
    await press('Post a bounce')
    await story.getByText('A bounce was reported: that address gets no more mail').waitFor(long)
    expect(await page.locator('#command').textContent()).toContain(
      `email suppressions list --data ${tmpdir()}`,
    )
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await fitsWidth(page)).toBe(true)
    expect(await findingsOf(page)).toEqual([])
    await keepScreenshot(page, 'live-phone')
    await page.getByRole('button', { name: 'Inbox' }).click()
    await page.frameLocator('#site').getByRole('heading', { name: 'Inbox' }).waitFor(long)
  })
})
