import { expect, test } from 'vitest'
import { systemClock } from '../../src/core/clock.ts'
import { brokenCircuit, GATES } from '../../src/core/health/circuit.ts'
import type { ProbeResult } from '../../src/core/health/probe.ts'
import { createHealth } from '../../src/core/health/runner.ts'
import { systemRandom } from '../../src/core/random.ts'

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

test.each([
  [['ok', 'skipped'], 'ok'],
  [['skipped', 'skipped'], 'ok'],
  [['ok', 'degraded', 'skipped'], 'degraded'],
  [['degraded', 'failing', 'ok'], 'failing'],
] as const)('of %j a service is %s', async (states, expected) => {
  const report = await health(
    states.map((state, index) => ({ name: `probe${index}`, run: async () => ({ state, checked: false }) })),
  ).check({ deep: false })
  expect(report.state).toBe(expected)
})

test('the circuit check passes on a sound simulator, and fails with any one gate broken', () => {
  expect(brokenCircuit(systemRandom)).toBeUndefined()
  for (const name of Object.keys(GATES)) {
    expect(brokenCircuit(systemRandom, { ...GATES, [name]: (state) => state }), name).toBeDefined()
  }
  expect(brokenCircuit({ bytes: systemRandom.bytes, fraction: () => 0.9 })).toBeDefined()
})
