import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Ajv } from 'ajv'
import { SignJWT } from 'jose'
import { ERRORS } from '../../src/core/errors.ts'
import type { Service } from '../../src/core/service.ts'
import { healthPath, SERVICES } from '../../test/support/learning.ts'
import { backupFuzz } from './backups.ts'
import { type BadRequest, badRequest } from './bad-request.ts'
import { connection, type Outcome, type RawResponse } from './connection.ts'
import { spawnDaemon } from './daemon.ts'
import { textFault } from './texts.ts'
import { faultAlone } from './unanswered.ts'

export interface FuzzOptions {
  readonly requests: number
  readonly seed: number
  /** The number of the first request: with `requests: 1` it replays that one. */
  readonly from: number
  readonly onProgress?: (done: number) => void
  /** Shown for a replay. */
  readonly onAnswer?: (request: BadRequest, outcome: Outcome) => void
}

export interface FuzzResult {
  readonly faults: readonly { readonly index: number; readonly what: string }[]
  /** How often each status came; 0 for a connection that was closed without an answer. */
  readonly statuses: Readonly<Record<number, number>>
  /** Requests that got no answer in time among the others, and a good one when they were sent again alone. */
  readonly late: readonly number[]
  /** Heap after a collection: when a fifth was done, and at the end. */
  readonly heapMb: { readonly early: number; readonly late: number }
}

const CLIENTS = 24
/** A restore costs what hundreds of requests do. */
const BACKUP_EVERY = 500
const MOST_FAULTS = 20
/** Half-sent requests are given up after this; whole ones must be answered. */
const PATIENCE_MS = { framed: 15_000, unframed: 60, health: 60_000 } as const
/** So many without an answer are sent again before the run goes on. */
const MOST_UNANSWERED = 20
/** A fifth of the run fills every bounded memory; what grows by more than this afterwards is not bounded. */
const MOST_GROWTH_MB = 24

const JWT_SECRET = 'a-jwt-secret-that-is-long-enough-for-hs256'
const WEBHOOK_SECRET = 'whsec_of-thirty-two-bytes-at-least'
const DISPATCH_SECRET = 'a-dispatch-secret-of-thirty-two-b'

/** Sends bad requests to a daemon of its own and holds each answer to the contract. */
export async function fuzz({ requests, seed, from, onProgress, onAnswer }: FuzzOptions): Promise<FuzzResult> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-fuzz-'))
  const backups = await backupFuzz()
  const identity = await new SignJWT({ email: 'person@example.com' })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('person-1')
    .setAudience('fuzz')
    .setExpirationTime('2h')
    .sign(new TextEncoder().encode(JWT_SECRET))
  const daemon = await spawnDaemon({
    folder,
    measured: true,
    args: ['--no-schedule'],
    env: {
      LOG_LEVEL: 'warn',
      TRUST_PROXY: '127.0.0.1',
      EMAIL_DISPATCH_SECRET: DISPATCH_SECRET,
      NEXT_PUBLIC_DATASTORE_URL: 'http://127.0.0.1:9',
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'an-anon-key-that-is-long-enough-0123',
      DATASTORE_JWT_SECRET: JWT_SECRET,
      STORE_URL: `sqlite:${path.join(folder, 'fuzz.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'events',
      DATASTORE_JWT_AUDIENCE: 'fuzz',
      PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
      PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_pro_monthly',
      PAYMENTS_API_URL: 'http://127.0.0.1:9',
    },
  })
  const port = (service: Service) => Number(new URL(daemon.urls[service as keyof typeof daemon.urls]).port)
  const credentials = {
    dispatch: DISPATCH_SECRET,
    identity,
    webhook: WEBHOOK_SECRET,
    jwt: JWT_SECRET,
    now: Date.now(),
  }
  const faults: { index: number; what: string }[] = []
  const statuses: Record<number, number> = {}
  const late: number[] = []
  const unanswered: number[] = []
  let next = from
  let alive = true
  void daemon.exited.then(({ code, signal }) => {
    alive = false
    faults.push({
      index: next - 1,
      what: `the daemon ended with ${code ?? signal}: ${daemon.complaints.join(' ')}`,
    })
  })

  async function client(until: number): Promise<void> {
    const opened = new Map(SERVICES.map((service) => [service, connection(port(service))]))
    const open = (service: Service) => opened.get(service) ?? connection(port(service))
    while (next < until && alive && faults.length < MOST_FAULTS && unanswered.length < MOST_UNANSWERED) {
      const index = next
      next += 1
      const request = badRequest(seed, index, credentials)
      const outcome = await open(request.service).send(request.bytes, {
        head: request.method === 'HEAD',
        // The rest of a badly framed request would be read as the start of the next one.
        keep: request.framed,
        patienceMs: request.framed ? PATIENCE_MS.framed : PATIENCE_MS.unframed,
      })
      onAnswer?.(request, outcome)
      const status = outcome.kind === 'answer' ? outcome.answer.status : 0
      statuses[status] = (statuses[status] ?? 0) + 1
      if (outcome.kind !== 'answer' && request.framed) unanswered.push(index)
      const what = outcome.kind === 'answer' ? faultOf(outcome.answer, request) : undefined
      if (what !== undefined && alive) faults.push({ index, what })
      const inText = textFault(seed, index)
      if (inText !== undefined) faults.push({ index, what: inText })
      const inBackup = index % BACKUP_EVERY === 0 ? await backups.faultOf(seed, index) : undefined
      if (inBackup !== undefined) faults.push({ index, what: inBackup })
      if (index % 1000 === 0) onProgress?.(index - from)
    }
    for (const one of opened.values()) one.close()
  }

  async function sendAgainAlone(index: number): Promise<void> {
    const request = badRequest(seed, index, credentials)
    const once = (bytes: Buffer, patienceMs: number) =>
      connection(port(request.service)).send(bytes, {
        head: request.method === 'HEAD',
        keep: false,
        patienceMs,
      })
    const health = Buffer.from(`GET ${healthPath(request.service)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const what = await faultAlone({
      send: () => once(request.bytes, PATIENCE_MS.framed),
      askHealth: () => once(health, PATIENCE_MS.health),
      faultOf: (answer) => faultOf(answer, request),
    })
    if (!alive) return
    if (what === undefined) late.push(index)
    else faults.push({ index, what })
  }

  async function clients(until: number): Promise<void> {
    do {
      await Promise.all(Array.from({ length: CLIENTS }, () => client(until)))
      for (const index of unanswered.splice(0)) if (alive) await sendAgainAlone(index)
    } while (next < until && alive && faults.length < MOST_FAULTS)
  }

  try {
    await clients(from + Math.ceil(requests / 5))
    const early = alive ? (await daemon.measure()).heap : Number.NaN
    await clients(from + requests)
    const end = alive ? (await daemon.measure()).heap : Number.NaN
    if (end - early > MOST_GROWTH_MB)
      faults.push({ index: -1, what: `the heap grew from ${early.toFixed(1)} to ${end.toFixed(1)} MB` })
    for (const line of daemon.complaints)
      faults.push({ index: -1, what: `the daemon complained: ${line.slice(0, 500)}` })
    return { faults: [...faults], statuses, late, heapMb: { early, late: end } }
  } finally {
    daemon.child.kill('SIGKILL')
    await daemon.exited
    await backups.close()
    await rm(folder, { recursive: true, force: true })
  }
}

const isError = new Ajv().compile({
  type: 'object',
  required: ['code', 'status', 'message', 'requestId'],
  additionalProperties: false,
  properties: {
    code: { enum: Object.keys(ERRORS) },
    status: { type: 'integer' },
    message: { type: 'string', minLength: 1, maxLength: 500 },
    requestId: { type: 'string', pattern: '^[A-Za-z0-9_.-]{8,64}$' },
    issues: {
      type: 'array',
      maxItems: 50,
      items: {
        type: 'object',
        required: ['path', 'message'],
        additionalProperties: false,
        properties: { path: { type: 'string' }, message: { type: 'string', minLength: 1 } },
      },
    },
  },
})

/** How an answer breaks the contract; undefined if it does not. */
export function faultOf(
  { status, headers, body }: RawResponse,
  { method, maySeePage }: Pick<BadRequest, 'method' | 'maySeePage'>,
): string | undefined {
  if (!(status >= 200 && status <= 599)) return `status ${status}`
  if (status >= 300 && status < 400) return `a redirect, ${status} to ${headers.get('location')}`
  if (headers.get('x-content-type-options') !== 'nosniff') return `${status} without nosniff`
  if (status < 400) return undefined
  const type = headers.get('content-type') ?? ''
  if (method === 'HEAD') return status >= 500 && status !== 503 ? `status ${status}` : undefined
  if (type.startsWith('text/html')) {
    if (!maySeePage) return `${status}: a page for a program`
    if (!/^<!doctype html>/i.test(body)) return `${status}: HTML that is no page`
    return status >= 500 && status !== 503 ? `status ${status}` : undefined
  }
  const value = parsed(body)
  // A failing service says so in the health body, which is no error.
  if (
    status === 503 &&
    typeof value === 'object' &&
    value !== null &&
    ('probes' in value || 'checks' in value)
  )
    return undefined
  if (!isError(value)) return `${status} that is no error of the contract: ${body.slice(0, 300)}`
  const { code, status: said } = value as { code: keyof typeof ERRORS; status: number }
  if (said !== status || ERRORS[code].status !== status) return `${status} with the code ${code}`
  return status >= 500 && status !== 503 ? `status ${status}: ${body.slice(0, 300)}` : undefined
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
