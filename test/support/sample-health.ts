import { recordDays, type SampleHealth } from '../../src/cli/demo/sample-history.ts'
import { MINUTE_MS } from '../../src/core/durations.ts'
import { type History, type Observation, WHOLE_SERVICE } from '../../src/core/status/history.ts'

const NOT_CONFIGURED = {
  web: ['models', 'sharedstore', 'errortrack', 'analytics'],
  api: ['limiter', 'hardware_a', 'cloudb', 'cloudqpu'],
  agent: ['model_a', 'model_b', 'model_c', 'cloudmodel'],
}

function trouble(
  service: string,
  probe: string,
  state: 'failing' | 'degraded',
  daysAgo: number,
  hours: number,
  reason: string,
) {
  return { service, probe, state, daysAgo, hours, reason }
}

/** An installation with mail, payments and a data store. The API's fault is felt by its neighbors. */
const learningSampleHealth: SampleHealth = {
  probes: {
    web: { datastore: 38, payments: 120, api: 6, agent: 5, mail: 85, store: 0.4 },
    api: { circuit: 0.9, job_store: 0.5 },
    agent: { api: 4, course_index: 0.2 },
  },
  trouble: [
    trouble('api', 'job_store', 'failing', 61.4, 0.7, 'the check failed'),
    trouble('web', 'api', 'failing', 61.4, 0.7, 'is failing'),
    trouble('agent', 'api', 'failing', 61.4, 0.7, 'is failing'),
    trouble('web', 'mail', 'degraded', 33.2, 3, 'the check failed'),
    trouble('web', 'payments', 'failing', 12.5, 2.1, 'cannot be reached'),
    trouble('web', 'mail', 'degraded', 4.1, 3, 'no answer in time'),
  ],
}

/** Records the sample days of that installation, which end with its mail in that state for 15 minutes. */
export function recordLearningDays(
  history: History,
  now: number,
  {
    state = 'ok',
    age = 24_000,
  }: { readonly state?: 'ok' | 'degraded' | 'failing'; readonly age?: number } = {},
): Promise<void> {
  const last = now - age
  const asEnding = (one: Observation): Observation => {
    const isMail = one.probe === 'mail'
    if (state === 'ok' || one.service !== 'web' || !(isMail || one.probe === WHOLE_SERVICE)) return one
    const credit = one.credit && { ...one.credit, state }
    return { ...one, state, credit, reason: isMail ? 'no answer in time' : undefined }
  }
  return recordDays(
    {
      ...history,
      record: ({ at, observations }) => {
        const isEnd = at > last - 20 * MINUTE_MS
        const credit = observations[0]?.credit
        const skipped = Object.entries(isEnd ? NOT_CONFIGURED : {}).flatMap(([service, probes]) =>
          probes.map((probe) => ({
            service,
            probe,
            state: 'skipped' as const,
            reason: 'not configured',
            latencyMs: undefined,
            credit: credit && { ...credit, state: 'skipped' as const },
          })),
        )
        return history.record({
          at,
          observations: [...(isEnd ? observations.map(asEnding) : observations), ...skipped],
          builds: { web: '4.2.0', api: '4.2.0', agent: '4.2.0' },
        })
      },
    },
    last,
    learningSampleHealth,
  )
}
