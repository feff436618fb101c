import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

const folder = process.env.SCREENSHOTS ?? fileURLToPath(new URL('../../.screenshots/', import.meta.url))

/** Checks that axe cannot decide: the contrast of one character, and of text that is scrolled out of its box. */
const UNDECIDABLE = ['shortTextContent', 'bgOverlap', 'elmPartiallyObscured']

/** The findings of axe, and the checks that it could not decide but should have. */
export async function findingsOf(page: Page): Promise<string[]> {
  // axe cannot enter a frame without scripts; mails in such frames are linted on their own.
  const builder = new AxeBuilder({ page }).setLegacyMode(true).disableRules(['frame-tested'])
  const { violations, incomplete } = await builder.analyze()
  const undecided = incomplete.map((one) => ({
    ...one,
    nodes: one.nodes.filter(({ any }) => !any.some(({ data }) => UNDECIDABLE.includes(data?.messageKey))),
  }))
  return [...violations, ...undecided].flatMap(({ id, nodes }) =>
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
