import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'

/** True when there is a Chromium to test in; otherwise says aloud that the tests are skipped. */
export function hasChromium(): boolean {
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
