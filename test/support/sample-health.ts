import { recordDays, type SampleHealth } from '../../src/cli/demo/sample-history.ts'
import { HOUR_MS } from '../../src/core/durations.ts'
import type { History } from '../../src/core/status/history.ts'

const probes: SampleHealth['probes'] = {
  web: {
    datastore: 38,
    payments: 120,
    api: 6,
    agent: 5,
    models: 'off',
    mail: 85,
    store: 0.4,
    sharedstore: 'off',
    errortrack: 'off',
    analytics: 'off',
  },
  api: { circuit: 0.9, job_store: 0.5, limiter: 'off', hardware_a: 'off', cloudb: 'off', cloudqpu: 'off' },
  agent: { api: 4, course_index: 0.2, model_a: 'off', model_b: 'off', model_c: 'off', cloudmodel: 'off' },
}

/** An installation with mail, payments and a data store. The API's fault is felt by its neighbors. */
const learningSampleHealth: SampleHealth = {
  probes,
  trouble: [
    {
      service: 'api',
      probe: 'job_store',
      state: 'failing',
      daysAgo: 61.4,
      hours: 0.7,
      reason: 'the check failed',
    },
    { service: 'web', probe: 'api', state: 'failing', daysAgo: 61.4, hours: 0.7, reason: 'is failing' },
    { service: 'agent', probe: 'api', state: 'failing', daysAgo: 61.4, hours: 0.7, reason: 'is failing' },
    {
      service: 'web',
      probe: 'mail',
      state: 'degraded',
      daysAgo: 33.2,
      hours: 30,
      reason: 'the check failed',
    },
    {
      service: 'web',
      probe: 'payments',
      state: 'failing',
      daysAgo: 12.5,
      hours: 2.2,
      reason: 'cannot be reached',
    },
    {
      service: 'web',
      probe: 'mail',
      state: 'degraded',
      daysAgo: 4.1,
      hours: 3,
      reason: 'no answer in time',
    },
  ],
}

/** Records the sample days of that installation, which end with its mail in that state. */
export function recordLearningDays(
  history: History,
  now: number,
  { state = 'ok', ...rest }: { readonly state?: 'ok' | 'degraded' | 'failing'; readonly age?: number } = {},
): Promise<void> {
  const ends = state === 'ok' ? {} : { ends: { service: 'web', probe: 'mail', state } }
  return recordDays(history, now, { sample: learningSampleHealth, everyMs: 6 * HOUR_MS, ...ends, ...rest })
}
