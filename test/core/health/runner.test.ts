import { expect, onTestFinished, test, vi } from 'vitest'
import { readSettings } from '../../../src/core/env/settings.ts'
import { openProbes, type ProbeResult } from '../../../src/core/health/probe.ts'
import { createHealth, logChanges } from '../../../src/core/health/runner.ts'
import { systemClock, systemRandom } from '../../../src/core/host.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const ok: ProbeResult = { state: 'ok', checked: true }
const PLAIN = { clock: systemClock, build: undefined, startedAt: 0 }
const health = (probes: Parameters<typeof createHealth>[0]['probes'], deadlineMs = 2000) =>
  createHealth({ ...PLAIN, service: 'web', probes, deadlineMs })

const never = () => new Promise<never>(() => {})
const checked = (probes: Parameters<typeof health>[0], deadlineMs?: number) =>
  health(probes, deadlineMs).check({ deep: false })

test('probes that have answered leave no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length
  const before = timers()
  await health(Array.from({ length: 50 }, (_, n) => ({ name: `p${n}`, run: async () => ok }))).check({
    deep: false,
  })
  expect(timers() - before).toBeLessThan(10)
})

test.each([false, true])(
  'a process that stops is failing, also where live checks are asked for: %s',
  async (deep) => {
    const stops = createHealth({ ...PLAIN, service: 'web', probes: [], stopping: () => true })
    const lifecycle = { state: 'failing', reason: 'the daemon stops' }
    expect(await stops.check({ deep })).toMatchObject({ state: 'failing', probes: { lifecycle } })
    // Also if the check is stopped while its probes run.
    let isTold = false
    const run = async (): Promise<ProbeResult> => {
      isTold = true
      return { state: 'ok', checked: true }
    }
    const told = createHealth({
      ...PLAIN,
      service: 'web',
      probes: [{ name: 'a', run }],
      stopping: () => isTold,
    })
    expect(await told.check({ deep })).toMatchObject({ state: 'failing', probes: { lifecycle } })
  },
)

test('an optional probe is degraded, whether it fails, throws or hangs, and not where it is skipped', async () => {
  const failing: ProbeResult = { state: 'failing', checked: true, reason: 'why' }
  const skipped: ProbeResult = { state: 'skipped', checked: false, reason: 'not configured' }
  const report = await checked(
    [
      { name: 'fails', optional: true, run: async () => failing },
      { name: 'throws', optional: true, run: () => Promise.reject(new Error('why')) },
      { name: 'hangs', optional: true, run: never },
      { name: 'absent', optional: true, run: async () => skipped },
    ],
    50,
  )
  const state = 'degraded'
  expect(report).toMatchObject({
    state,
    probes: { fails: { state }, throws: { state }, hangs: { state }, absent: skipped },
  })
})

test('a probe gets back the time in which another one blocked the process', async () => {
  const turns = async (left: number): Promise<ProbeResult> =>
    left === 0 ? ok : new Promise((resolve) => setTimeout(() => resolve(turns(left - 1)), 1))
  const report = await checked(
    [
      {
        name: 'blocks',
        async run() {
          for (const end = performance.now() + 600; performance.now() < end; );
          return ok
        },
      },
      { name: 'answers', run: () => turns(5) },
    ],
    400,
  )
  expect(report).toMatchObject({ state: 'ok', probes: { answers: { state: 'ok' } } })
})

/** From now on time passes only when it is told to; gives what a promise has become after so many milliseconds. */
function stoppedTime() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  return async <T>(ms: number, awaited: Promise<T>): Promise<T | 'not yet'> => {
    let result: T | 'not yet' = 'not yet'
    void awaited.then((value) => {
      result = value
    })
    await vi.advanceTimersByTimeAsync(ms)
    return result
  }
}

test('answers a request that arrives while a probe hangs within the deadline', async () => {
  const after = stoppedTime()
  const { check } = health([{ name: 'hangs', run: never }], 400)
  const first = check({ deep: false })
  const follower = check({ deep: false })
  // The first has half the deadline to itself, the follower waits that out and has its own half.
  expect(await after(199, first)).toBe('not yet')
  expect(await after(2, first)).toMatchObject({ state: 'failing' })
  expect(await after(198, follower)).toBe('not yet')
  expect(await after(10, follower)).toMatchObject({ state: 'failing' })
})

test('a hanging probe delays only those who wait for it', async () => {
  let runs = 0
  const { check } = health(
    [
      { name: 'hangs', run: never },
      {
        name: 'quick',
        run: async () => {
          runs += 1
          return ok
        },
      },
    ],
    100,
  )
  await Promise.all([check({ deep: false }), check({ deep: false })])
  expect(runs).toBe(2)
})

test('a probe keeps to its own budget, and says how far it came', async () => {
  const report = await checked(
    [
      {
        name: 'named',
        deadlineMs: 20,
        run: ({ signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () =>
              resolve({ state: 'failing', checked: true, reason: 'stuck half-way' }),
            ),
          ),
      },
      {
        name: 'rejects',
        deadlineMs: 20,
        run: ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
    ],
    60_000,
  )
  expect(report.probes).toMatchObject({
    named: { reason: 'stuck half-way' },
    rejects: { reason: 'no answer in time' },
  })
})

test('the clock of the machine may step an hour while probes run', async () => {
  let wall = Date.parse('2026-11-21T12:00:00Z')
  let monotonic = 0
  const clock = { ...systemClock, now: () => wall, monotonic: () => monotonic }
  const report = await createHealth({
    service: 'api',
    clock,
    build: 'b',
    startedAt: wall,
    probes: [
      {
        name: 'steps',
        run: async () => {
          wall -= 3_600_000
          monotonic += 7
          return ok
        },
      },
    ],
  }).check({ deep: false })
  expect(report).toMatchObject({
    state: 'ok',
    latencyMs: 7,
    startedAt: '2026-11-21T12:00:00.000Z',
    time: '2026-11-21T11:00:00.000Z',
    probes: { steps: { latencyMs: 7 } },
  })
})

test('an unresolved name delays a deep check no longer than its deadline', async () => {
  // Loaded with the first deep check, which takes real time: before time stands still.
  await import('../../../src/core/health/reach.ts')
  const after = stoppedTime()
  const lookups: string[] = []
  const settings = readSettings(learning, {
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-data-store',
    API_URL: 'http://api.example.com',
    AGENT_URL: 'http://agent.example.com',
  })
  const probes = openProbes(learning.probes, 'web', {
    settings,
    clock: systemClock,
    random: systemRandom,
    counting: () => 'local',
    store: { kind: async () => 'sqlite', ping: async () => {} },
    jobStore: { kind: async () => 'sqlite', ping: async () => {} },
    verifyMail: async () => {},
    pingAnalytics: async () => {},
    hasPackage: () => false,
    network: {
      lookup: (host) => {
        lookups.push(host)
        return new Promise(() => {})
      },
    },
  })
  const report = await after(202, health(probes, 400).check({ deep: true }))
  expect(lookups.sort()).toEqual(['agent.example.com', 'api.example.com', 'data.example.com'])
  expect(report).toMatchObject({
    probes: {
      datastore: { state: 'failing', reason: 'cannot be reached: its name was not looked up in time' },
      agent: { state: 'failing', reason: 'no health to be had: its name was not looked up in time' },
      store: { state: 'ok' },
    },
  })
})

/** A log that keeps its lines. */
function kept() {
  const lines: unknown[] = []
  const line = (level: string) => (event: string, _: string, fields?: object) =>
    void lines.push({ level, event, ...fields })
  return {
    lines,
    log: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
  }
}

test('each change of state is logged once, with the probes to blame', async () => {
  const { lines, log } = kept()
  const states: ProbeResult['state'][] = ['ok', 'degraded', 'degraded', 'failing', 'ok']
  const { check } = logChanges(
    health([
      {
        name: 'store',
        run: async () => ({ state: states.shift() ?? 'ok', checked: true, reason: 'the reason' }),
      },
    ]),
    log,
  )
  for (let round = 0; round < 6; round += 1) await check({ deep: false })
  const common = { event: 'health_changed', service: 'web', depth: 'shallow' }
  expect(lines).toEqual([
    { ...common, level: 'warn', from: 'ok', to: 'degraded', probes: 'store: the reason' },
    { ...common, level: 'error', from: 'degraded', to: 'failing', probes: 'store: the reason' },
    { ...common, level: 'info', from: 'failing', to: 'ok' },
  ])
})

test('of a service other than web, only probes of the definition check more on a deep request', async () => {
  const asked: string[] = []
  const probe = (name: string, hasDeep?: boolean) => ({
    name,
    ...(hasDeep && { hasDeep }),
    run: async ({ deep }: { readonly deep: boolean }) => {
      asked.push(`${name} ${deep}`)
      return ok
    },
  })
  const probes = [probe('queue', true), probe('job_store')]
  const { check } = createHealth({ ...PLAIN, service: 'jobs', probes })
  await check({ deep: true })
  await check({ deep: false })
  expect(asked).toEqual(['queue true', 'job_store false', 'queue false', 'job_store false'])
})

test('a probe that fails only when it is tried live is logged once, however shallow and deep checks alternate', async () => {
  const { lines, log } = kept()
  const { check } = logChanges(
    health([
      {
        name: 'mail',
        run: async ({ deep }) => (deep ? { state: 'failing', checked: true, reason: 'why' } : ok),
      },
    ]),
    log,
  )
  for (const deep of [false, true, false, true, false]) await check({ deep })
  expect(lines).toMatchObject([{ depth: 'deep', from: 'ok', to: 'failing', probes: 'mail: why' }])
})
