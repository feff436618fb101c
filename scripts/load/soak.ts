import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnDaemon } from './daemon.ts'
import type { Measured } from './inside.ts'
import { type Dice, dice } from './random.ts'

export interface SoakOptions {
  readonly seconds: number
  /** Requests a second, over all clients. */
  readonly rate: number
  readonly seed: number
  readonly onSample?: (sample: Sample) => void
}

export interface Sample extends Measured {
  readonly second: number
  readonly requests: number
}

export interface SoakResult {
  readonly requests: number
  readonly statuses: Readonly<Record<string, number>>
  readonly mails: number
  readonly samples: readonly Sample[]
  /** Broken promises; empty if all were kept. */
  readonly faults: readonly string[]
}

const CLIENTS = 32
const SAMPLE_MS = 5000
const DISPATCH_SECRET = 'a-dispatch-secret-of-thirty-two-b'
const LOOP_P99_MS = 50
/** How much the mean heap may grow from the first third (after a warm-up) to the last. */
const GROWTH = { share: 0.15, leastMb: 6 }

/** Runs the daemon under a mixed load as a day has it, and holds it to flat memory, a free event loop and no error. */
export async function soak({ seconds, rate, seed, onSample }: SoakOptions): Promise<SoakResult> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-soak-'))
  const random = dice(seed)
  const provider = await mailProvider()
  const daemon = await spawnDaemon({
    folder,
    measured: true,
    env: {
      TRUST_PROXY: '127.0.0.1',
      EMAIL_DISPATCH_SECRET: DISPATCH_SECRET,
      MAILER_API_KEY: 'a-mail-key-of-thirty-two-bytes-01',
      MAILER_API_URL: provider.url,
      MAILER_FROM: 'Course <course@example.com>',
      STORE_URL: `sqlite:${path.join(folder, 'soak.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'events',
    },
  })
  const statuses: Record<string, number> = {}
  const wrong: Record<string, number> = {}
  const samples: Sample[] = []
  let requests = 0
  let ended = false
  const began = performance.now()

  async function one(): Promise<void> {
    const action = pick(random)
    const {
      service = 'web',
      target,
      expect,
      init = {},
    } = action({ random, tokens: provider.tokens, links: provider.links })
    const client = `10.0.${random.below(16)}.${random.below(256)}`
    const status = await fetch(`${daemon.urls[service]}${target}`, {
      ...init,
      headers: { 'X-Forwarded-For': client, ...init.headers },
    }).then(
      async (response) => {
        await response.arrayBuffer()
        return response.status
      },
      () => 0,
    )
    requests += 1
    statuses[status] = (statuses[status] ?? 0) + 1
    if (!expect.includes(status)) {
      const told = `${init.method ?? 'GET'} ${target.replace(/\?.*/, '')} answered ${status}`
      wrong[told] = (wrong[told] ?? 0) + 1
    }
  }
  async function client(): Promise<void> {
    while (!ended) {
      const started = performance.now()
      await one()
      await sleep(Math.max(0, (CLIENTS / rate) * 1000 - (performance.now() - started)))
    }
  }
  async function watch(): Promise<void> {
    // Twice as often in a short trial, so that it has samples to compare.
    const every = Math.min(SAMPLE_MS, (seconds * 1000) / 12)
    while (performance.now() - began < seconds * 1000) {
      await sleep(every)
      const sample = {
        second: Math.round((performance.now() - began) / 1000),
        requests,
        ...(await daemon.measure()),
      }
      samples.push(sample)
      onSample?.(sample)
    }
    ended = true
  }

  try {
    await Promise.race([
      Promise.all([watch(), ...Array.from({ length: CLIENTS }, client)]),
      daemon.exited.then(({ code, signal }) =>
        Promise.reject(new Error(`the daemon ended with ${code ?? signal}`)),
      ),
    ])
    daemon.child.kill('SIGTERM')
    const { code } = await daemon.exited
    const faults = [
      ...Object.entries(wrong).map(([what, count]) => `${what}, ${count} times`),
      ...daemon.complaints.map((line) => `the daemon complained: ${line.slice(0, 300)}`),
      ...(code === 0 ? [] : [`the daemon ended with ${code}`]),
      ...soakFaults(samples),
    ]
    return { requests, statuses, mails: provider.mails(), samples, faults }
  } finally {
    ended = true
    daemon.child.kill('SIGKILL')
    await daemon.exited
    provider.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** The first sixth is the warm-up: code is compiled and caches fill. */
function soakFaults(samples: readonly Sample[]): string[] {
  const warm = samples.slice(Math.ceil(samples.length / 6))
  const third = Math.max(1, Math.floor(warm.length / 3))
  const mean = (some: readonly Sample[]) => some.reduce((sum, { heap }) => sum + heap, 0) / some.length
  const [first, last] = [mean(warm.slice(0, third)), mean(warm.slice(-third))]
  const faults: string[] = []
  if (last - first > Math.max(GROWTH.leastMb, GROWTH.share * first))
    faults.push(`the heap grew from ${first.toFixed(1)} to ${last.toFixed(1)} MB`)
  const p99 = samples.at(-1)?.loopP99Whole ?? Number.NaN
  if (!(p99 < LOOP_P99_MS)) faults.push(`the event loop's p99 over the whole run was ${p99.toFixed(1)} ms`)
  return faults
}

interface Ask {
  readonly service?: 'web' | 'api' | 'agent'
  readonly target: string
  readonly expect: readonly number[]
  readonly init?: { method?: string; headers?: Record<string, string>; body?: string }
}
type Action = (given: { random: Dice; tokens: string[]; links: string[] }) => Ask

const json = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

/** How often of a hundred, and what. */
const ACTIONS: readonly (readonly [number, Action])[] = [
  [20, () => ({ target: '/api/health', expect: [200] })],
  [5, () => ({ service: 'api', target: '/api/health', expect: [200] })],
  [5, () => ({ service: 'agent', target: '/api/agent/health', expect: [200] })],
  [2, () => ({ target: '/api/health?deep=1', expect: [200] })],
  [10, () => ({ target: '/', expect: [200], init: { headers: { Accept: 'text/html' } } })],
  [15, ({ random }) => ({ target: `/lessons/${1 + random.below(7)}`, expect: [200] })],
  [
    8,
    () => ({
      target: '/api/email/subscribe',
      expect: [202],
      init: json({ email: `${randomUUID()}@example.com` }),
    }),
  ],
  [
    6,
    ({ tokens }) => ({
      target: `/api/email/confirm?token=${tokens.shift() ?? 'x'}`,
      expect: [200, 400],
      init: { headers: { Accept: 'text/html' } },
    }),
  ],
  [
    2,
    ({ links }) => ({
      target: links.shift() ?? '/api/email/unsubscribe?s=x&t=y',
      expect: [200],
      init: { headers: { Accept: 'text/html' } },
    }),
  ],
  [
    1,
    () => ({
      target: '/api/email/dispatch?limit=200',
      expect: [200],
      init: json({}, { Authorization: `Bearer ${DISPATCH_SECRET}` }),
    }),
  ],
  [
    12,
    ({ random }) => ({
      target: '/api/analytics',
      expect: [202],
      init: json({
        batch: randomUUID(),
        events: Array.from({ length: 1 + random.below(20) }, () => ({
          kind: 'page.viewed',
          at: new Date().toISOString(),
          properties: { path: `/p/${random.below(100)}`, took: random.below(1000) },
        })),
      }),
    }),
  ],
  [4, () => ({ target: '/nowhere', expect: [404] })],
  [4, () => ({ target: '/api/email/subscribe', expect: [400], init: json({ email: 'no address' }) })],
  [3, () => ({ target: '/api/email', expect: [401], init: json({ template: 'welcome' }) })],
  [3, () => ({ target: '/openapi.json', expect: [200] })],
]
const TOTAL = ACTIONS.reduce((sum, [share]) => sum + share, 0)

function pick(random: Dice): Action {
  let at = random.below(TOTAL)
  for (const [share, action] of ACTIONS) {
    at -= share
    if (at < 0) return action
  }
  throw new RangeError('the shares do not add up')
}

/** Takes every mail, and keeps the links of the newest for the visitors to follow. */
async function mailProvider() {
  const tokens = [] as string[]
  const links = [] as string[]
  let mails = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    mails += 1
    const token = /token=([\w-]+)/.exec(body)?.[1]
    const link = /(\/api\/email\/unsubscribe\?s=[\w.-]+&t=[\w-]+)/.exec(body)?.[1]
    if (token && tokens.length < 1000) tokens.push(token)
    if (link && links.length < 1000) links.push(link)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(`{"id":"${mails}"}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    links,
    mails: () => mails,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
