import { registerHooks } from 'node:module'

// What a page does with error reporting, without a browser: the built script with the parts of one that the real SDK
// needs. Run by page.test.ts in a process of its own, because the SDK is global to a process.
const [dsn, objection] = process.argv.slice(2)
const loaded: string[] = []
registerHooks({
  load(url, context, next) {
    loaded.push(url)
    return next(url, context)
  },
})

const nothing = () => {}
const items = new Map<string, string>()
const localStorage = {
  getItem: (name: string) => items.get(name) ?? null,
  setItem: (name: string, value: string) => void items.set(name, value),
  removeItem: (name: string) => items.delete(name),
}
/** Events of the document that are listened to, and headers of the page's own requests. */
const observed: string[] = []
let sent = Promise.withResolvers<void>()
const parts = {
  localStorage,
  addEventListener: nothing,
  removeEventListener: nothing,
  document: {
    ...{ visibilityState: 'visible', readyState: 'complete', querySelector: () => null },
    addEventListener: (name: string) => observed.push(name),
    removeEventListener: nothing,
  },
  location: { href: 'https://www.example.com/', origin: 'https://www.example.com', pathname: '/' },
  history: { pushState: nothing, replaceState: nothing },
  fetch: async (...request: Parameters<typeof fetch>) => {
    if (request[0] === '/api') observed.push(...new Headers(request[1]?.headers).keys())
    if (request[0] === '/api') return new Response()
    const answer = await realFetch(...request)
    sent.resolve()
    sent = Promise.withResolvers()
    return answer
  },
}
const realFetch = globalThis.fetch
for (const [name, value] of Object.entries(parts))
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
if (objection === 'gpc') Object.defineProperty(navigator, 'globalPrivacyControl', { value: true })
if (objection === 'opt-out key') localStorage.setItem('platform.optOut', '1')

const page = await import(new URL('../../../dist/browser.js', import.meta.url).href)
if (objection === 'until consent') page.optOut()
page.start({ dsn, build: '2026.11.21-abc', environment: 'staging' })
/** What the SDK itself catches, as of an error that nobody caught. */
const uncaught = (text: string) =>
  (globalThis as { onerror?: (...of: unknown[]) => void }).onerror?.(text, '', 1, 1, new Error(text))
process.on('exit', () => process.stderr.write(observed.join('\n')))
process.on('exit', () => process.stdout.write(loaded.filter((url) => url.includes('errortrack')).join('\n')))
page.reportError(new Error('at first'))
if (objection === 'until consent') {
  page.optOut(false)
  page.reportError(new Error('after consent'))
  await sent.promise
  process.exit()
}
if (objection === undefined) {
  await sent.promise
  for (const say of [(text: string) => page.reportError(new Error(text)), uncaught]) {
    page.optOut()
    say('after an objection')
    page.optOut(false)
    say('after it was taken back')
    await sent.promise
  }
  await fetch('/api')
  // Its trace would go on for half a minute.
  process.exit()
}
