import { expect, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { HealthReport, ProbeState } from '../../../src/core/health/probe.ts'
import { type Histogram, observe } from '../../../src/core/status/histogram.ts'
import {
  DAYS_KEPT,
  type Incident,
  type Period,
  type Recorded,
  type Series,
  WHOLE_SERVICE,
} from '../../../src/core/status/history.ts'
import { createRounds } from '../../../src/core/status/rounds.ts'
import { rootIncidents, summarise } from '../../../src/core/status/summary.ts'
import { createLabels, verdict } from '../../../src/core/status/words.ts'

const EMPTY: Histogram = new Map()

const MINUTE = 60_000
const NOW = Date.UTC(2026, 10, 22, 9, 0)
const SERVICES = ['web', 'api', 'agent']

const report = (state: ProbeState, latencyMs = 20): HealthReport => ({
  service: 'web',
  state: state === 'skipped' ? 'ok' : state,
  build: '1',
  startedAt: '',
  time: '',
  latencyMs,
  probes: { store: { state, checked: true, latencyMs: 10, reason: 'why' } },
})

test.each([
  ['two and a half minutes', 150_000, 150_000, true],
  ['a millisecond more', 150_001, 150_001, false],
  ['no time', 0, 0, false],
  ['a minute in which the clock was set by five seconds', MINUTE, MINUTE + 5000, true],
  ['a minute in which it was set by more', MINUTE, MINUTE + 5001, false],
  ['a minute in which it was set back', MINUTE, MINUTE - 5001, false],
])('after %s a state has gone on: %#', (_, elapsed, wall, credited) => {
  const next = createRounds()
  const neighbours = new Map([['api', '2']])
  const first = next({ reports: [report('degraded')], neighbours, now: NOW, monotonic: 5 })
  expect(first).toEqual({
    at: NOW,
    observations: [
      { service: 'web', probe: WHOLE_SERVICE, state: 'degraded', latencyMs: 20 },
      { service: 'web', probe: 'store', state: 'degraded', reason: 'why', latencyMs: 10 },
    ],
    builds: { web: '1', api: '2' },
  })
  const now = NOW + wall
  const second = next({ reports: [report('failing')], neighbours, now, monotonic: 5 + elapsed })
  const credit = credited ? { state: 'degraded', from: now - elapsed, to: now } : undefined
  expect(second.observations).toMatchObject([{ probe: WHOLE_SERVICE }, { probe: 'store', state: 'failing' }])
  for (const one of second.observations) {
    expect(one.credit).toEqual(credit)
    // A failing probe has no latency, however long it took.
    expect(one.latencyMs).toBeUndefined()
  }
})

test('a probe without an earlier check gets no time before the first', () => {
  const next = createRounds()
  const neighbours = new Map()
  next({ reports: [], neighbours, now: NOW, monotonic: 0 })
  next({ reports: [report('ok')], neighbours, now: NOW + MINUTE, monotonic: MINUTE })
  next({ reports: [], neighbours, now: NOW + 2 * MINUTE, monotonic: 2 * MINUTE })
  const back = next({ reports: [report('ok')], neighbours, now: NOW + 3 * MINUTE, monotonic: 3 * MINUTE })
  expect(back.observations.map(({ credit }) => credit)).toEqual([undefined, undefined])
})

const period = (start: number, parts: Partial<Period> = {}): Period => ({
  start,
  ms: { ok: 0, degraded: 0, failing: 0, skipped: 0 },
  seen: [],
  latency: EMPTY,
  ...parts,
})
const series = (parts: Partial<Series> & { state?: ProbeState; at?: number } = {}): Series => ({
  service: 'web',
  probe: WHOLE_SERVICE,
  firstAt: NOW - DAY_MS,
  last: { at: parts.at ?? NOW, state: parts.state ?? 'ok', reason: undefined },
  days: [],
  hours: [],
  ...parts,
})
const summaryOf = (
  parts: Partial<Recorded>,
  services: readonly string[] = SERVICES,
  prerequisites?: Parameters<typeof summarise>[3],
) => summarise({ series: [], incidents: [], builds: [], ...parts }, NOW, services, prerequisites)

test('a look is of now for three minutes, and a build is for as long', () => {
  const at = (age: number) =>
    summaryOf({
      series: [series({ at: NOW - age })],
      builds: [{ service: 'web', build: '1', since: 5, seenAt: NOW - age }],
    })
  expect(at(3 * MINUTE - 1)).toMatchObject({
    state: 'ok',
    checkedAt: NOW - 3 * MINUTE + 1,
    since: NOW - DAY_MS,
    services: [{ build: '1', buildSince: 5, seenFrom: undefined, whole: { state: 'ok' } }],
  })
  expect(at(3 * MINUTE)).toMatchObject({
    state: 'unknown',
    services: [{ build: undefined, buildSince: undefined, whole: { state: 'unknown' } }],
  })
  expect(summaryOf({})).toMatchObject({
    state: 'unknown',
    checkedAt: undefined,
    since: undefined,
    services: [],
    skew: false,
  })
})

test('a service that records nothing any more is shown as web sees it now, and one that does as it says', () => {
  const OLD = NOW - 10 * MINUTE
  const api = (at: number) => series({ service: 'api', at })
  const itsStore = series({ service: 'api', probe: 'job_store' })
  const seen = (at: number) => series({ probe: 'api', state: 'failing', at })
  const shown = (...all: readonly Series[]) =>
    summaryOf({ series: [series(), itsStore, ...all] }).services.flatMap((one) =>
      one.service === 'api' ? [one.seenFrom, one.whole.state, one.probes.length] : [],
    )
  expect(shown(api(OLD), seen(NOW))).toEqual(['web', 'failing', 0])
  expect(shown(api(NOW), seen(NOW))).toEqual([undefined, 'ok', 1])
  expect(shown(api(OLD), seen(OLD))).toEqual([undefined, 'unknown', 1])
  expect(shown(seen(NOW))).toEqual(['web', 'failing', 0])
  expect(shown(seen(OLD))).toEqual([])
})

test('a service that has the name of another probe of web is shown as web sees the service', () => {
  const seen = (payments: ProbeState, service: ProbeState) =>
    summaryOf(
      {
        series: [
          series({ state: 'failing' }),
          series({ probe: 'payments', state: payments }),
          series({ probe: 'payments_service', state: service }),
        ],
      },
      ['web', 'payments'],
    )
  const stateOf = ({ services }: ReturnType<typeof seen>) => services[1]?.whole.state
  expect(stateOf(seen('skipped', 'failing'))).toBe('failing')
  expect(stateOf(seen('failing', 'ok'))).toBe('ok')
  expect(verdict(seen('failing', 'ok'), labels)).toBe('Payments (Web) is failing')
})

test('the whole is failing if anything is, then unknown, then degraded', () => {
  const whole = (...states: [ProbeState, number][]) =>
    summaryOf({ series: states.map(([state, at], n) => series({ service: SERVICES[n] ?? '', state, at })) })
      .state
  expect(whole(['failing', NOW], ['ok', 0], ['degraded', NOW])).toBe('failing')
  expect(whole(['ok', NOW], ['ok', 0], ['degraded', NOW])).toBe('unknown')
  expect(whole(['ok', NOW], ['ok', NOW], ['degraded', NOW])).toBe('degraded')
  expect(whole(['ok', NOW], ['ok', NOW])).toBe('ok')
})

test('the newest and the oldest look count, two builds are skew, and what is over is announced no more', () => {
  const summary = summaryOf({
    series: [
      series({ at: NOW - 2 * MINUTE, firstAt: NOW - 5 }),
      series({ service: 'api', at: NOW - MINUTE, firstAt: NOW - 9 }),
    ],
    builds: [
      { service: 'web', build: null, since: 1, seenAt: NOW },
      { service: 'api', build: '2', since: 1, seenAt: NOW },
    ],
    announcements: [
      { id: 'a', until: NOW },
      { id: 'b', until: NOW + 1 },
      { id: 'c', until: undefined },
    ] as never,
  })
  expect(summary).toMatchObject({ checkedAt: NOW - MINUTE, since: NOW - 9, skew: true })
  expect(summary.announcements.map(({ id }) => id)).toEqual(['b', 'c'])
})

test('a line has ninety days and the hours of the last day, with what was seen at its worst', () => {
  const today = Math.floor(NOW / DAY_MS) * DAY_MS
  const slow = [10, 20, 30].reduce(observe, EMPTY)
  const day = (ago: number, parts: Partial<Period>) => period(today - ago * DAY_MS, parts)
  const ms = { ok: 6, degraded: 3, failing: 1, skipped: 50 }
  const { whole } =
    summaryOf({
      series: [
        series({
          days: [
            day(DAYS_KEPT, { seen: ['failing'], ms }),
            day(DAYS_KEPT - 1, { seen: ['ok', 'degraded'], ms }),
            day(1, { seen: ['skipped'] }),
            day(0, { seen: ['failing', 'degraded', 'ok'] }),
          ],
          hours: [
            period(NOW - DAY_MS - HOUR_MS, { latency: slow, ms }),
            period(NOW - DAY_MS - HOUR_MS + 1, { latency: slow }),
            period(NOW - HOUR_MS),
          ],
        }),
      ],
    }).services[0] ?? {}
  expect(whole?.days).toHaveLength(DAYS_KEPT)
  expect([whole?.days[0], whole?.days.at(-2), whole?.days.at(-1)]).toEqual(['degraded', 'none', 'failing'])
  expect(whole?.trouble).toEqual([
    { start: today - (DAYS_KEPT - 1) * DAY_MS, degradedMs: 3, failingMs: 1 },
    { start: today, degradedMs: 0, failingMs: 0 },
  ])
  expect(whole?.hours.map(({ start }) => start)).toEqual([NOW - DAY_MS - HOUR_MS + 1])
  expect(whole?.allDays).toMatchObject({
    ms: { ok: 12, degraded: 6, failing: 2 },
    noDataMs: DAYS_KEPT * DAY_MS - 20,
    uptime: 0.9,
    latency: undefined,
  })
  expect(whole?.lastDay.latency?.count).toBe(6)
  // Each within 1 % of the middle one, and of the two that are nearly the slowest.
  const { p50 = 0, p95 = 0, p99 = 0 } = whole?.lastDay.latency ?? {}
  expect([p50 / 20, p95 / 30, p99 / 30].map((share) => Math.round(share * 50))).toEqual([50, 50, 50])
  expect(whole?.lastDay.noDataMs).toBe(DAY_MS - 10)
})

const incident = (service: string, probe: string, parts: Partial<Incident> = {}): Incident => ({
  service,
  probe,
  state: 'failing',
  reason: undefined,
  beganAt: NOW - HOUR_MS,
  endedAt: undefined,
  ...parts,
})
const told = (...incidents: Incident[]) =>
  rootIncidents(incidents, NOW, SERVICES).map(({ service, probe, lengthMs, feltBy }) => ({
    is: `${service}/${probe}`,
    lengthMs,
    feltBy,
  }))

test.each([
  ['began three minutes before its cause', { beganAt: NOW - HOUR_MS - 3 * MINUTE }, true],
  ['began earlier than that', { beganAt: NOW - HOUR_MS - 3 * MINUTE - 1 }, false],
  ['began three minutes after its cause ended', { beganAt: NOW - 27 * MINUTE }, true],
  ['began later than that', { beganAt: NOW - 27 * MINUTE + 1 }, false],
])('whether a neighbour’s incident that %s follows from the cause: %#', (_, parts, follows) => {
  const cause = incident('api', 'job_store', { endedAt: NOW - 30 * MINUTE })
  const found = told(cause, incident('web', 'api', parts))
  const root = { is: 'api/job_store', lengthMs: 30 * MINUTE, feltBy: follows ? ['web'] : [] }
  expect(found).toContainEqual(root)
  expect(found).toHaveLength(follows ? 1 : 2)
})

test('a cause is found over several neighbours, also where they look at each other, and a probe of no service has none', () => {
  expect(told(incident('api', 'job_store'), incident('agent', 'api'), incident('web', 'agent'))).toEqual([
    { is: 'api/job_store', lengthMs: HOUR_MS, feltBy: ['agent', 'web'] },
  ])
  expect(told(incident('web', 'api'), incident('api', 'web'))).toHaveLength(2)
  expect(told(incident('web', 'store'), incident('store', 'x'))).toHaveLength(2)
})

test.each([
  ['while its cause fails', {}, {}, true],
  ['and ended with its cause', { endedAt: NOW - 27 * MINUTE }, { endedAt: NOW - 30 * MINUTE }, true],
  ['and went on after it', { endedAt: NOW - 27 * MINUTE + 1 }, { endedAt: NOW - 30 * MINUTE }, false],
  ['longer before its cause', { beganAt: NOW - HOUR_MS - 3 * MINUTE - 1 }, {}, false],
  ['while its cause is only degraded', {}, { state: 'degraded' } as const, false],
])(
  'whether an incident of a probe that failed %s is listed under what it depends on: %#',
  (_, kiln, store, follows) => {
    const found = rootIncidents(
      [incident('web', 'kiln', kiln), incident('web', 'store', store)],
      NOW,
      SERVICES,
      new Map([['kiln', new Set(['store'])]]),
    ).map(({ probe, feltBy }) => [probe, ...feltBy])
    expect(found.toSorted()).toEqual(follows ? [['store', 'kiln']] : [['kiln'], ['store']])
  },
)

test('probes of the same name failing in several services are one incident of the first service, with the worst state and longest time', () => {
  const first = incident('web', 'mail', { state: 'degraded', endedAt: NOW - 30 * MINUTE })
  const join = (parts: Partial<Incident>) =>
    rootIncidents([incident('api', 'mail', { reason: 'r', ...parts }), first], NOW, SERVICES)
  const joined = { service: 'web', state: 'failing', reason: 'r', feltBy: ['api'] }
  expect(join({ beganAt: NOW - 27 * MINUTE, endedAt: NOW - MINUTE })).toEqual([
    { ...first, ...joined, endedAt: NOW - MINUTE, lengthMs: 59 * MINUTE },
  ])
  expect(join({ beganAt: NOW - 40 * MINUTE, endedAt: NOW - 35 * MINUTE })).toMatchObject([
    { ...joined, endedAt: NOW - 30 * MINUTE },
  ])
  expect(join({ beganAt: NOW - 27 * MINUTE })).toMatchObject([
    { ...joined, endedAt: undefined, lengthMs: HOUR_MS },
  ])
  expect(join({ beganAt: NOW - 27 * MINUTE + 1 }).map(({ service }) => service)).toEqual(['api', 'web'])
  expect(join({ state: 'degraded' })).toMatchObject([{ state: 'degraded', beganAt: NOW - HOUR_MS }])
  // Two incidents of one service count as two.
  expect(told(first, incident('web', 'mail', { beganAt: NOW - 29 * MINUTE }))).toHaveLength(2)
})

const labels = createLabels({
  language: 'en',
  services: [{ name: 'web' }, { name: 'api', label: 'The API' }] as never,
  probes: [{ name: 'own', label: 'Our own' }, { name: 'bare' }],
})

test('services and probes have their labels, and without one their name in words', () => {
  expect(['web', 'api', 'region_b', 'job-store-two'].map(labels.service)).toEqual([
    'Web',
    'The API',
    'Region B',
    'Job store two',
  ])
  expect(['api', 'own', 'bare', 'mail'].map(labels.probe)).toEqual(['The API', 'Our own', 'Bare', 'Mail'])
  expect([labels.isService('api'), labels.isService('own')]).toEqual([true, false])
})

test('names up to six failing parts; of more, the first five and the number of the rest', () => {
  const of = (count: number, state: ProbeState) =>
    verdict(
      summaryOf(
        {
          series: [
            series({ state }),
            ...Array.from({ length: count }, (_, n) => series({ probe: `p${n}`, state })),
          ],
        },
        ['web'],
      ),
      labels,
    )
  expect(of(6, 'failing')).toMatch(/P0 \(Web\).*P5 \(Web\) are failing$/)
  expect(of(7, 'failing')).toMatch(/^P0 \(Web\), P1.*P4 \(Web\).* 2 /)
  expect(of(7, 'failing')).not.toContain('P5')
  expect(of(1, 'degraded')).toContain('P0 (Web) is degraded')
  expect(of(0, 'failing')).toBe('Web is failing')
  expect(of(2, 'ok')).toBe('Everything works')
  const silent = [series(), series({ service: 'api', at: NOW - HOUR_MS })]
  expect(verdict(summaryOf({ series: silent }, ['web', 'api']), labels)).toBe(
    'No current data for The API; everything else works',
  )
})

test('services that ask each other are both named while both fail', () => {
  const summary = summaryOf(
    {
      series: [
        series({ state: 'failing' }),
        series({ probe: 'api', state: 'failing' }),
        series({ service: 'api', state: 'failing' }),
        series({ service: 'api', probe: 'web', state: 'failing' }),
      ],
    },
    ['web', 'api'],
  )
  expect(verdict(summary, labels)).toBe('The API (Web) and Web (The API) are failing')
})

test('what fails because of a probe that it depends on is not named in the verdict', () => {
  const failing = (probe: string) => series({ probe, state: 'failing' })
  const said = (...probes: string[]) =>
    verdict(
      summaryOf(
        { series: [series({ state: 'failing' }), ...probes.map(failing)] },
        ['web'],
        new Map([['own', new Set(['mail'])]]),
      ),
      labels,
    )
  expect(said('own', 'mail')).toBe('Mail (Web) is failing')
  expect(said('own', 'bare')).toBe('Our own (Web) and Bare (Web) are failing')
})

test('what operators wrote about an incident is with the outage that it was opened for', () => {
  const outage = (beganAt: number, endedAt: number | undefined) =>
    ({ service: 'web', probe: 'mail', state: 'failing', reason: undefined, beganAt, endedAt }) as const
  const summary = summaryOf({
    incidents: [outage(NOW - 5000, undefined), outage(NOW - 9000, NOW - 6000)],
    updates: [
      ['old', 'mail', NOW - 8000],
      ['new', 'mail', NOW - 4000],
      ['other', 'store', NOW - 4000],
    ].map(([id, cause, openedAt]) => ({ id, cause, openedAt, subject: 'i', text: '', at: NOW })) as never,
  })
  expect(summary.incidents.map(({ updates = [] }) => updates.map(({ id }) => id))).toEqual([['new'], ['old']])
})
