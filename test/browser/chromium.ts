import { existsSync } from 'node:fs'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest'
import type { Handler } from '../../src/daemon/embedding.ts'
import { listen } from '../../src/daemon/listen.ts'

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'

/** True when there is a Chromium to test in; otherwise says aloud that the tests are skipped. */
function hasChromium(): boolean {
  if (existsSync(executablePath)) return true
  process.stderr.write(`skipped: no Chromium at ${executablePath}; install it, or name one in CHROMIUM\n`)
  return false
}

/** Starts Chromium. A wait for something that never appears fails after 10 s and names it, before the test's own limit. */
export async function launchChromium(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async (options) => {
    const context = await newContext(options)
    context.setDefaultTimeout(10_000)
    return context
  }
  return browser
}

interface Screen extends BrowserContextOptions {
  readonly width?: number
  readonly height?: number
  readonly dark?: boolean
}

interface Opened {
  readonly context: BrowserContext
  readonly page: Page
  /** Errors that no script of any page of the context has caught. */
  readonly errors: string[]
  /** The same, and what was written to the console as an error. */
  readonly faults: string[]
}

/** Tests of pages in one Chromium: `open` gives an empty page in a context of its own, which ends with its test. */
export function inChromium(what: string, tests: (open: (screen?: Screen) => Promise<Opened>) => void): void {
  describe.runIf(hasChromium())(`${what} in Chromium`, () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launchChromium()
    })
    afterAll(() => browser?.close())
    tests(async ({ width = 1280, height = 900, dark = false, ...more } = {}) => {
      const colorScheme = dark ? 'dark' : 'light'
      const context = await browser.newContext({ colorScheme, viewport: { width, height }, ...more })
      onTestFinished(() => context.close())
      const [errors, faults]: [string[], string[]] = [[], []]
      context.on('page', (page) => {
        page.on('pageerror', ({ message }) => void [errors, faults].map((one) => one.push(message)))
        page.on('console', (one) => void (one.type() === 'error' && faults.push(one.text())))
      })
      return { context, page: await context.newPage(), errors, faults }
    })
  })
}

/** A desktop and a phone, by day and by night. */
export const SCREENS = [1280, 390].flatMap((width) => [false, true].map((dark) => ({ width, dark })))
export const screenName = ({ width, dark }: (typeof SCREENS)[number]) => `${width}-${dark ? 'dark' : 'light'}`

/** Serves the web service of a platform on loopback until the test ends; gives its root. */
export async function serveWeb(platform: { readonly web: Handler; close(): Promise<void> }): Promise<string> {
  const listener = await listen('127.0.0.1', 0)
  listener.serve(platform.web)
  onTestFinished(async () => {
    await listener.close()
    await platform.close()
  })
  return `http://127.0.0.1:${listener.port}`
}
