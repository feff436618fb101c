import { readFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { serveBodies } from '../support/servers.ts'

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))

/** Requests received on one path, and the response to the next one. */
export interface Received {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Site {
  readonly url: string
  readonly received: Received[]
  /** Gives the answer to a POST; `undefined` breaks the connection after the body was read. */
  answer: (received: Received) => Promise<Response | undefined>
}

/** A page that loads the built browser part as a visitor's browser would, and takes what that sends. */
export async function openSite(): Promise<Site> {
  const received: Received[] = []
  const site = {
    url: '',
    received,
    answer: async (): Promise<Response | undefined> => new Response('{}', { status: 202 }),
  } satisfies Site as Site & { url: string }
  site.url = await serveBodies(async (body, response, request) => {
    if (request.method === 'POST') {
      const one = { url: request.url ?? '', headers: request.headers, body }
      received.push(one)
      const answer = await site.answer(one)
      if (answer === undefined) return void request.socket.destroy()
      return void response
        .writeHead(answer.status, Object.fromEntries(answer.headers))
        .end(await answer.text())
    }
    const pathname = new URL(request.url ?? '/', 'http://site').pathname
    if (!pathname.startsWith('/dist/')) {
      return void response
        .writeHead(200, { 'Content-Type': 'text/html' })
        .end(`<!doctype html><title>a page</title><script type="module">
import * as platform from '/dist/browser.js'
window.platform = platform
</script>`)
    }
    const file = await readFile(path.join(dist, pathname.slice('/dist/'.length))).catch(() => undefined)
    response.writeHead(file ? 200 : 404, { 'Content-Type': 'text/javascript' }).end(file)
  })
  return site
}
