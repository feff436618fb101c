import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Host } from '../core/host.ts'
import { ALWAYS, fileText, typeOf } from './files.ts'
import type { Known, Witness } from './witness.ts'

/** A client that is slow, sends much or keeps many connections must not stop a process that others rely on. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 5000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
} as const
const MOST_CONNECTIONS = 500
const NONCE = /^[\w-]{16,64}$/

const FIELDS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
}
const POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"

/** Serves the platform’s status as last known, and the vote of this witness. */
export async function serveWitness(
  { clock }: Pick<Host, 'clock'>,
  witness: Pick<Witness, 'known' | 'vote'>,
  name: string,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer(LIMITS, (request, response) => {
    const send = (status: number, type: string, body: string, fields: Record<string, string> = {}) =>
      void response
        .writeHead(status, {
          ...FIELDS,
          'Content-Type': type,
          'Content-Security-Policy': POLICY,
          'Content-Length': Buffer.byteLength(body),
          ...fields,
        })
        .end(request.method === 'HEAD' ? undefined : body)
    const json = (status: number, body: unknown) => send(status, typeOf('.json'), JSON.stringify(body))
    const say = (status: number, text: string, fields = {}) => send(status, typeOf(''), `${text}\n`, fields)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return say(405, 'A witness takes GET only.', { Allow: 'GET, HEAD', Connection: 'close' })
    const url = URL.parse(request.url ?? '/', 'http://witness.invalid')
    if (url === null) return say(400, 'The address is malformed.')
    const known = witness.known()
    const own = ownView(name, known, clock.now())
    if (url.pathname === '/health') return json(200, own)
    if (url.pathname === '/vote') {
      const nonce = url.searchParams.get('nonce') ?? ''
      return NONCE.test(nonce)
        ? json(200, witness.vote(nonce))
        : json(400, { message: 'The nonce is missing.' })
    }
    const { snapshot } = known
    const file = url.pathname === '/' ? 'index.html' : url.pathname.slice(1)
    const body = snapshot && fileText({ ...known, snapshot }, file, clock.now())
    if (body === undefined)
      return snapshot === undefined && ALWAYS.includes(file)
        ? say(503, 'This witness has not reached the platform yet.', { 'Retry-After': '60' })
        : say(404, 'There is no such page.')
    if (file === 'status.json') return json(200, { ...(JSON.parse(body) as object), witness: own })
    return send(200, typeOf(file), body, fieldsOf(file, body))
  })
  server.maxConnections = MOST_CONNECTIONS
  server.on('clientError', (_, socket) => socket.destroy())
  // The system could not accept a connection: the next one may succeed. A port that is taken rejects below.
  server.on('error', () => {})
  await once(server.listen(port, host), 'listening')
  return {
    // It listens on a port, not on a socket file.
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** What this witness itself sees: degraded if it could not do its work, whatever the platform does. */
function ownView(name: string, known: Known, now: number) {
  const { snapshot, confirmedAt, view, reason, isOutage, peers, fault } = known
  const silent = Object.entries(peers).flatMap(([url, why]) => (why === undefined ? [] : [`${url}: ${why}`]))
  const isReady = snapshot !== undefined && silent.length === 0 && fault === undefined
  return {
    service: 'witness',
    name,
    state: isReady ? 'ok' : 'degraded',
    platform: view,
    outage: isOutage,
    ageSeconds: confirmedAt === 0 ? null : Math.max(0, Math.round((now - confirmedAt) / 1000)),
    reason: reason ?? null,
    silentPeers: silent,
    fault: fault ?? null,
  }
}

function fieldsOf(file: string, body: string): Record<string, string> {
  if (file === 'badge.svg')
    return { 'Cache-Control': 'public, max-age=60', 'Cross-Origin-Resource-Policy': 'cross-origin' }
  if (!file.endsWith('.html')) return {}
  const nonce = /<script type="module" nonce="([\w+/=]+)"/.exec(body)?.[1]
  const script = nonce === undefined ? '' : `; script-src 'nonce-${nonce}'; connect-src 'self'`
  return { 'Content-Security-Policy': `${POLICY}; style-src 'unsafe-inline'; img-src data:${script}` }
}
