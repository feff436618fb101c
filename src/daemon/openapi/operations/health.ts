import * as z from 'zod'
import type { Service } from '../../../core/service.ts'
import { HealthAnswer, HealthJsonAnswer } from '../answers.ts'
import type { Operation, Operations } from '../operation.ts'

const EXAMPLE_HEALTH = {
  state: 'degraded',
  build: '2026-11-21.1',
  startedAt: '2026-11-21T04:00:00.000Z',
  time: '2026-11-21T08:00:00.000Z',
  latencyMs: 1.2,
}

const NOT_CONFIGURED = { state: 'skipped', checked: false, reason: 'not configured' }
const LIMITS_ALONE = {
  state: 'degraded',
  checked: true,
  reason: 'does not answer: rate limits count in this process, at half the quota',
}

/** Of each service a probe that matters, in `key`, and others as they may stand beside it. */
const EXAMPLE_PROBES = {
  web: {
    key: 'store',
    others: {
      datastore: NOT_CONFIGURED,
      sharedstore: LIMITS_ALONE,
    },
  },
  api: {
    key: 'job_store',
    others: {
      limiter: LIMITS_ALONE,
      hardware_a: NOT_CONFIGURED,
    },
  },
  agent: {
    key: 'api',
    others: {
      model_a: NOT_CONFIGURED,
      cloudmodel: { state: 'degraded', checked: false, reason: 'half-configured, so it is off' },
    },
  },
} as const

const health = (service: Service, summary: string): Operation => ({
  tag: 'Health',
  summary,
  description:
    'Computed afresh for every request. `ok` and `degraded` are 200, `failing` is 503 with the same body. `application/health+json` is answered to who asks for it.',
  ...(service === 'web'
    ? {
        security: 'deepToken' as const,
        securityOptional: true,
        parameters: [
          {
            in: 'query',
            name: 'deep',
            schema: z.string(),
            description:
              '`1` or `true` also tries what is configured: reachability, not configuration alone. Of the web service; the API has one depth, and takes no token.',
            example: '1',
          },
        ],
      }
    : {}),
  answers: [200, 503].map((status) => ({
    status,
    description: status === 200 ? 'Healthy, perhaps with limits.' : 'A probe fails.',
    content: {
      'application/json': {
        name: 'Health',
        schema: HealthAnswer,
        examples:
          status === 200
            ? {
                degraded: {
                  service,
                  ...EXAMPLE_HEALTH,
                  probes: {
                    ...EXAMPLE_PROBES[service].others,
                    [EXAMPLE_PROBES[service].key]: { state: 'ok', checked: true, latencyMs: 0.4 },
                  },
                },
              }
            : {
                failing: {
                  service,
                  ...EXAMPLE_HEALTH,
                  state: 'failing',
                  probes: {
                    [EXAMPLE_PROBES[service].key]: {
                      state: 'failing',
                      checked: true,
                      reason: 'did not answer in time',
                    },
                  },
                },
              },
      },
      'application/health+json': {
        name: 'HealthJson',
        schema: HealthJsonAnswer,
        examples: {
          draft: {
            status: status === 200 ? 'pass' : 'fail',
            serviceId: service,
            description: `health of ${service}`,
            startedAt: '2026-11-21T04:00:00.000Z',
            time: '2026-11-21T08:00:00.000Z',
            latencyMs: 1.2,
            checks: {
              [EXAMPLE_PROBES[service].key]: [
                {
                  componentId: EXAMPLE_PROBES[service].key,
                  componentType: 'component',
                  status: status === 200 ? 'pass' : 'fail',
                  state: status === 200 ? 'ok' : 'failing',
                  checked: true,
                  time: '2026-11-21T08:00:00.000Z',
                  observedValue: 0.4,
                  observedUnit: 'ms',
                  ...(status === 200 ? {} : { output: 'did not answer in time' }),
                },
              ],
            },
          },
        },
      },
    },
  })),
  errors: service === 'web' ? ['unauthenticated'] : [],
})

export const HEALTH = {
  webHealth: { GET: health('web', 'Health of the web service') },
  apiHealth: {
    GET: health('api', 'Health of the API: a one-qubit circuit end to end, the job store, and the providers'),
  },
  agentHealth: {
    GET: health('agent', 'Health of the agent: the API, the course index, and the model providers'),
  },
} satisfies Partial<Operations>
