import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { SMTPServer } from 'smtp-server'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Clock } from '../../src/core/host.ts'
import { openMaintenance, openStore } from '../../src/core/store/open.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { authority } from '../support/outside.ts'
import { hasProgram } from '../support/programs.ts'
import { rudeSmtp } from '../support/rude-smtp.ts'
import { standingClock } from '../support/standing-clock.ts'
import { subscribe } from '../support/subscribers.ts'

/**
 * Each alert of runbooks/alerts.yaml: its fault is made in a running daemon, whose /metrics before and after become the
 * series over which promtool evaluates the rule. The alert must fire after the fault and be silent before it.
 */
const here = hasProgram(['promtool', '--version'], 'prometheus')
const rules = fileURLToPath(new URL('../../runbooks/alerts.yaml', import.meta.url))
// promtool starts for each evaluation.
vi.setConfig({ testTimeout: 120_000 })
const SECRET = 'a-dispatch-secret-of-thirty-two-b'
const HOUR_MS = 3_600_000
const START = Date.UTC(2026, 10, 21, 6)

/** Its time for measurements goes on. */
function handClock() {
  const { clock, pass } = standingClock(START)
  return { clock: { ...clock, monotonic: () => performance.now() + clock.monotonic() }, pass }
}

type Scrape = ReadonlyMap<string, number>

async function daemon({
  env,
  services = ['web', 'api', 'agent'],
  clock: given,
}: {
  env?: Record<string, string> | undefined
  services?: readonly ('web' | 'api' | 'agent')[]
  clock?: Clock
} = {}) {
  const folder = await emptyFolder()
  const hand = handClock()
  const running = await startLearningDaemon({
    env: { EMAIL_DISPATCH_SECRET: SECRET, ...env },
    services,
    dataFolder: folder,
    clock: given ?? hand.clock,
  })
  let open = true
  const stop = async () => {
    if (open) await running.close({ deadlineMs: 1000 })
    open = false
  }
  onTestFinished(stop)
  const base = running.urls.web ?? running.urls.api ?? ''
  const it = {
    file: path.join(folder, 'platform.sqlite'),
    folder,
    stop,
    running,
    now: () => (given ?? hand.clock).now(),
    pass: hand.pass,
    /** Lets a minute pass and waits for the daemon's look at its probes. */
    async round() {
      const looked = async () =>
        (await it.scrape()).get(`platformctl_health_checked_timestamp_seconds{service="${services[0]}"}`)
      const before = await looked()
      hand.pass(61_000)
      await expect.poll(looked, { timeout: 30_000 }).not.toBe(before)
    },
    post: (route: string, body: unknown, secret?: string, headers: Record<string, string> = {}) =>
      fetch(`${base}${route}`, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', ...headers },
          ...(secret && { authorization: `Bearer ${secret}` }),
        },
        body: JSON.stringify(body),
      }),
    dispatch: (secret = SECRET) => it.post('/api/email/dispatch', {}, secret),
    async scrape(): Promise<Scrape> {
      // A connection that the server has just closed is opened anew.
      const ask = () => fetch(`${base}/metrics`)
      const text = await (await ask().catch(ask)).text()
      return new Map(
        text
          .split('\n')
          .filter((line) => line !== '' && !line.startsWith('#'))
          .map((line) => [
            line.slice(0, line.lastIndexOf(' ')),
            Number(line.slice(line.lastIndexOf(' ') + 1)),
          ]),
      )
    },
    /** Subscriptions that were confirmed at the start, straight into the store. */
    async subscribers(count: number, from = 0) {
      const store = await openStore({ kind: 'sqlite', file: it.file })
      for (let n = from; n < from + count; n += 1) await subscribe(store, `p${n}`, START)
      await store.close()
    },
  }
  await it.round()
  return it
}

type Daemon = Awaited<ReturnType<typeof daemon>>

/** The samples of a Prometheus that scraped `before` first and `after` last, minute by minute. */
interface Seen {
  readonly instance: string
  /** When `after` was scraped, in UTC milliseconds. */
  readonly now: number
  readonly before: Scrape
  readonly after: Scrape | 'unreachable'
}

const MINUTES = 240
/** The fault lasts for these minutes in the middle. */
const RISING = 15
const seconds = MINUTES * 60

/** The alerts that fired in the second half of four hours. */
async function firing(seen: readonly Seen[]): Promise<readonly string[]> {
  const series = seen.flatMap(({ instance, now, before, after }) => {
    const name = (key: string, more = `instance="${instance}", job="platformctl"`) =>
      key.includes('{') ? key.replace(/\}$/, `,${more}}`) : `${key}{${more}}`
    const up = { series: name('up'), values: `${after === 'unreachable' ? 0 : 1}x${MINUTES}` }
    // The build of an unreachable daemon stays known for a while.
    const info = [...before.keys()].filter((key) => key.startsWith('platformctl_build_info'))
    if (after === 'unreachable')
      return [up, ...info.map((key) => ({ series: name(key), values: `1x5 _x${MINUTES}` }))]
    return [
      up,
      ...[...after].map(([key, value]) => {
        const isCounter = /(?:_total|_bucket|_count|_sum|^platformctl_lessons_due)(?:\{|$)/.test(key)
        const first = isCounter ? (before.get(key) ?? 0) : value
        // promtool's clock begins at 0: a time becomes as old at the end as it was when it was scraped.
        const at = /_timestamp_seconds/.test(key) ? value - now / 1000 + seconds : first
        if (!isCounter) return { series: name(key), values: `${at}x${MINUTES}` }
        const step = (value - first) / RISING
        const rise = `${first + step}${step < 0 ? '-' : '+'}${Math.abs(step)}x${RISING - 1}`
        return {
          series: name(key),
          values: `${first}x${MINUTES / 2} ${rise} ${value}x${MINUTES / 2 - RISING}`,
        }
      }),
    ]
  })
  const file = path.join(await emptyFolder(), 'test.json')
  await writeFile(
    file,
    JSON.stringify({
      rule_files: [rules],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: series,
          promql_expr_test: [
            {
              expr: `count by (alertname) (max_over_time(ALERTS{alertstate="firing"}[${MINUTES / 2}m]))`,
              eval_time: `${MINUTES}m`,
              exp_samples: [],
            },
          ],
        },
      ],
    }),
  )
  // It fails because something fires, and says what.
  const { all } = await execa('promtool', ['test', 'rules', file], { reject: false, all: true })
  if (!/SUCCESS|got:/.test(all)) throw new Error(all)
  return [...all.slice(all.indexOf('got:')).matchAll(/alertname=\\?"(\w+)/g)].map(([, alert = '']) => alert)
}

/** Before and after a fault on one daemon; nothing of `expected` may fire before. */
async function alerts(it: Daemon, fault: () => Promise<unknown>) {
  const before = await it.scrape()
  await fault()
  const after = await it.scrape()
  const seen = { instance: 'a', before, now: it.now() }
  return {
    quiet: await firing([{ ...seen, after: before, now: it.now() - 1 }]),
    fired: await firing([{ ...seen, after }]),
  }
}

/** A mail server that answers each recipient, or each message, as told. */
async function mailServer(options: ConstructorParameters<typeof SMTPServer>[0]) {
  const server = new SMTPServer({ ...options, logger: false, authOptional: true, hideSTARTTLS: true })
  server.on('error', () => {})
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => server.close(resolve)))
  return mailBy(`smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`)
}

const refused = (code: number, text: string) => Object.assign(new Error(text), { responseCode: code })

const SMTP_NOBODY = 'smtp://127.0.0.1:1'
const mailBy = (url: string) => ({
  MAILER_API_KEY: 'key-of-the-mailer',
  MAILER_FROM: 'course@example.com',
  MAILER_SMTP_URL: url,
})

interface Trouble {
  readonly env?: () => Record<string, string> | Promise<Record<string, string>>
  readonly prepare?: (it: Daemon) => Promise<unknown>
  readonly fault: (it: Daemon) => Promise<unknown>
  readonly fires: readonly string[]
  /** None of these fires before the fault. */
  readonly isNew?: boolean
}

/** Six calls with a signature that is wrong. */
const forgedCalls =
  (route: string, headers: (it: Daemon) => Record<string, string>) => async (it: Daemon) => {
    for (let n = 0; n < 6; n += 1) expect((await it.post(route, {}, undefined, headers(it))).status).toBe(400)
  }

const TROUBLES: Readonly<Record<string, Trouble>> = {
  'a service that fails': {
    env: () => ({ API_URL: 'http://127.0.0.1:1' }),
    fault: (it) => it.round(),
    fires: ['PlatformServiceFailing'],
  },
  'a shared store that does not answer': {
    env: () => ({ SHAREDSTORE_REST_URL: 'http://127.0.0.1:1', SHAREDSTORE_REST_TOKEN: 'token-of-the-store' }),
    async fault(it) {
      await it.post('/api/email/subscribe', { email: 'ada@example.com' })
      await it.round()
    },
    fires: ['PlatformLimiterFallback', 'PlatformProbeDegraded'],
  },
  'a damaged page': {
    prepare: (it) => it.subscribers(400),
    async fault(it) {
      damage(it.file)
      await it.round()
      await it.round()
    },
    fires: ['PlatformStoreDown'],
  },
  'a store that another program keeps locked: down, slow and with errors': {
    async fault(it) {
      const other = new Database(it.file)
      onTestFinished(() => void other.close())
      other.exec('BEGIN IMMEDIATE')
      for (let n = 0; n < 8; n += 1) await it.post('/api/email/subscribe', { email: `p${n}@example.com` })
      await it.round()
    },
    fires: ['PlatformStoreDown', 'PlatformErrors', 'PlatformSlow', 'PlatformServiceFailing'],
  },
  'an event loop that is held up': {
    async fault() {
      for (let n = 0; n < 4; n += 1) {
        const until = performance.now() + 900
        while (performance.now() < until);
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
    fires: ['PlatformEventLoopBlocked'],
  },
  'nine hours in which the provider is not reached': {
    env: () => mailBy(SMTP_NOBODY),
    prepare: (it) => it.subscribers(3),
    async fault(it) {
      for (let hour = 0; hour < 9; hour += 1) {
        await it.dispatch()
        it.pass(HOUR_MS)
      }
      await it.round()
    },
    fires: ['PlatformLessonsLate', 'PlatformDispatchFailing'],
    isNew: true,
  },
  'a backlog that grows': {
    prepare: (it) => it.subscribers(600),
    fault: (it) => it.subscribers(300, 600),
    fires: ['PlatformBacklogGrowing'],
    isNew: true,
  },
  'messages that are refused for now': {
    env: () => mailServer({ onRcptTo: (_, __, done) => done(refused(450, '4.2.0 mailbox busy')) }),
    prepare: (it) => it.subscribers(20),
    fault: (it) => it.dispatch(),
    fires: ['PlatformDeliveriesFailing'],
  },
  'webhooks with a wrong signature': {
    env: () => ({
      MAILER_FEEDBACK_PROVIDER: 'standard',
      MAILER_FEEDBACK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
    }),
    fault: forgedCalls('/api/email/feedback/standard', ({ now }) => ({
      ...{ 'webhook-id': 'm1', 'webhook-signature': 'v1,c2ln' },
      'webhook-timestamp': String(Math.floor(now() / 1000)),
    })),
    fires: ['PlatformFeedbackRefused'],
    isNew: true,
  },
  'payments with a wrong signature': {
    env: () => ({
      PAYMENTS_SECRET_KEY: 'sk_test_4eC39HqLyjWDarjtT1zdp7dc',
      PAYMENTS_WEBHOOK_SECRET: 'whsec_of-thirty-two-bytes-at-least',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_1PaymentsProMonthly',
    }),
    fault: forgedCalls('/api/payments/webhook', ({ now }) => ({
      'Stripe-Signature': `t=${Math.floor(now() / 1000)},v1=${'0'.repeat(64)}`,
    })),
    fires: ['PlatformCallsRefused'],
    isNew: true,
  },
  'deliveries of which nobody knows whether they arrived': {
    async env() {
      const { port } = await rudeSmtp((word, socket) => {
        if (word !== 'END') return undefined
        socket.destroy()
        return null
      })
      return mailBy(`smtp://127.0.0.1:${port}`)
    },
    prepare: (it) => it.subscribers(2),
    fault: (it) => it.dispatch(),
    fires: ['PlatformDeliveriesParked'],
  },
  'wrong secrets': {
    async fault(it) {
      for (let n = 0; n < 8; n += 1) expect((await it.dispatch('not-the-secret')).status).toBe(401)
    },
    fires: ['PlatformSecretRefused'],
    isNew: true,
  },
}

describe.runIf(here)('with promtool', () => {
  test('a sound platform with a backup raises no alert; without one it raises only that', async () => {
    const it = await daemon()
    const { quiet, fired } = await alerts(it, async () => {
      const maintenance = await openMaintenance({ kind: 'sqlite', file: it.file })
      await maintenance.backup(path.join(it.folder, 'b.sqlite'), it.now())
      await maintenance.close()
    })
    expect(quiet).toEqual(['PlatformBackupMissing'])
    expect(fired).toEqual([])
  })

  test('a process that is gone', async () => {
    const it = await daemon()
    const before = await it.scrape()
    await it.stop()
    expect(await firing([{ instance: 'a', before, after: 'unreachable', now: it.now() }])).toEqual([
      'PlatformDown',
    ])
  })

  test('a scrape without the health token', async () => {
    const it = await daemon({ env: { HEALTH_DEEP_TOKEN: 'a-health-token-of-thirty-two-byt' } })
    const seen = await it.scrape()
    expect(await firing([{ instance: 'a', before: seen, after: seen, now: it.now() }])).toContain(
      'PlatformMetricsMissing',
    )
  })

  test.each(Object.entries(TROUBLES))('%s', async (_, { env, prepare, fault, fires, isNew = false }) => {
    const it = await daemon({ env: await env?.() })
    await prepare?.(it)
    const { quiet, fired } = await alerts(it, () => fault(it))
    if (isNew) for (const alert of fires) expect(quiet).not.toContain(alert)
    expect(fired).toEqual(expect.arrayContaining([...fires]))
  })

  test('a daemon that no longer looks, and one that cannot record', async () => {
    const stuck = await daemon()
    const before = await stuck.scrape()
    expect(await firing([{ instance: 'a', before, after: before, now: stuck.now() }])).not.toContain(
      'PlatformHealthNotLooked',
    )
    // Its timers never wake again: time passes for everybody else.
    expect(await firing([{ instance: 'a', before, after: before, now: stuck.now() + 20 * 60_000 }])).toEqual(
      expect.arrayContaining(['PlatformHealthNotLooked', 'PlatformHistoryNotRecorded']),
    )

    const locked = await daemon()
    const { fired: unrecorded } = await alerts(locked, async () => {
      const other = new Database(path.join(locked.folder, 'history.sqlite'))
      other.exec('BEGIN EXCLUSIVE')
      onTestFinished(() => void other.close())
      for (let minute = 0; minute < 14; minute += 1) await locked.round()
    })
    expect(unrecorded).toContain('PlatformHistoryNotRecorded')
  }, 120_000)

  test('two builds of services that run apart', async () => {
    const web = await daemon({ env: { BUILD_STAMP: 'one' }, services: ['web'] })
    const api = await daemon({ env: { BUILD_STAMP: 'two' }, services: ['api'] })
    const seen = await Promise.all(
      Object.entries({ web, api }).map(async ([instance, it]) => {
        const scraped = await it.scrape()
        return { instance, before: scraped, after: scraped, now: it.now() }
      }),
    )
    expect(await firing(seen)).toContain('PlatformBuildSkew')
  })

  test('a certificate that ends soon and that nobody trusts', async () => {
    const signed = await authority('Nobody')
    const server = createServer(await signed.issue({ host: 'localhost', from: -85, to: 5 }), (_, response) =>
      response.end(),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const it = await daemon({
      env: { NEXT_PUBLIC_SITE_URL: `https://localhost:${(server.address() as AddressInfo).port}` },
      clock: { ...handClock().clock, now: () => Date.now() },
    })
    await expect
      .poll(async () =>
        [...(await it.scrape()).keys()].some((key) => key.startsWith('platformctl_certificate_valid')),
      )
      .toBe(true)
    const after = await it.scrape()
    expect(await firing([{ instance: 'a', before: after, after, now: Date.now() }])).toEqual(
      expect.arrayContaining(['PlatformCertificateExpiring', 'PlatformCertificateRefused']),
    )
  })
})

/** Overwrites pages in the middle of the file, as a failing disk does. */
function damage(file: string): void {
  const database = new Database(file)
  database.pragma('wal_checkpoint(TRUNCATE)')
  database.close()
  const { size } = statSync(file)
  const at = openSync(file, 'r+')
  for (let page = 8; page < size / 4096; page += 2)
    writeSync(at, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096)
  closeSync(at)
}
