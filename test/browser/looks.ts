import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

const folder = process.env.SCREENSHOTS ?? fileURLToPath(new URL('../../.screenshots/', import.meta.url))

/** What axe finds, and what it could not decide. */
export async function findingsOf(page: Page): Promise<string[]> {
  // What scrolls sideways is unfolded: axe cannot judge what it cannot see.
  await page.evaluate(`for (const row of document.querySelectorAll('ol, [role=tablist]')) {
    row.style.flexWrap = 'wrap'
    row.style.overflow = 'visible'
  }`)
  // axe cannot enter a frame without scripts; mails in such frames are linted on their own.
  const builder = new AxeBuilder({ page }).setLegacyMode(true).disableRules(['frame-tested'])
  const { violations, incomplete } = await builder.analyze()
  return [...violations, ...incomplete].flatMap(({ id, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${html.slice(0, 120)} ${any[0]?.message ?? ''}`),
  )
}

/** Does the page fit its window, without a horizontal scroll bar? */
export function fitsWidth(page: Page): Promise<boolean> {
  return page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth')
}

/** Keeps the whole page as a picture in `.screenshots`, or the folder in SCREENSHOTS: an artifact of the test run. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true })
}
