import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { perTick } from '../../core/calls.ts'
import { httpStatus } from '../../core/health/probe.ts'
import type { Answered } from '../metrics/metrics.ts'
import { REQUEST_ID } from './context.ts'
import { JSON_FIELDS } from './respond.ts'
import type { Site } from './route.ts'

type Noting = Pick<Site, 'log' | 'service'> & { readonly metrics: Pick<Site['metrics'], 'answered'> }

/** Counts an answer in the metrics and logs it. Quiet for health polls that pass: they would fill most of the log. */
export function noteAnswer(site: Noting, answered: Answered, requestId: string, isQuiet: boolean): void {
  const { log, metrics, service } = site
  metrics.answered(answered, service.health)
  const { route = '(none)', durationMs } = answered
  log[isQuiet ? 'debug' : 'info']('request', 'a request was answered', {
    ...answered,
    route,
    durationMs: Math.round(durationMs * 10) / 10,
    requestId,
  })
}

export type Poll = ReturnType<typeof createPoll>

/**
 * The fast path for health polls from load balancers, containers and monitors: a plain GET of a service's health as
 * JSON. It writes the same bytes as the full path, without creating a Request and a Response. Polls that arrive in one
 * turn of the event loop share a run, which begins after the last of them arrived.
 */
export function createPoll(site: Pick<Site, 'health' | 'clock'> & Noting) {
  const { service, health, clock } = site
  const fixed = Object.entries(JSON_FIELDS).flat()
  const run = perTick(async () => {
    const report = await health.check({ deep: false })
    const body = JSON.stringify(report)
    const fields = [...fixed, 'Content-Length', String(Buffer.byteLength(body)), 'X-Request-Id']
    return { status: httpStatus(report.state), fields, body }
  })

  /** Answers a plain poll and says so; leaves any other request alone. `beforeAnswer` is called just before the answer. */
  return (
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    beforeAnswer: (outgoing: ServerResponse) => void,
  ): boolean => {
    if (incoming.url !== service.health || incoming.method !== 'GET' || incoming.httpVersion !== '1.1')
      return false
    const given = plainId(incoming.rawHeaders)
    if (given === undefined) return false
    const requestId = given !== '' && REQUEST_ID.test(given) ? given : randomUUID()
    const began = clock.monotonic()
    run().then(
      ({ status, fields, body }) => {
        beforeAnswer(outgoing)
        outgoing.writeHead(status, fields.concat(requestId)).end(body)
        const answered = { service: service.name, method: 'GET', route: service.health, status }
        const durationMs = clock.monotonic() - began
        noteAnswer(site, { ...answered, durationMs }, requestId, status === 200)
      },
      // The checks never reject, so this is a bug of ours: send no answer rather than a wrong one.
      () => outgoing.destroy(),
    )
    return true
  }
}

const MOST_FIELDS = 20

/** The X-Request-Id of a request that asks for nothing special (empty without one); undefined for any other. */
function plainId(rawHeaders: readonly string[]): string | undefined {
  if (rawHeaders.length > 2 * MOST_FIELDS) return undefined
  let id = ''
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase()
    const value = rawHeaders[index + 1] ?? ''
    if (name === 'host') hosts += HOST.test(value) ? 1 : 2
    else if (name === 'x-request-id') id = value
    else if (name === 'accept' ? !PLAIN_ACCEPT.has(value) : !WITHOUT_EFFECT.has(name)) return undefined
  }
  return hosts === 1 ? id : undefined
}

/** Hosts that the adapter accepts without a URL parser. */
const HOST = /^[a-z0-9.-]+(?::\d{1,5})?$/i
const PLAIN_ACCEPT: ReadonlySet<string> = new Set(['*/*', 'application/json', 'application/json, */*'])
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'pragma',
  'sec-fetch-mode',
  'traceparent',
  'user-agent',
  'x-forwarded-for',
  'x-forwarded-proto',
])
