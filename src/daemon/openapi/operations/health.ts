import * as z from 'zod'
import { WEB } from '../../../core/service.ts'
import { HealthAnswer, HealthJsonAnswer } from '../answers.ts'
import { type Operation, query, type RouteOperations } from '../operation.ts'

const EXAMPLE_HEALTH = {
  state: 'degraded',
  build: '2026-11-21.1',
  startedAt: '2026-11-21T04:00:00.000Z',
  time: '2026-11-21T08:00:00.000Z',
  latencyMs: 1.2,
}

const NOT_CONFIGURED = { state: 'skipped', checked: false, reason: 'not configured' }

/** The health of one service as an operation. */
export const healthOperation = ({
  service,
  summary,
  probe,
  notConfigured,
}: {
  readonly service: string
  readonly summary: string
  /** A probe that the examples show at work, and others as they may stand beside it. */
  readonly probe: string
  readonly notConfigured: readonly string[]
}): Operation => ({
  tag: 'Health',
  summary,
  description:
    'Computed for each request. `ok` and `degraded` are 200, `failing` is 503 with the same body. Clients that accept `application/health+json` get that format.',
  ...(service === WEB
    ? {
        security: 'deepToken' as const,
        securityOptional: true,
        parameters: [
          query(
            'deep',
            z.string(),
            '`1` or `true` also tries what is configured: reachability, not configuration alone. Of the web service; the API has one depth, and takes no token.',
            '1',
          ),
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
                    ...Object.fromEntries(notConfigured.map((name) => [name, NOT_CONFIGURED])),
                    [probe]: { state: 'ok', checked: true, latencyMs: 0.4 },
                  },
                },
              }
            : {
                failing: {
                  service,
                  ...EXAMPLE_HEALTH,
                  state: 'failing',
                  probes: {
                    [probe]: {
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
              [probe]: [
                {
                  componentId: probe,
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
  errors: service === WEB ? ['unauthenticated'] : [],
})

export const HEALTH = {
  webHealth: {
    GET: healthOperation({
      service: WEB,
      summary: 'Health of the web service',
      probe: 'store',
      notConfigured: ['mail', 'sharedstore'],
    }),
  },
} satisfies Partial<RouteOperations>
