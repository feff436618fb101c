import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'

/** A site for this machine alone. */
export interface LocalSite {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves pages on 127.0.0.1 (port 0: any), to requests for a loopback name only: a site whose name points at this
 * machine could read them otherwise (DNS rebinding).
 */
export async function serveLocally(port: number, pages: Hono): Promise<LocalSite> {
  const app = new Hono()
  app.use(async (c, next) => {
    const host = c.req.header('host') ?? ''
    if (!/^(?:127\.0\.0\.1|localhost)(?::\d+)?$/i.test(host)) return c.text('Ask 127.0.0.1.\n', 421)
    await next()
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
    c.header('Referrer-Policy', 'no-referrer')
    return undefined
  })
  app.route('/', pages)
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
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
