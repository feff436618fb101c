import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/env/settings.ts'
import { openProbes } from '../../../src/core/health/probe.ts'
import { createHealth } from '../../../src/core/health/runner.ts'
import { type Clock, type Random, systemClock, systemRandom } from '../../../src/core/host.ts'
import { learning } from '../../../src/presets/learning/platform.ts'

const CLOUDB = {
  CLOUDB_ACCESS_KEY_ID: 'AKIA0123456789ABCDEF',
  CLOUDB_SECRET_ACCESS_KEY: 'secret-0123456789',
  CLOUDB_REGION: 'eu-west-1',
}

function apiHealth({
  env = {},
  installed = [],
  ping = async () => {},
  clock = systemClock,
  random = systemRandom,
}: {
  env?: Record<string, string>
  installed?: readonly string[]
  ping?: () => Promise<void>
  clock?: Clock
  random?: Random
}) {
  const store = { kind: async () => 'sqlite' as const, ping }
  return createHealth({
    service: 'api',
    clock,
    build: undefined,
    startedAt: 0,
    probes: openProbes(learning.probes, 'api', {
      settings: readSettings(learning, env),
      clock,
      random,
      counting: () => 'local',
      store,
      jobStore: store,
      verifyMail: async () => {},
      pingAnalytics: async () => {},
      hasPackage: (name) => installed.includes(name),
    }),
  })
}

test('reports a store that blocks the process for 50 ms as slow, but not the circuit beside it', async () => {
  let monotonic = 0
  const { probes } = await apiHealth({
    clock: { ...systemClock, monotonic: () => monotonic },
    ping: async () => {
      monotonic += 50
    },
  }).check({ deep: false })
  expect(probes).toMatchObject({ circuit: { latencyMs: 0 }, job_store: { latencyMs: 50 } })
})

test('the circuit runs for each question', async () => {
  const fractions = [() => 0, () => 0.999, systemRandom.fraction]
  let asked = 0
  const random = { ...systemRandom, fraction: () => fractions[asked]?.() ?? 0 }
  const health = apiHealth({ random })
  const states: unknown[] = []
  for (; asked < 3; asked += 1) states.push((await health.check({ deep: false })).probes.circuit?.state)
  expect(states).toEqual(['failing', 'failing', 'ok'])
})

test.each([
  ['@aws-sdk/client-braket', 'ok'],
  ['@azure/quantum-jobs', 'degraded'],
])('with the credentials of a provider and the package %s it is %s', async (installed, state) => {
  const { probes } = await apiHealth({ env: CLOUDB, installed: [installed] }).check({ deep: false })
  expect(probes.cloudb).toMatchObject({ state, checked: false })
})
