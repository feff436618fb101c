import type { EventDefinition } from '../../../core/analytics/events.ts'
import { AnalyticsBody } from '../../routes/analytics.ts'
import { AnalyticsAnswer } from '../answers.ts'
import type { RouteOperations } from '../operation.ts'
import { JSON_BODY } from './common.ts'

/** `events`: the kinds that are counted, of which one is the example. */
export const analyticsOperations = (events: readonly EventDefinition[]) =>
  ({
    analytics: {
      POST: {
        tag: 'Analytics',
        summary: 'Takes a batch of events',
        description:
          'At most 500 events. What is personal or malformed is dropped, by the sanitiser that the browser runs too, and counted in `dropped`. A batch id seen before is acknowledged and not stored twice. With `Sec-GPC: 1` nothing is kept.',
        body: {
          type: 'application/json',
          name: 'AnalyticsRequest',
          schema: AnalyticsBody,
          required: true,
          examples: {
            one: { batch: 'b_7f3a', events: [exampleOf(events)] },
          },
        },
        answers: [
          {
            status: 202,
            description:
              'Taken. `stored` says whether the events are kept; `reason` why not, or that the batch was stored before.',
            content: {
              'application/json': {
                name: 'AnalyticsAnswer',
                schema: AnalyticsAnswer,
                examples: {
                  stored: { accepted: 1, dropped: {}, stored: true },
                  notStored: {
                    accepted: 1,
                    dropped: { property_personal: 1 },
                    stored: false,
                    reason: 'no table is named, so events are counted by nobody',
                  },
                },
              },
            },
          },
        ],
        errors: [...JSON_BODY, 'store_unavailable'],
      },
    },
  }) satisfies Partial<RouteOperations>

const SAMPLES = { string: 'one', number: 1, boolean: true } as const

function exampleOf(events: readonly EventDefinition[]) {
  const { name: kind = 'page.viewed', properties = {} } =
    events.find((one) => one.properties) ?? events[0] ?? {}
  return {
    kind,
    at: 1_795_248_000_000,
    properties: Object.fromEntries(Object.entries(properties).map(([name, type]) => [name, SAMPLES[type]])),
  }
}
