import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { escapeHtml } from '../../core/mail/template.ts'

/** Serves pages to requests for a loopback name only: a site whose name points here could read them otherwise (DNS rebinding). */
export async function serveLocally(port: number, pages: Hono) {
  const app = new Hono()
  app.use(async (c, next) => {
    const host = c.req.header('host') ?? ''
    if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/i.test(host)) return c.text('Ask 127.0.0.1.\n', 421)
    await next()
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
    return c.header('Referrer-Policy', 'no-referrer')
  })
  app.route('/', pages)
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }))
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export type LocalEvents = ReturnType<typeof createEvents>

/** Server-sent events, to every page that is open. */
export function createEvents() {
  const pages = new Set<ReadableStreamDefaultController>()
  return {
    tell(data: string): void {
      for (const page of pages) page.enqueue(Buffer.from(`data: ${data}\n\n`))
    },
    stream(): Response {
      let page: ReadableStreamDefaultController
      const body = new ReadableStream({
        start(opened) {
          page = opened
          pages.add(page)
          page.enqueue(Buffer.from(': open\n\n'))
        },
        cancel: () => void pages.delete(page),
      })
      return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })
    },
  }
}

/** Answers with a whole page around a body. Its policy admits what it brings itself, this site, and frames of `frames`. */
export function pageOf(page: {
  readonly title: string
  readonly style: string
  readonly body: string
  readonly script?: string
  readonly frames?: string
}): Response {
  const { title, style, body, script, frames = '' } = page
  const nonce = randomBytes(16).toString('base64')
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${BASE_STYLE}${style}</style>
</head>
<body>
${body}${script ? `\n<script nonce="${nonce}">${HELPERS}${script}</script>` : ''}
</body>
</html>`
  return new Response(html, {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; frame-src 'self' ${frames}; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'self'`,
    },
  })
}

/** For the script of every page: plain JavaScript, because these pages are served without a build. */
const HELPERS = `
const $ = (id) => document.getElementById(id)
const all = (selector) => [...document.querySelectorAll(selector)]
const json = async (url, options) => (await fetch(url, options)).json()
const element = (tag, parts = {}, ...children) => { const made = Object.assign(document.createElement(tag), parts); made.append(...children); return made }
const plural = (count, noun) => count + ' ' + noun + (count === 1 ? '' : 's')
const press = (buttons, isPressed) => { for (const button of buttons) button.setAttribute('aria-pressed', String(isPressed(button))) }
const copyBy = async (button, text) => {
  const label = button.textContent
  await navigator.clipboard.writeText(text)
  button.textContent = 'Copied'
  setTimeout(() => { button.textContent = label }, 2000)
}
`

const BASE_STYLE = `
:root { --ground: #f6f5f2; --paper: #fff; --ink: #1d1f24; --quiet: #5c6069; --line: #dddad2; --accent: #3451b2; --on-accent: #fff; --chosen: #e9edfb; --bad: #b3261e; --warn: #7a4d00; --good: #1b6e3c; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --paper: #1c1f25; --ink: #eceef2; --quiet: #a3a9b5; --line: #333842; --accent: #9db2ff; --on-accent: #14161a; --chosen: #262d45; --bad: #ff8a80; --warn: #ffc66d; --good: #7fd99b; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; padding: .6rem 1.25rem; border-bottom: 1px solid var(--line); background: var(--paper); }
h1 { font-size: 1.1rem; margin: 0; }
header p { margin: 0; color: var(--quiet); flex: 1; min-width: 8rem; font-variant-numeric: tabular-nums; }
a { color: var(--accent); }
button, input, select { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: .3rem .8rem; max-width: 100%; }
button { cursor: pointer; }
button[aria-pressed=true] { background: var(--chosen); border-color: var(--accent); }
:is(button, input, select, a, summary, [tabindex]):focus-visible { outline: 2px solid var(--accent); outline-offset: -1px; }
ol, ul { list-style: none; margin: 0; padding: 0; }
code, pre, dd { font: 13px/1.55 ui-monospace, monospace; overflow-wrap: anywhere; }
.quiet { color: var(--quiet); } .good { color: var(--good); } .warning { color: var(--warn); } .error { color: var(--bad); }
.fault { margin: .75rem 0 0; padding: .5rem .75rem; border: 1px solid var(--bad); border-radius: 8px; color: var(--bad); overflow-wrap: anywhere; }
.pages { display: flex; gap: .25rem; } .pages a { padding: .25rem .7rem; border-radius: 8px; color: var(--quiet); text-decoration: none; } .pages a[aria-current] { background: var(--chosen); color: var(--ink); }
@media (max-width: 52rem) { button, input, select, .pages a, [role=tab] { min-height: 44px; } .pages a { display: inline-flex; align-items: center; } }
`
