import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import type { ProbeState } from '../../../src/core/health/probe.ts'
import { type Round, WHOLE_SERVICE } from '../../../src/core/status/history.ts'
import { createRounds } from '../../../src/core/status/rounds.ts'
import { summarise } from '../../../src/core/status/summary.ts'
import { openHistory, openSharedHistory } from '../../../src/core/store/open.ts'
import { shareHistory } from '../../../src/daemon/history.ts'
import { SERVICES } from '../../support/learning.ts'
import { addressOf } from '../../support/stores.ts'

const START = Date.UTC(2026, 10, 21, 9, 0)

/** Machines that share a PostgreSQL, whose time the test tells; `cut` is the cable of one of them. */
async function machines() {
  const address = await addressOf('postgres')
  const health = address && (await openSharedHistory(address))
  if (health === undefined) throw new Error('a PostgreSQL has a shared history')
  onTestFinished(() => health.close())
  let now = START
  const machine = async (name: string) => {
    const own = await openHistory(undefined)
    const cable = { cut: false, onSeed() {} }
    const over = <T>(work: () => Promise<T>) =>
      cable.cut ? Promise.reject(new Error('unreachable')) : work()
    const history = shareHistory(
      { now: () => now },
      own,
      {
        record: (...round) => over(() => health.record(...round)),
        read: (at) => over(() => health.read(at)),
        seed: (past, options) =>
          over(() =>
            health.seed(async () => {
              const record = await past()
              cable.onSeed()
              return record
            }, options),
          ),
        close: async () => {},
      },
      name,
    )
    onTestFinished(() => history.close())
    let rounds = createRounds()
    return {
      cable,
      own,
      history,
      restart: () => {
        rounds = createRounds()
      },
      async look(
        state: ProbeState,
        { latencyMs = 10, reason = 'no answer in time', neighbours = new Map<string, string>() } = {},
      ) {
        const result = { state, checked: true, latencyMs, ...(state === 'failing' && { reason }) }
        const whole = state === 'skipped' ? 'ok' : state
        const report = {
          service: 'web',
          state: whole,
          build: '1',
          startedAt: '',
          time: '',
          latencyMs,
        } as const
        const reports = [{ ...report, probes: { mail: result } }] as const
        await history.record(rounds({ reports, neighbours, now, monotonic: now }) satisfies Round)
      },
      async page(from: 'shared' | 'own' = 'shared') {
        return summarise(await (from === 'own' ? own : history).read(now), now, SERVICES)
      },
      /** Incidents are rows of the store itself. */
      async shown() {
        return { ...summarise(await history.read(now), now, SERVICES), incidents: [] }
      },
      async mail() {
        const { services } = summarise(await history.read(now), now, SERVICES)
        const line = services[0]?.probes[0]
        if (line === undefined) throw new Error('mail has no line')
        return line
      },
    }
  }
  return {
    machine,
    pass: (ms: number) => {
      now += ms
    },
  }
}

test('one machine alone shows from PostgreSQL what its file shows, over stops, steps of the clock and midnights', async () => {
  const minute = fc.record({
    state: fc.constantFrom<ProbeState>('ok', 'degraded', 'failing', 'skipped'),
    passed: fc.constantFrom(15_000, MINUTE_MS, MINUTE_MS, MINUTE_MS, 5 * MINUTE_MS, DAY_MS / 2, -DAY_MS / 2),
    latencyMs: fc.integer({ min: 1, max: 5000 }),
    restarts: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(minute, { minLength: 10, maxLength: 15 }), async (minutes) => {
      const { machine, pass } = await machines()
      const one = await machine('a')
      for (const { state, passed, latencyMs, restarts } of minutes) {
        pass(passed)
        if (restarts) one.restart()
        await one.look(state, { latencyMs })
      }
      expect(await one.page()).toEqual(await one.page('own'))
    }),
    { numRuns: 2 },
  )
})

test('a machine that begins the record in trouble shows its own recovery at once', async () => {
  const { machine, pass } = await machines()
  const one = await machine('a')
  for (const state of ['degraded', 'ok'] as const) {
    await one.look(state)
    pass(MINUTE_MS)
  }
  expect(await one.mail()).toMatchObject({
    state: 'ok',
    allDays: { ms: { ok: 0, degraded: MINUTE_MS, failing: 0 } },
  })
})

test('what is seen while a new store is filled is recorded there too', async () => {
  const { machine, pass } = await machines()
  const one = await machine('a')
  const looks: Promise<void>[] = []
  one.cable.onSeed = () => {
    pass(MINUTE_MS)
    looks.push(one.look('failing'))
  }
  await one.look('ok')
  await Promise.all(looks)
  pass(MINUTE_MS)
  await one.look('failing')
  expect(await one.page()).toEqual(await one.page('own'))
})

test('two machines that check in the same minutes count them once, and show the same', async () => {
  const { machine, pass } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  for (let minute = 0; minute < 5; minute += 1) {
    await a.look('ok', { latencyMs: 10 })
    pass(MINUTE_MS / 2)
    await b.look('ok', { latencyMs: 20 })
    pass(MINUTE_MS / 2)
  }
  expect((await a.mail()).allDays).toMatchObject({
    ms: { ok: 4.5 * MINUTE_MS, failing: 0 },
    latency: { count: 10 },
  })
  expect(await b.shown()).toEqual(await a.shown())
})

test('looks at the very same moment count once', async () => {
  const { machine, pass } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  for (let minute = 0; minute < 3; minute += 1) {
    await Promise.all([a.look('ok'), b.look('ok')])
    pass(MINUTE_MS)
  }
  expect((await a.mail()).allDays.ms.ok).toBe(2 * MINUTE_MS)
})

test('shows the worse state if two machines differ, until the machine that saw it recovers or is gone', async () => {
  const { machine, pass } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  const turn = async (seenByA: ProbeState) => {
    await a.look(seenByA)
    pass(MINUTE_MS / 2)
    await b.look('ok')
    pass(MINUTE_MS / 2)
    return (await b.mail()).state
  }
  expect(await turn('ok')).toBe('ok')
  expect(await turn('failing')).toBe('failing')
  expect(await turn('failing')).toBe('failing')
  expect(await turn('ok')).toBe('ok')
  const { ms } = (await b.mail()).allDays
  expect(ms).toEqual({ ok: 1.5 * MINUTE_MS, degraded: 0, failing: 2 * MINUTE_MS })
  // The machine that sees the fault is switched off.
  expect(await turn('failing')).toBe('failing')
  for (const state of ['failing', 'ok']) {
    await b.look('ok')
    expect((await b.mail()).state, state).toBe(state)
    pass(MINUTE_MS)
  }
})

test('while the store fails a machine shows its own record, and brings it when the store is back', async () => {
  const { machine, pass } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  const minute = async (state: ProbeState) => {
    await a.look(state)
    await b.look(state)
    pass(MINUTE_MS)
  }
  await minute('ok')
  for (const { cable } of [a, b]) cable.cut = true
  await minute('failing')
  await minute('failing')
  expect((await a.mail()).state).toBe('failing')
  for (const { cable } of [a, b]) cable.cut = false
  await minute('ok')
  expect((await a.mail()).allDays.ms).toEqual({ ok: MINUTE_MS, degraded: 0, failing: 2 * MINUTE_MS })
  expect(await b.shown()).toEqual(await a.shown())
})

test('a store without a record begins with that of the first machine, and no other is put over it', async () => {
  const { machine, pass } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  for (const { cable } of [a, b]) cable.cut = true
  for (const day of [0, 1]) {
    pass(day * DAY_MS)
    await a.look('ok')
    pass(MINUTE_MS)
    await a.look('ok')
    await b.look('failing')
  }
  for (const { cable } of [a, b]) cable.cut = false
  pass(MINUTE_MS)
  await a.look('ok')
  const before = await a.page('own')
  expect(await a.page()).toEqual(before)
  await b.look('degraded')
  const { days, allDays } = await b.mail()
  // The second machine's results from the time it was cut off are kept, but their time is counted already.
  expect(days.slice(-2)).toEqual(['failing', 'failing'])
  expect(allDays.ms).toMatchObject({ ok: 3 * MINUTE_MS, failing: 0 })
  expect(await a.shown()).toEqual(await b.shown())
})

test('a reason and a build that PostgreSQL cannot keep are kept as far as they can be', async () => {
  const { machine } = await machines()
  const a = await machine('a')
  await a.look('ok', { neighbours: new Map([['api', 'b\0\ud800']]) })
  expect((await a.history.read(START)).builds).toContainEqual(
    expect.objectContaining({ service: 'api', build: 'b\ufffd\ufffd' }),
  )
  await a.look('failing', { reason: `a\0b\ud800${'c'.repeat(300)}` })
  expect((await a.mail()).reason).toBe(`a\ufffdb\ufffd${'c'.repeat(196)}`)
})

test('a line for the service as a whole is shared like those of its probes', async () => {
  const { machine } = await machines()
  const [a, b] = [await machine('a'), await machine('b')]
  await a.look('degraded')
  const { services } = await b.page()
  expect(services.map(({ service, whole }) => [service, whole.probe, whole.state])).toEqual([
    ['web', WHOLE_SERVICE, 'degraded'],
  ])
})
