import * as z from 'zod'
import type { ErrorCode } from '../../core/errors.ts'
import { SERVICES, type Service } from '../../core/service.ts'
import { AnalyticsBody } from '../routes/analytics.ts'
import { DispatchBody, Limit, SubscribeBody } from '../routes/course.ts'
import { EmailBody } from '../routes/email.ts'
import { CheckoutBody, PaymentEventBody } from '../routes/payments.ts'
import {
  AnalyticsAnswer,
  CheckoutAnswer,
  ConfirmAnswer,
  DispatchAnswer,
  EmailAnswer,
  HealthAnswer,
  HealthJsonAnswer,
  OpenapiAnswer,
  SubscribeAnswer,
  UnsubscribeAnswer,
  WebhookAnswer,
} from './answers.ts'
import type { Answer, Operation, Operations, Parameter } from './operation.ts'
import { EXAMPLE_STATUS, StatusAnswer } from './status-answer.ts'

const JSON_BODY: readonly ErrorCode[] = ['bad_request', 'payload_too_large', 'unsupported_media_type']
const page = (description: string): Answer => ({
  status: 200,
  description,
  content: { 'text/html': 'text' },
})
const linkParameter = (name: string, description: string, example: string): Parameter => ({
  in: 'query',
  name,
  schema: z.string(),
  description,
  example,
})

const RECORDED = {
  description:
    'From what the daemon records each minute, never from live checks. With the health token also reasons and addresses; a browser asks for it as a password on `?details`.',
  security: 'deepToken',
  securityOptional: true,
} as const

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

/** What the document says of each route; the schemas are those that the routes parse with. */
export const OPERATIONS: Operations = {
  status: {
    GET: {
      tag: 'Pages',
      summary: 'The start page: what works, what is not configured, and what that means',
      ...RECORDED,
      answers: [page('The recorded status of the platform.')],
      errors: ['unauthenticated', 'store_unavailable'],
    },
  },
  statusJson: {
    GET: {
      tag: 'Pages',
      summary: 'The status page for programs',
      ...RECORDED,
      answers: [
        {
          status: 200,
          description: 'The recorded status of the platform.',
          content: {
            'application/json': {
              name: 'Status',
              schema: StatusAnswer,
              examples: { withoutDaemon: EXAMPLE_STATUS },
            },
          },
        },
      ],
      errors: ['unauthenticated', 'store_unavailable'],
    },
  },
  metrics: {
    GET: {
      tag: 'Operations',
      summary: 'Metrics for Prometheus; always 200',
      answers: [{ status: 200, description: 'The text format, 0.0.4.', content: { 'text/plain': 'text' } }],
      errors: [],
    },
  },
  badge: {
    GET: {
      tag: 'Pages',
      summary: 'The state as a picture for a README',
      parameters: [
        {
          in: 'query',
          name: 'service',
          schema: z.enum(SERVICES),
          description: 'Of one service; without it, of the platform.',
          example: 'web',
        },
      ],
      answers: [{ status: 200, description: 'A badge.', content: { 'image/svg+xml': 'text' } }],
      errors: ['bad_request', 'store_unavailable'],
    },
  },
  lesson: {
    GET: {
      tag: 'Pages',
      summary: 'A lesson of the course as a page',
      parameters: [
        {
          in: 'path',
          name: 'day',
          schema: z.int().min(1).max(7),
          required: true,
          description: 'The day of the course.',
          example: 1,
        },
      ],
      answers: [page('The lesson.')],
      errors: ['not_found'],
    },
  },
  subscribe: {
    POST: {
      tag: 'Course',
      summary: 'Subscribes an address to the course',
      description:
        'The answer has the same body, status and time whether or not the address is known. A confirmation is mailed at most once an hour and three times a day to an address.',
      body: {
        type: 'application/json',
        name: 'SubscribeRequest',
        schema: SubscribeBody,
        required: true,
        examples: { address: { email: 'ada@example.com' } },
      },
      answers: [
        {
          status: 202,
          description: 'Taken. `sent` is false only where mail is not configured.',
          content: {
            'application/json': {
              name: 'SubscribeAnswer',
              schema: SubscribeAnswer,
              examples: {
                mailed: { status: 'pending', sent: true },
                withoutMail: { status: 'pending', sent: false, reason: 'mail is not configured' },
              },
            },
          },
        },
      ],
      errors: [...JSON_BODY, 'store_unavailable'],
    },
  },
  confirm: {
    GET: {
      tag: 'Course',
      summary: 'Confirms a subscription by the link in its mail',
      description:
        'A page, or JSON for who asks for it. A second click says the same as the first. HEAD and prefetches (`Sec-Purpose`) change nothing.',
      parameters: [linkParameter('token', 'From the link.', 'Zm9yIGV4YW1wbGUgb25seQ')],
      answers: [
        {
          status: 200,
          description: 'Confirmed.',
          content: {
            'text/html': 'text',
            'application/json': {
              name: 'ConfirmAnswer',
              schema: ConfirmAnswer,
              examples: { confirmed: { status: 'confirmed' } },
            },
          },
        },
        { status: 204, description: 'A prefetch: nothing was looked at.', content: {} },
      ],
      errors: ['token_invalid', 'token_expired', 'store_unavailable'],
    },
  },
  unsubscribe: {
    GET: unsubscribe('Ends a subscription by the link in a lesson'),
    POST: {
      ...unsubscribe(
        'Ends a subscription with one click (RFC 8058), or undoes that',
        'With `undo=1`, from the form of that page, the lessons go on; the answer is then always a page.',
      ),
      body: {
        type: 'application/x-www-form-urlencoded',
        name: 'UnsubscribeRequest',
        schema: z.looseObject({ 'List-Unsubscribe': z.string().optional(), undo: z.string().optional() }),
        required: false,
        examples: { oneClick: { 'List-Unsubscribe': 'One-Click' }, undo: { undo: '1' } },
      },
      errors: ['bad_request', 'payload_too_large', 'unsupported_media_type', 'store_unavailable'],
    },
  },
  email: {
    POST: {
      tag: 'Mail',
      summary: 'Sends a transactional mail about a record',
      description:
        'Recipient and links come from the server’s record, never from the request. A record that is not the caller’s answers 404, exactly as one that does not exist. A mail that was sent for a record is not sent again: the answer is the same.',
      security: 'identity',
      body: {
        type: 'application/json',
        name: 'EmailRequest',
        schema: EmailBody,
        required: true,
        examples: {
          invite: { template: 'organisation-invite', inputs: { inviteId: 'inv_1' } },
          magicLink: { template: 'magic-link', inputs: { loginRequestId: 'login_1' } },
          examPassed: { template: 'exam-passed', inputs: { examAttemptId: 'attempt_1' } },
          welcome: { template: 'welcome', inputs: {} },
          confirmation: { template: 'subscription-confirmation', inputs: {} },
        },
      },
      answers: [
        {
          status: 200,
          description: 'Sent, or why not.',
          content: {
            'application/json': {
              name: 'EmailAnswer',
              schema: EmailAnswer,
              examples: {
                sent: { sent: true, id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' },
                notSent: { sent: false, reason: 'mail is not configured' },
              },
            },
          },
        },
      ],
      errors: [...JSON_BODY, 'unauthenticated', 'locked', 'not_found', 'unavailable', 'store_unavailable'],
    },
  },
  checkout: {
    POST: {
      tag: 'Payments',
      summary: 'Opens a checkout session for a configured price',
      description:
        'The customer is the person whose account asks (the service role is none: 401), the price one that the environment configures: by its plan (`pro-monthly`, `pro-yearly`, `team-monthly`, `team-yearly`) or by its id. Any other is a 400. Two clicks within ten minutes are one session.',
      security: 'identity',
      body: {
        type: 'application/json',
        name: 'CheckoutRequest',
        schema: CheckoutBody,
        required: true,
        examples: { plan: { price: 'pro-monthly' } },
      },
      answers: [
        {
          status: 200,
          description: 'Send the customer to `url`.',
          content: {
            'application/json': {
              name: 'CheckoutAnswer',
              schema: CheckoutAnswer,
              examples: { opened: { id: 'cs_test_a1', url: 'https://pay.example.com/c/cs_test_a1' } },
            },
          },
        },
      ],
      errors: [...JSON_BODY, 'unauthenticated', 'payments_not_configured', 'unavailable'],
    },
  },
  paymentsWebhook: {
    POST: {
      tag: 'Payments',
      summary: 'Takes an event of the payments provider',
      description:
        'Signed over the bytes of the body, at most five minutes ago. Each event is handled once, however often it is delivered; anything but 200 asks for another delivery.',
      security: 'webhookSignature',
      body: {
        type: 'application/json',
        name: 'PaymentEvent',
        schema: PaymentEventBody,
        required: true,
        examples: {
          completed: {
            id: 'evt_1',
            type: 'checkout.session.completed',
            created: 1_795_248_000,
            data: { object: { client_reference_id: 'ada' } },
          },
        },
      },
      answers: [
        {
          status: 200,
          description: 'Handled, now or before.',
          content: {
            'application/json': {
              name: 'WebhookAnswer',
              schema: WebhookAnswer,
              examples: { handled: { received: true, duplicate: false } },
            },
          },
        },
      ],
      errors: [
        'bad_request',
        'signature_invalid',
        'conflict',
        'payload_too_large',
        'unsupported_media_type',
        'payments_not_configured',
        'unavailable',
        'store_unavailable',
      ],
    },
  },
  dispatch: {
    POST: {
      tag: 'Operations',
      summary: 'Sends the lessons that are due',
      description:
        'At most one message for each subscription. The limit comes from the query, else the body, else EMAIL_DISPATCH_LIMIT, else 100. Without mail configured nothing is processed and `reason` says so.',
      security: 'dispatchSecret',
      parameters: [
        {
          in: 'query',
          name: 'limit',
          schema: Limit,
          description: 'How many lessons at most.',
          example: 100,
        },
      ],
      body: {
        type: 'application/json',
        name: 'DispatchRequest',
        schema: DispatchBody,
        required: false,
        examples: { limited: { limit: 100 } },
      },
      answers: [
        {
          status: 200,
          description: 'What became of each.',
          content: {
            'application/json': {
              name: 'DispatchAnswer',
              schema: DispatchAnswer,
              examples: {
                sent: {
                  processed: 1,
                  sent: 1,
                  failed: 0,
                  unknown: 0,
                  remaining: 0,
                  limit: 100,
                  results: [{ subscription: 'Jk3nM0aPq9xT2vLs', day: 3, sent: true }],
                },
                withoutMail: {
                  processed: 0,
                  sent: 0,
                  failed: 0,
                  unknown: 0,
                  remaining: 4,
                  limit: 100,
                  reason: 'mail is not configured',
                  results: [],
                },
              },
            },
          },
        },
      ],
      errors: [
        'bad_request',
        'payload_too_large',
        'unsupported_media_type',
        'unauthenticated',
        'store_not_persistent',
        'store_unavailable',
      ],
    },
  },
  insights: {
    GET: {
      tag: 'Analytics',
      summary: 'The dashboards of a visitor',
      description:
        'A page that draws what this browser has recorded, from its own storage. It is the same for everybody, and sends nothing.',
      answers: [page('The page, with its script and style.')],
      errors: ['unavailable'],
    },
  },
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
  webHealth: { GET: health('web', 'Health of the web service') },
  apiHealth: {
    GET: health('api', 'Health of the API: a one-qubit circuit end to end, the job store, and the providers'),
  },
  agentHealth: {
    GET: health('agent', 'Health of the agent: the API, the course index, and the model providers'),
  },
  openapi: {
    GET: {
      tag: 'Operations',
      summary: 'This document',
      answers: [
        {
          status: 200,
          description: 'OpenAPI 3.1, made from the schemas that validate.',
          content: {
            'application/json': {
              name: 'OpenApi',
              schema: OpenapiAnswer,
              examples: { document: { openapi: '3.1.1', paths: {} } },
            },
          },
        },
      ],
      errors: [],
    },
  },
}

function unsubscribe(summary: string, more = ''): Operation {
  return {
    tag: 'Course',
    summary,
    description:
      `Always the same page, also for a forged or unknown link; JSON for who asks for it. HEAD and prefetches change nothing. The page offers to undo. ${more}`.trim(),
    parameters: [
      linkParameter('s', 'From the link: subscription and enrolment.', 'Jk3nM0aPq9xT2vLs.1'),
      linkParameter('t', 'From the link: its signature.', 'c2lnbmF0dXJl'),
    ],
    answers: [
      {
        status: 200,
        description: 'Unsubscribed, as far as the link was genuine.',
        content: {
          'text/html': 'text',
          'application/json': {
            name: 'UnsubscribeAnswer',
            schema: UnsubscribeAnswer,
            examples: { unsubscribed: { status: 'unsubscribed' } },
          },
        },
      },
      { status: 204, description: 'A prefetch: nothing was looked at.', content: {} },
    ],
    errors: ['store_unavailable'],
  }
}
