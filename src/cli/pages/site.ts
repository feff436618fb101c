import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { escapeHtml } from '../../core/mail/template.ts'
import { BASE_STYLE } from './style.ts'

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
