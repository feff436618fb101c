import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { ProbeState } from '../../../src/core/health/probe.ts'
import type { Service } from '../../../src/core/service.ts'
import { encode, type Histogram, observe } from '../../../src/core/status/histogram.ts'
import { DAYS_KEPT, type History, HOURS_KEPT, WHOLE_SERVICE } from '../../../src/core/status/history.ts'
import { createRounds } from '../../../src/core/status/rounds.ts'
import { type Line, summarise } from '../../../src/core/status/summary.ts'
import { verdict } from '../../../src/core/status/words.ts'
import { openHistory } from '../../../src/core/store/open.ts'
import { emptyFolder } from '../../support/folder.ts'
import { LABELS, SERVICES } from '../../support/learning.ts'

const EMPTY: Histogram = new Map()

const START = Date.UTC(2026, 10, 21, 9, 0)
const MINUTE_MS = 60_000

type Results = Readonly<Record<string, ProbeState | readonly [ProbeState, string]>>

/** A recorder whose time is told: each look is a minute after the one before, unless it says otherwise. */
async function recording(file?: string) {
  const history = await openHistory(file)
  onTestFinished(() => history.close())
  let [now, monotonic] = [START, 5000]
  let rounds = createRounds()
  let build: string | null = '1'
  const it = {
    history,
    restart: () => {
      rounds = createRounds()
    },
    deploy: (next: string | null) => {
      build = next
    },
    /** The clock is set; no time passes. */
    setClock: (ms: number) => {
      now += ms
    },
    async look(
      services: Readonly<Partial<Record<Service, Results>>>,
      passed = MINUTE_MS,
      neighbours = new Map(),
    ) {
      now += passed
      monotonic += passed
      const reports = Object.entries(services).map(([service, results = {}]) => {
        const probes = Object.entries(results).map(([probe, result]) => {
          const [state, reason] = typeof result === 'string' ? [result] : result
          return [
            probe,
            { state: state as ProbeState, checked: true, latencyMs: 10, ...(reason && { reason }) },
          ] as const
        })
        const states = probes.map(([, { state }]) => state)
        return {
          service: service as Service,
          state: states.includes('failing') ? 'failing' : states.includes('degraded') ? 'degraded' : 'ok',
          build,
          startedAt: '',
          time: '',
          latencyMs: 20,
          probes: Object.fromEntries(probes),
        } as const
      })
      await history.record(rounds({ reports, neighbours, now, monotonic }))
    },
    summary: async (later = 0) => summarise(await history.read(now + later), now + later, SERVICES),
    now: () => now,
  }
  return it
}

const web = async (it: Awaited<ReturnType<typeof recording>>, probe = WHOLE_SERVICE): Promise<Line> => {
  const service = (await it.summary()).services.find(({ service }) => service === 'web')
  const found =
    probe === WHOLE_SERVICE ? service?.whole : service?.probes.find((line) => line.probe === probe)
  if (found === undefined) throw new Error(`web has no line ${probe}`)
  return found
}

test('uptime is by time: a failing minute of ten is 90 %, and degraded counts as up', async () => {
  const it = await recording()
  for (let minute = 0; minute < 5; minute += 1) await it.look({ web: { store: 'ok' } })
  await it.look({ web: { store: 'failing' } })
  for (let minute = 0; minute < 3; minute += 1) await it.look({ web: { store: 'degraded' } })
  await it.look({ web: { store: 'ok' } })
  await it.look({ web: { store: 'ok' } })
  const { allDays, days } = await web(it, 'store')
  expect(allDays.ms).toEqual({ ok: 6 * MINUTE_MS, degraded: 3 * MINUTE_MS, failing: MINUTE_MS })
  expect(allDays.uptime).toBe(0.9)
  expect(days.at(-1)).toBe('failing')
  expect(days.slice(0, -1).every((day) => day === 'none')).toBe(true)
})

test.each<[string, (it: Awaited<ReturnType<typeof recording>>) => unknown, passed?: number]>([
  ['a stop of an hour', () => {}, HOUR_MS],
  ['a restart at once', (it) => it.restart()],
  ['a step of the clock by an hour', (it) => it.setClock(HOUR_MS)],
  ['a step of the clock back', (it) => it.setClock(-HOUR_MS)],
])('the time of %s is no data, and not uptime', async (_, interrupt, passed = MINUTE_MS) => {
  const it = await recording()
  await it.look({ web: { store: 'ok' } })
  await it.look({ web: { store: 'ok' } })
  interrupt(it)
  await it.look({ web: { store: 'ok' } }, passed)
  await it.look({ web: { store: 'ok' } })
  const { allDays } = await web(it, 'store')
  expect(allDays.ms.ok).toBe(2 * MINUTE_MS)
  expect(allDays.noDataMs).toBe(DAYS_KEPT * DAY_MS - 2 * MINUTE_MS)
})

test('a minute over midnight is divided between the two days', async () => {
  const it = await recording()
  await it.look({ web: { store: 'failing' } }, 14 * HOUR_MS + 59 * MINUTE_MS + 30_000)
  await it.look({ web: { store: 'ok' } })
  const { days, lastDay } = await web(it, 'store')
  expect(days.slice(-2)).toEqual(['failing', 'failing'])
  expect(lastDay.ms.failing).toBe(MINUTE_MS)
})

test('a day with a single check shows its result, though it has no duration', async () => {
  const it = await recording()
  await it.look({ web: { store: 'failing' } })
  it.restart()
  await it.look({ web: { store: 'ok' } }, DAY_MS)
  it.restart()
  await it.look({ web: { store: 'degraded' } }, DAY_MS)
  const { days, allDays } = await web(it, 'store')
  expect(days.slice(-4)).toEqual(['none', 'failing', 'ok', 'degraded'])
  expect(allDays.uptime).toBeUndefined()
})

test('an unconfigured probe has neither uptime nor trouble', async () => {
  const it = await recording()
  for (let minute = 0; minute < 3; minute += 1) await it.look({ web: { store: 'ok', mail: 'skipped' } })
  const { state, allDays, days } = await web(it, 'mail')
  expect({ state, uptime: allDays.uptime, today: days.at(-1) }).toEqual({
    state: 'skipped',
    uptime: undefined,
    today: 'none',
  })
  // Nobody looked for an hour: what was not configured is not without data for that.
  const { services } = await it.summary(HOUR_MS)
  expect(services[0]?.probes.map(({ probe, state }) => [probe, state])).toEqual([
    ['store', 'unknown'],
    ['mail', 'skipped'],
  ])
})

test('an incident has its cause and its length, over a restart too; after a silence it is another', async () => {
  const it = await recording()
  await it.look({ web: { mail: 'ok' } })
  await it.look({ web: { mail: ['degraded', 'slow'] } })
  await it.look({ web: { mail: ['failing', 'cannot be reached'] } })
  it.restart()
  await it.look({ web: { mail: ['degraded', 'slow'] } })
  await it.look({ web: { mail: 'ok' } })
  await it.look({ web: { mail: ['failing', 'no answer in time'] } })
  await it.look({ web: { mail: ['failing', 'no answer in time'] } }, 3 * HOUR_MS)
  const { incidents } = await it.summary(30_000)
  expect(
    incidents.map(({ state, reason, lengthMs, endedAt }) => [state, reason, lengthMs, endedAt !== undefined]),
  ).toEqual([
    ['failing', 'no answer in time', 30_000, false],
    ['failing', 'no answer in time', 0, true],
    ['failing', 'cannot be reached', 3 * MINUTE_MS, true],
  ])
})

test('an incident that goes on is shown, however many others began after it', async () => {
  const it = await recording()
  for (let flap = 0; flap < 400; flap += 1) {
    const state = flap % 2 === 0 ? 'degraded' : 'ok'
    await it.look({ web: { store: 'degraded', mail: state, payments: state, datastore: state } })
  }
  const { incidents } = await it.summary()
  expect(incidents.filter(({ endedAt }) => endedAt === undefined)).toMatchObject([
    { probe: 'store', lengthMs: 399 * MINUTE_MS },
  ])
})

test('an incident of a probe that nothing checks any more is over, and the probe is not listed', async () => {
  const it = await recording()
  for (let minute = 0; minute < 3; minute += 1) await it.look({ web: { kiln: 'failing', mail: 'ok' } })
  for (let minute = 0; minute < 15; minute += 1) await it.look({ web: { mail: 'ok' } })
  const { incidents, services } = await it.summary()
  expect(incidents).toMatchObject([
    { probe: 'kiln', endedAt: START + 3 * MINUTE_MS, lengthMs: 2 * MINUTE_MS },
  ])
  expect(services.flatMap(({ probes }) => probes.map(({ probe }) => probe))).toEqual(['mail'])
})

test('an incident goes on although a probe that was removed since was looked at by a clock that was ahead', async () => {
  const it = await recording()
  it.setClock(24 * HOUR_MS)
  await it.look({ web: { old: 'ok', mail: 'ok' } })
  it.setClock(-24 * HOUR_MS)
  for (let minute = 0; minute < 3; minute += 1) await it.look({ web: { mail: 'failing' } })
  const { incidents } = await it.summary()
  expect(incidents.map(({ probe, endedAt }) => [probe, endedAt])).toEqual([['mail', undefined]])
})

test('reports a fault once, at its cause, and names the affected services beside it', async () => {
  const it = await recording()
  const well = { web: { api: 'ok', agent: 'ok' }, api: { job_store: 'ok' }, agent: { api: 'ok' } } as const
  await it.look(well)
  await it.look({ ...well, api: { job_store: ['failing', 'the check failed'] } })
  await it.look({
    web: { api: 'failing', agent: 'failing' },
    api: { job_store: 'failing' },
    agent: { api: 'failing' },
  })
  const summary = await it.summary()
  expect(verdict(summary, LABELS)).toBe('Job store (API) is failing')
  expect(summary.incidents).toMatchObject([{ service: 'api', probe: 'job_store', feltBy: ['web', 'agent'] }])
  await it.look(well)
  expect((await it.summary()).incidents).toHaveLength(1)
})

test.each<[Partial<Record<Service, Results>>, string, string]>([
  [{ web: { store: 'ok', mail: 'skipped' } }, 'ok', 'Everything works'],
  [{ web: { store: 'degraded' } }, 'degraded', 'Everything works, with limits: Store (Web) is degraded'],
  [
    { web: { mail: 'failing', store: 'degraded', payments: 'failing' } },
    'failing',
    'Mail (Web) and Payments (Web) are failing',
  ],
  [{ web: { api: 'failing' } }, 'failing', 'API is failing'],
])('the verdict over %j is %s: %s', async (results, state, sentence) => {
  const it = await recording()
  await it.look(results)
  const summary = await it.summary()
  expect([summary.state, verdict(summary, LABELS)]).toEqual([state, sentence])
})

test('without a look for some minutes nothing is claimed of now', async () => {
  const it = await recording()
  expect(verdict(await it.summary(), LABELS)).toBe('No history is recorded yet')
  await it.look({ web: { store: 'ok' } })
  const later = await it.summary(10 * MINUTE_MS)
  expect([later.state, verdict(later, LABELS)]).toEqual([
    'unknown',
    'Nothing has been recorded for 10 minutes',
  ])
})

test('a web service on its own shows the others as its probes see them, and a different build as skew', async () => {
  const it = await recording()
  await it.look({ web: { api: 'ok', agent: 'failing' } }, MINUTE_MS, new Map([['api', '2']]))
  const { services, skew } = await it.summary()
  expect(
    services.map(({ service, seenFrom, whole, build }) => [service, seenFrom, whole.state, build]),
  ).toEqual([
    ['web', undefined, 'failing', '1'],
    ['api', 'web', 'ok', '2'],
    ['agent', 'web', 'failing', undefined],
  ])
  expect(skew).toBe(true)
})

test.each(['1', null])('a redeployed build %j counts from its new deployment', async (build) => {
  const it = await recording()
  it.deploy(build)
  await it.look({ web: { store: 'ok' } })
  it.deploy('2')
  await it.look({ web: { store: 'ok' } })
  it.deploy(build)
  await it.look({ web: { store: 'ok' } })
  const since = it.now()
  await it.look({ web: { store: 'ok' } })
  expect((await it.summary()).services[0]).toMatchObject({ build, buildSince: since })
})

test('records survive closing and reopening, and two processes may record into one file', async () => {
  const file = path.join(await emptyFolder(), 'history.sqlite')
  const one = await recording(file)
  const other = await recording(file)
  await one.look({ web: { store: 'ok' } })
  await other.look({ api: { circuit: 'ok' } })
  await one.look({ web: { store: 'ok' } })
  await other.look({ api: { circuit: 'ok' } })
  await one.history.close()
  const { services } = await other.summary()
  expect(services.map(({ service, whole }) => [service, whole.allDays.ms.ok])).toEqual([
    ['web', MINUTE_MS],
    ['api', MINUTE_MS],
  ])
})

test('what an earlier build recorded, before an upgrade and after a rollback, is shown', async () => {
  const file = path.join(await emptyFolder(), 'history.sqlite')
  await (await openHistory(file)).close()
  const today = Math.floor(START / DAY_MS) * DAY_MS
  const recordedByEarlier = (day: number, series: string) => {
    const database = new Database(file)
    database.exec(`
      INSERT INTO series (id, service, probe, first_at, at, state, reason) VALUES ${series}
        ON CONFLICT (id) DO UPDATE SET at = excluded.at;
      INSERT INTO period (length, start, series, ok, seen, latency) VALUES (${DAY_MS}, ${day}, 7, 5000, 1, x'0a02');
      INSERT INTO incident (series, state, reason, began_at, seen_at, ended_at) VALUES (7, 'failing', 'r', ${day}, ${day}, ${day + 9});
      INSERT OR REPLACE INTO build (service, build, since, seen_at) VALUES ('web', '1', ${day}, ${day})`)
    database.close()
  }
  recordedByEarlier(today - DAY_MS, `(7, 'web', 'mail', 1, ${START}, 'ok', NULL)`)
  const upgraded = await recording(file)
  await upgraded.look({ web: { mail: 'ok' } })
  await upgraded.history.close()
  recordedByEarlier(today - 2 * DAY_MS, `(7, 'web', 'mail', 1, ${START + HOUR_MS}, 'ok', NULL)`)
  const again = await openHistory(file)
  onTestFinished(() => again.close())
  const { series, incidents, builds } = await again.read(START)
  expect(series.map(({ probe, firstAt }) => [probe, firstAt])).toEqual([
    ['mail', 1],
    [WHOLE_SERVICE, START + MINUTE_MS],
  ])
  expect(
    series[0]?.days.map(({ start, ms, latency }) => [(today - start) / DAY_MS, ms.ok, [...latency]]),
  ).toEqual([
    [2, 5000, [[10, 2]]],
    [1, 5000, [[10, 2]]],
    [0, 0, expect.anything()],
  ])
  expect(incidents.map(({ probe, endedAt }) => [probe, endedAt])).toEqual([
    ['mail', today - DAY_MS + 9],
    ['mail', today - 2 * DAY_MS + 9],
  ])
  expect(builds).toMatchObject([{ service: 'web', build: '1', since: today - DAY_MS }])
})

test('refuses a file that is not a history with a sentence that says so', async () => {
  const file = path.join(await emptyFolder(), 'history.sqlite')
  writeFileSync(file, 'no database '.repeat(100))
  await expect(openHistory(file)).rejects.toThrow(/is not an SQLite file/)
})

test('90 days of 20 probes at their worst stay within 20 MB, and older days go', async () => {
  const file = path.join(await emptyFolder(), 'history.sqlite')
  const history: History = await openHistory(file)
  const end = START + 5 * DAY_MS
  const step = 24 * HOUR_MS
  let bucket = 0
  for (let at = end - (DAYS_KEPT + 5) * DAY_MS; at <= end; at += step) {
    await history.record({
      at,
      builds: {},
      observations: Array.from({ length: 20 }, (_, index) => {
        // Flaps at every look, and spreads its latencies over all that a histogram tells apart.
        bucket = (bucket + 7) % 980
        return {
          service: 'web' as const,
          probe: `probe_${index}`,
          state: (Math.floor(at / step) + index) % 2 === 0 ? ('ok' as const) : ('failing' as const),
          reason: 'no answer in time',
          latencyMs: 0.011 * 1.02 ** bucket,
          credit: { state: 'ok' as const, from: at - step, to: at },
        }
      }),
    })
  }
  const { series, incidents } = await history.read(end)
  await history.close()
  expect(series).toHaveLength(20)
  expect(series.every(({ days }) => days.length === DAYS_KEPT)).toBe(true)
  expect(incidents.length).toBeGreaterThan(0)
  expect(statSync(file).size).toBeLessThan(20 * 2 ** 20)
  // And were every latency there is in every row, each as often as there are minutes in a day:
  let full = EMPTY
  for (let ms = 0.01; ms < 4_000_000; ms *= 1.01) full = observe(full, ms)
  const row = encode(new Map([...full.keys()].map((one) => [one, 1440]))).length
  expect(20 * (DAYS_KEPT + HOURS_KEPT + 24) * (row + 100)).toBeLessThan(20 * 2 ** 20)
})

test('a day with trouble says how long it was in which state, and an hour how fast it answered', async () => {
  const it = await recording()
  for (const state of ['ok', 'failing', 'failing', 'degraded', 'ok'] as const)
    await it.look({ web: { mail: state } })
  const { trouble, hours } = await web(it, 'mail')
  expect(trouble).toEqual([
    { start: Date.UTC(2026, 10, 21), degradedMs: MINUTE_MS, failingMs: 2 * MINUTE_MS },
  ])
  expect(hours).toEqual([{ start: START, p50: expect.closeTo(10, 0), p95: expect.closeTo(10, 0) }])
})
