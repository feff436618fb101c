import { AnalyticsBody } from '../../routes/analytics.ts'
import { AnalyticsAnswer } from '../answers.ts'
import type { Operations } from '../operation.ts'
import { JSON_BODY } from './common.ts'

export const ANALYTICS = {
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
          lesson: {
            batch: 'b_7f3a',
            events: [{ kind: 'lesson.viewed', at: 1_795_248_000_000, properties: { lesson: 1 } }],
          },
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
} satisfies Partial<Operations>
