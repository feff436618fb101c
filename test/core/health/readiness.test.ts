import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/env/settings.ts'
import { openProbes } from '../../../src/core/health/probe.ts'
import { createHealth } from '../../../src/core/health/runner.ts'
import { type Clock, systemClock, systemRandom } from '../../../src/core/host.ts'
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
}: {
  env?: Record<string, string>
  installed?: readonly string[]
  ping?: () => Promise<void>
  clock?: Clock
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
      random: systemRandom,
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

test.each([
  ['@aws-sdk/client-braket', 'ok'],
  ['@azure/quantum-jobs', 'degraded'],
])('with the credentials of a provider and the package %s it is %s', async (installed, state) => {
  const { probes } = await apiHealth({ env: CLOUDB, installed: [installed] }).check({ deep: false })
  expect(probes.cloudb).toMatchObject({ state, checked: false })
})
