import { expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import type { ProbeResult } from '../../../src/core/health/probe.ts'
import { createHealth } from '../../../src/core/health/runner.ts'

const ok: ProbeResult = { state: 'ok', checked: true }
const health = (probes: Parameters<typeof createHealth>[0]['probes'], deadlineMs = 2000) =>
  createHealth({ service: 'web', probes, clock: systemClock, build: undefined, startedAt: 0, deadlineMs })

test('a thousand requests at once cause two runs, and no answer comes from a run that began before its request', async () => {
  const began: string[] = []
  const finish: (() => void)[] = []
  const { check } = health([
    {
      name: 'slow',
      run: () => {
        began.push('run')
        return new Promise((resolve) => finish.push(() => resolve(ok)))
      },
    },
  ])
  const first = check({ deep: false })
  await expect.poll(() => finish.length).toBe(1)
  began.push('a thousand ask')
  const rest = Promise.all(Array.from({ length: 1000 }, () => check({ deep: false })))
  finish[0]?.()
  await first
  await expect.poll(() => finish.length).toBe(2)
  finish[1]?.()
  await rest
  expect(began).toEqual(['run', 'a thousand ask', 'run'])
})

test('a probe that hangs is named, and the others are kept', async () => {
  const report = await health(
    [
      { name: 'hangs', run: () => new Promise(() => {}) },
      { name: 'works', run: async () => ok },
    ],
    50,
  ).check({ deep: false })
  expect(report).toMatchObject({
    state: 'failing',
    probes: { hangs: { state: 'failing', reason: 'no answer in time' }, works: { state: 'ok' } },
  })
})

test('a probe’s own error text is not shown', async () => {
  const report = await health([
    { name: 'throws', run: () => Promise.reject(new Error('postgres://user:canary@db.internal')) },
  ]).check({ deep: false })
  expect(JSON.stringify(report)).not.toContain('canary')
  expect(report.state).toBe('failing')
})

test('whoever arrives while a probe hangs is still answered within the deadline', { retry: 3 }, async () => {
  const { check } = health([{ name: 'hangs', run: () => new Promise(() => {}) }], 400)
  const began = performance.now()
  const first = check({ deep: false })
  const follower = check({ deep: false })
  await Promise.all([first, follower])
  // The first has half the deadline to itself, the follower waits that out and has its own half.
  expect(performance.now() - began).toBeLessThan(500)
})

test('a probe that hangs holds up nobody who waits for another', async () => {
  let runs = 0
  const { check } = health(
    [
      { name: 'hangs', run: () => new Promise(() => {}) },
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
  const report = await health(
    [
      {
        name: 'named',
        budgetMs: 20,
        run: ({ signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () =>
              resolve({ state: 'failing', checked: true, reason: 'stuck half-way' }),
            ),
          ),
      },
      {
        name: 'rejects',
        budgetMs: 20,
        run: ({ signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      },
    ],
    60_000,
  ).check({ deep: false })
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
    time: '2026-11-21T11:00:00.000Z',
    probes: { steps: { latencyMs: 7 } },
  })
})
