import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../core/clock.ts'
import { MINUTE_MS } from '../core/durations.ts'
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
/** After that without a word from the platform, a page says how old it is. */
const STALE_MS = 3 * MINUTE_MS
const NONCE = /^[\w-]{16,64}$/

const FIELDS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
}
const POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"

/** Serves the platform’s status as last known, and the vote of this witness. */
export async function serveWitness({
  witness,
  name,
  host,
  port,
  clock,
}: {
  readonly witness: Pick<Witness, 'known' | 'vote'>
  readonly name: string
  readonly host: string
  readonly port: number
  readonly clock: Pick<Clock, 'now'>
}): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer(LIMITS, (request, response) => {
    const send = (status: number, type: string, body: string, fields: Record<string, string> = {}) =>
      void response
        .writeHead(status, {
          ...FIELDS,
          'Content-Type': `${type}; charset=utf-8`,
          'Content-Security-Policy': POLICY,
          'Content-Length': Buffer.byteLength(body),
          ...fields,
        })
        .end(request.method === 'HEAD' ? undefined : body)
    const json = (status: number, body: unknown) => send(status, 'application/json', JSON.stringify(body))
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(405, 'text/plain', 'A witness takes GET only.\n', {
        Allow: 'GET, HEAD',
        Connection: 'close',
      })
    const url = URL.parse(request.url ?? '/', 'http://witness.invalid')
    if (url === null) return send(400, 'text/plain', 'The address is malformed.\n')
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
    const isKept = ['/', '/status.json', '/status.atom', '/badge.svg'].includes(url.pathname)
    if (!isKept) return send(404, 'text/plain', 'There is no such page.\n')
    if (snapshot === undefined)
      return send(503, 'text/plain', 'This witness has not reached the platform yet.\n', {
        'Retry-After': '60',
      })
    if (url.pathname === '/status.json')
      return json(200, { ...(JSON.parse(snapshot.json) as object), witness: own })
    if (url.pathname === '/status.atom') return send(200, 'application/atom+xml', snapshot.atom)
    if (url.pathname === '/badge.svg')
      return send(200, 'image/svg+xml', known.isOutage ? snapshot.badgeUnreachable : snapshot.badge, {
        'Cache-Control': 'public, max-age=60',
        'Cross-Origin-Resource-Policy': 'cross-origin',
      })
    return send(200, 'text/html', pageOf(known, clock.now()), {
      'Content-Security-Policy': `${POLICY}; style-src 'unsafe-inline'; img-src data:`,
    })
  })
  server.maxConnections = MOST_CONNECTIONS
  server.on('clientError', (_, socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    // It listens on a port, not on a socket file.
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** What this witness itself sees: degraded if it could not do its work, whatever the platform does. */
function ownView(name: string, { snapshot, confirmedAt, view, reason, isOutage, peers }: Known, now: number) {
  const silent = Object.entries(peers).flatMap(([url, why]) => (why === undefined ? [] : [`${url}: ${why}`]))
  const isReady = snapshot !== undefined && silent.length === 0
  return {
    service: 'witness',
    name,
    state: isReady ? 'ok' : 'degraded',
    platform: view,
    outage: isOutage,
    ageSeconds: confirmedAt === 0 ? null : Math.max(0, Math.round((now - confirmedAt) / 1000)),
    reason: reason ?? null,
    silentPeers: silent,
  }
}

const PLACE = '<p id="stale" class="note" role="status" hidden></p>'

/** The platform’s page, with its age at the top once it is not current. */
function pageOf({ snapshot, confirmedAt, isOutage }: Known, now: number): string {
  const { html = '', kept = '' } = snapshot ?? {}
  const age = now - confirmedAt
  if (!isOutage && age < STALE_MS) return html
  const text = kept
    .replace('{minutes}', String(Math.max(0, Math.round(age / MINUTE_MS))))
    .replace('{time}', `${new Date(confirmedAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`)
  return html.replace(PLACE, () => `<p id="stale" class="note" role="status"><strong>${text}</strong></p>`)
}
