import { expect, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { readSettings } from '../../../src/core/env/read-settings.ts'
import { createHealth } from '../../../src/core/health/runner.ts'
import { apiProbes } from '../../../src/core/health/services.ts'
import { systemRandom } from '../../../src/core/random.ts'

const CREDENTIALS = {
  HARDWARE_A_TOKEN: 'token-0123456789',
  HARDWARE_A_INSTANCE: 'hub/group/project',
  CLOUDB_ACCESS_KEY_ID: 'AKIA0123456789ABCDEF',
  CLOUDB_SECRET_ACCESS_KEY: 'secret-0123456789',
  CLOUDB_REGION: 'eu-west-1',
}
const ready = { state: 'ok', checked: false }
const skipped = { state: 'skipped', checked: false, reason: 'not configured' }

test.each([
  [CREDENTIALS, ['@aws-sdk/client-braket'], { hardware_a: ready, cloudb: ready, cloudqpu: skipped }],
  [
    CREDENTIALS,
    ['@azure/quantum-jobs'],
    {
      hardware_a: ready,
      cloudb: { state: 'degraded', checked: false, reason: 'its SDK is not installed' },
      cloudqpu: skipped,
    },
  ],
  [{}, ['@aws-sdk/client-braket', '@azure/quantum-jobs'], { cloudb: skipped, cloudqpu: skipped }],
] as const)(
  'with %j and the packages %j each provider is as ready as credential and SDK make it',
  async (env, installed: readonly string[], expected) => {
    const store = { kind: async () => 'sqlite' as const, ping: async () => {} }
    const health = createHealth({
      service: 'api',
      clock: systemClock,
      build: undefined,
      startedAt: 0,
      probes: apiProbes({
        settings: readSettings(env),
        clock: systemClock,
        random: systemRandom,
        counting: () => 'local',
        brokenRules: [],
        store,
        jobStore: store,
        verifyMail: async () => {},
        pingAnalytics: async () => {},
        hasPackage: (name) => installed.includes(name),
      }),
    })
    expect((await health.check({ deep: false })).probes).toMatchObject(expected)
  },
)
