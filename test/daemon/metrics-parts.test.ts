import { expect, onTestFinished, test, vi } from 'vitest'
import type { DispatchResult } from '../../src/core/course/dispatch.ts'
import type { HealthReport, ProbeResult } from '../../src/core/health/probe.ts'
import { systemClock } from '../../src/core/host.ts'
import type { Hold } from '../../src/core/mail/holds.ts'
import { type MetricsOptions, openMetrics } from '../../src/daemon/metrics/metrics.ts'

const NOW = Date.UTC(2026, 10, 22)
type Opened = NonNullable<Awaited<ReturnType<MetricsOptions['knownStore']>>>
interface Read {
  readonly backlog: Opened['course']['backlog']
  readonly counts: Opened['course']['counts']
  readonly status: Opened['status']
  readonly mail: Opened['sending']['days']
  readonly holds: Opened['sending']['holds']
  readonly late: Opened['course']['late']
  readonly lastSentAt: Opened['course']['lastSentAt']
}
const HELD: readonly Hold[] = [{ stream: 'course', at: NOW, reason: 'x' }]

/** Metrics over a store that answers so, and their values by series. */
function metricsOf(store: Partial<Read> | undefined = undefined, options: Partial<MetricsOptions> = {}) {
  const time = { monotonic: 0 }
  const counts = { byState: { unconfirmed: 0, confirmed: 0, unsubscribed: 0 }, parked: 0, unknown: 0 }
  const read = {
    backlog: async () => ({ due: 0, waiting: 0, retries: 0, oldestDueAt: undefined }),
    counts: async () => counts,
    status: async () => ({ kind: 'sqlite' as const }),
    mail: async () => [],
    holds: async () => [],
    late: async () => ({}),
    lastSentAt: async () => undefined,
    ...store,
  }
  const opened = { course: read, status: read.status, sending: { days: read.mail, holds: read.holds } }
  const metrics = openMetrics(
    { ...systemClock, now: () => NOW, monotonic: () => time.monotonic },
    {
      build: undefined,
      counting: () => 'local',
      mailConfigured: true,
      feedbackProvider: undefined,
      analyticsBytes: async () => undefined,
      knownStore: async () => (store === undefined ? undefined : (opened as unknown as Opened)),
      ...options,
    },
  )
  const values = async () => {
    const lines = (await metrics.text()).body
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    const found = new Map(
      lines.map((line) => [
        line.slice(0, line.lastIndexOf(' ')),
        Number(line.slice(line.lastIndexOf(' ') + 1)),
      ]),
    )
    return (name: string) => found.get(`platformctl_${name}`)
  }
  return { metrics, read: values, time, counts }
}

test.each([
  [20, 0, 2],
  [21, 2099, 1],
  [21, 2100, 2],
])(
  'subscriptions whose count took %d ms are counted again %d ms later: %d times',
  async (took, later, times) => {
    let asked = 0
    const it = metricsOf({
      counts: async () => {
        asked += 1
        it.time.monotonic += took
        return { ...it.counts, parked: asked } as never
      },
    })
    expect((await it.read())('deliveries_waiting{problem="parked"}')).toBe(1)
    it.time.monotonic += later
    expect((await it.read())('deliveries_waiting{problem="parked"}')).toBe(times)
  },
)

test('a call of the dispatcher is counted by how it ended, and as long as it took', async () => {
  const result = (parts: Partial<DispatchResult> = {}) =>
    ({ sent: 0, failed: 0, unknown: 0, ...parts }) as DispatchResult
  const { metrics, read, time } = metricsOf()
  const call = (answer: () => Promise<DispatchResult>) =>
    metrics.dispatch(async () => {
      time.monotonic += 250
      return answer()
    })({ limit: 1 })
  await call(async () => result({ sent: 3, failed: 2, unknown: 1 }))
  await call(async () => result({ sent: 1, reason: 'the provider is away' }))
  await expect(call(() => Promise.reject(new Error('the store is away')))).rejects.toThrow(
    'the store is away',
  )
  const value = await read()
  const ended = (one: string) => value(`dispatches_total{result="${one}"}`)
  expect(['completed', 'paused', 'off', 'failed'].map(ended)).toEqual([1, 1, 0, 1])
  const became = (one: string) => value(`deliveries_total{outcome="${one}"}`)
  expect(['sent', 'failed', 'unknown'].map(became)).toEqual([4, 2, 1])
  expect([value('dispatch_duration_seconds_sum'), value('dispatch_duration_seconds_count')]).toEqual([
    0.75, 3,
  ])
  const off = metricsOf(undefined, { mailConfigured: false })
  await off.metrics.dispatch(async () => result({ reason: 'mail is not configured' }))({ limit: 1 })
  expect((await off.read())('dispatches_total{result="off"}')).toBe(1)
})

test('a certificate that cannot be read is neither valid nor not, and its known end stays', async () => {
  const { metrics, read } = metricsOf()
  const of = async () => {
    const value = await read()
    return [
      value('certificate_expires_timestamp_seconds{variable="API_URL"}'),
      value('certificate_valid{variable="API_URL"}'),
    ]
  }
  metrics.certificate('API_URL', { validTo: NOW, valid: true })
  expect(await of()).toEqual([NOW / 1000, 1])
  metrics.certificate('API_URL', { validTo: NOW + 5000, valid: false })
  expect(await of()).toEqual([NOW / 1000 + 5, 0])
  metrics.certificate('API_URL', undefined)
  expect(await of()).toEqual([NOW / 1000 + 5, undefined])
})

test('where limits are counted now is 1, and every other place 0', async () => {
  let where: 'local' | 'shared' | 'fallback' = 'shared'
  const { read } = metricsOf(undefined, { counting: () => where })
  const places = async () => {
    const value = await read()
    return ['local', 'shared', 'fallback'].map((one) => value(`limiter_counting{where="${one}"}`))
  }
  expect(await places()).toEqual([0, 1, 0])
  where = 'fallback'
  expect(await places()).toEqual([0, 0, 1])
})

test('the figures of a store are those of now, in seconds, and what is over is gone', async () => {
  let today = [
    { source: 'smtp', kind: 'sent', count: 2 },
    { source: 'smtp', kind: 'sent', count: 3 },
  ]
  let holds: readonly Hold[] = []
  const { read } = metricsOf({
    backlog: async () => ({ due: 4, waiting: 5, oldestDueAt: NOW - 90_000 }) as never,
    status: async () => ({ kind: 'sqlite', bytes: 4096, backupAt: NOW - 60_000 }) as never,
    mail: async () => today as never,
    holds: async () => holds,
  })
  const value = await read()
  expect(value('mail_today{source="smtp",kind="sent"}')).toBe(5)
  expect(value('courses_paused')).toBe(0)
  expect([value('lessons_due'), value('lessons_waiting'), value('lessons_oldest_due_age_seconds')]).toEqual([
    4, 5, 90,
  ])
  expect([value('store_size_bytes'), value('backup_timestamp_seconds')]).toEqual([4096, NOW / 1000 - 60])
  expect(value('store_info{kind="sqlite"}')).toBe(1)
  today = []
  holds = HELD
  const later = await read()
  expect(later('mail_today{source="smtp",kind="sent"}')).toBeUndefined()
  expect(later('courses_paused')).toBe(1)
  expect(later('mail_paused{stream="course"}')).toBe(1)
  expect(later('mail_paused{stream="sign-in"}')).toBe(0)
})

test.each([
  [1, 'one has not been sent', { late: async () => ({ at: NOW }) }, {}],
  [1, 'every attempt has failed', { late: async () => ({ stalledAt: NOW }) }, {}],
  [0, 'their course is paused', { late: async () => ({ at: NOW }), holds: async () => HELD }, {}],
  [0, 'mail was never configured', { late: async () => ({ at: NOW }) }, { mailConfigured: false }],
  [
    1,
    'a deploy lost mail',
    { late: async () => ({ at: NOW }), lastSentAt: async () => 1 },
    { mailConfigured: false },
  ],
])('the gauge of late lessons is %d where %s', async (gauge, _why, store, options) => {
  expect((await metricsOf(store, options).read())('lessons_late')).toBe(gauge)
})

test('a file that was never backed up has the time 0, other stores have none, and a lesson that is due in the future has not waited', async () => {
  for (const [kind, at] of [
    ['sqlite', 0],
    ['postgres', undefined],
    ['memory', undefined],
  ] as const) {
    const backlog = async () => ({ due: 0, waiting: 1, oldestDueAt: NOW + 5 }) as never
    const value = await metricsOf({ status: async () => ({ kind }) as never, backlog }).read()
    expect(value('backup_timestamp_seconds')).toBe(at)
    expect(value('lessons_oldest_due_age_seconds')).toBe(0)
  }
})

test('a store and analytics that hang are waited for a second each, and what was known of them is gone', async () => {
  let hangs = false
  const hang = () => new Promise<never>(() => {})
  const { metrics, read } = metricsOf(
    { mail: async () => (hangs ? hang() : ([{ source: 'smtp', kind: 'sent', count: 2 }] as never)) },
    { analyticsBytes: async () => (hangs ? hang() : 7) },
  )
  const before = await read()
  expect([before('lessons_due'), before('analytics_size_bytes'), before('store_up')]).toEqual([0, 7, 1])
  hangs = true
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let text = ''
  const reading = metrics.text().then(({ body }) => {
    text = body
  })
  await vi.advanceTimersByTimeAsync(1999)
  expect(text).toBe('')
  await vi.advanceTimersByTimeAsync(1)
  await reading
  expect(vi.getTimerCount()).toBe(0)
  expect(text).toContain('\nplatformctl_store_up 0\n')
  expect(text).not.toMatch(
    /^platformctl_(?:store_size_bytes|lessons_(?:due|waiting|oldest_\w+)|deliveries_waiting|subscriptions|mail_today|analytics_size_bytes|courses_paused|mail_paused)[ {]/m,
  )
  hangs = false
  const after = await read()
  expect([after('lessons_due'), after('analytics_size_bytes'), after('store_up')]).toEqual([0, 7, 1])
})

const report = (probes: Record<string, ProbeResult>, service = 'web') =>
  ({ service, state: 'ok', probes }) as unknown as HealthReport

test('each service has the states of its own probes, also of those that another has under the same name', async () => {
  const { metrics, read } = metricsOf({})
  const of = (service: string, state: ProbeResult['state']) =>
    report({ api: { state, checked: true } }, service)
  const answers = [of('web', 'ok'), of('agent', 'ok'), of('agent', 'failing')]
  const health = metrics.health({ check: async () => answers.shift() ?? report({}) })
  const states = async () => {
    const value = await read()
    const isIn = (service: string, state: string) =>
      value(`probe_state{service="${service}",probe="api",state="${state}"}`)
    return ['web', 'agent'].map((service) => ['ok', 'failing'].map((state) => isIn(service, state)))
  }
  for (let n = 0; n < 2; n += 1) await health.check({ deep: false })
  expect(await states()).toEqual([
    [1, 0],
    [1, 0],
  ])
  await health.check({ deep: false })
  expect(await states()).toEqual([
    [1, 0],
    [0, 1],
  ])
  // What is configured says nothing of what a live check has found.
  answers.push(of('web', 'failing'), of('web', 'ok'))
  for (const deep of [true, false]) await health.check({ deep })
  expect((await states())[0]).toEqual([0, 1])
})

test('a run that several requests share took its time once, and a store is down from a live check that fails to one that does not', async () => {
  const { metrics, read } = metricsOf({})
  const shared: ProbeResult = { state: 'ok', checked: true, latencyMs: 40 }
  const answers = [
    report({ store: shared }),
    report({ store: shared }),
    report({ store: { ...shared } }),
    report({ store: { state: 'failing', checked: true } }),
    report({ store: { state: 'failing', checked: false } }),
    report({ store: { state: 'degraded', checked: true } }),
    report({ store: { state: 'failing', checked: false } }),
    report({ job_store: { state: 'failing', checked: true } }),
    report({ job_store: { state: 'ok', checked: true } }),
  ]
  const health = metrics.health({ check: async () => answers.shift() ?? report({}) })
  for (let n = 0; n < 3; n += 1) await health.check({ deep: true })
  const value = await read()
  expect(value('probe_duration_seconds_count{service="web",probe="store"}')).toBe(2)
  expect(value('probe_duration_seconds_sum{service="web",probe="store"}')).toBeCloseTo(0.08)
  expect(value('store_up')).toBe(1)
  expect(value('health_checked_timestamp_seconds{service="web"}')).toBe(NOW / 1000)
  await health.check({ deep: true })
  const failing = await read()
  expect(failing('store_up')).toBe(0)
  expect(failing('probe_state{service="web",probe="store",state="failing"}')).toBe(1)
  expect(failing('probe_state{service="web",probe="store",state="ok"}')).toBe(0)
  expect([
    failing('service_state{service="web",state="ok"}'),
    failing('service_state{service="web",state="skipped"}'),
  ]).toEqual([1, undefined])
  const up: unknown[] = []
  for (const _ of answers.slice()) {
    await health.check({ deep: true })
    up.push((await read())('store_up'))
  }
  // Only a live check changes it, in both directions.
  expect(up).toEqual([0, 1, 1, 0, 1])
})

test('requests are counted with the methods that there are, and timed in seconds', async () => {
  const { metrics, read } = metricsOf()
  for (const method of ['GET', 'BREW', 'PROPFIND'])
    metrics.answered({ service: 'web', method, route: undefined, status: 404, durationMs: 500 })
  const value = await read()
  const requests = (method: string) =>
    value(`http_requests_total{service="web",method="${method}",route="(none)",status="404"}`)
  expect([requests('GET'), requests('other'), requests('BREW')]).toEqual([1, 2, undefined])
  expect(value('http_request_duration_seconds_sum{service="web",route="(none)"}')).toBe(1.5)
})
