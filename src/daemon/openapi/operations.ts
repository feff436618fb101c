import * as z from 'zod'
import type { EventDefinition } from '../../core/analytics/events.ts'
import { NONCE } from '../../core/fingerprints.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB } from '../../core/service.ts'
import { EXAMPLE_STATUS, StatusAnswer } from '../pages/status/answer.ts'
import { BeatAnswer, BeatBody, SilenceAnswer, SilenceBody } from '../routes/alerts.ts'
import { AnalyticsBody } from '../routes/analytics.ts'
import { ConfigurationAnswer } from '../routes/configuration.ts'
import { CheckoutBody, PaymentEventBody } from '../routes/payments.ts'
import { WitnessAnswer } from '../routes/witness.ts'
import { ServiceName } from '../service-schema.ts'
import { AnalyticsAnswer, CheckoutAnswer, OpenapiAnswer, WebhookAnswer } from './answers.ts'
import { inPath, JSON_BODY, json, jsonBody, page, query, type RouteOperations, text } from './operation.ts'
import { courseOperations } from './operations/course.ts'
import { emailOperations } from './operations/email.ts'
import { HEALTH } from './operations/health.ts'

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

const RECORDED = {
  description:
    'From what the daemon records each minute, never from live checks. With the health token also reasons and addresses; a browser asks for it as a password on `?details`.',
  security: 'deepToken',
  securityOptional: true,
} as const

/** The document's operations; the schemas are those that the routes parse with. */
export function operationsOf(
  input: Pick<ResolvedPlatform, 'mails' | 'courses' | 'events' | 'heartbeats'>,
): RouteOperations {
  const { mails, courses, events, heartbeats } = input
  return {
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
          json('The recorded status of the platform.', 'Status', StatusAnswer, {
            withoutDaemon: EXAMPLE_STATUS,
          }),
        ],
        errors: ['unauthenticated', 'store_unavailable'],
      },
    },
    statusFeed: {
      GET: {
        tag: 'Pages',
        summary: 'The incidents as an Atom feed',
        answers: [text('application/atom+xml', 'The newest incidents.')],
        errors: ['store_unavailable'],
      },
    },
    badge: {
      GET: {
        tag: 'Pages',
        summary: 'The state as a picture for a README',
        parameters: [query('service', ServiceName, 'Of one service; without it, of the platform.', 'web')],
        answers: [text('image/svg+xml', 'A badge.')],
        errors: ['bad_request', 'store_unavailable'],
      },
    },
    metrics: {
      GET: {
        tag: 'Operations',
        summary: 'Metrics for Prometheus',
        description:
          'All of them with the health token, or, where none is configured, for the machine itself; for everybody else those that tell nothing about one person.',
        answers: [text('text/plain', 'The text format, 0.0.4.')],
        errors: ['unauthenticated'],
      },
    },
    configuration: {
      GET: {
        tag: 'Operations',
        summary: 'Fingerprints of the running configuration, for `env verify`',
        description:
          'Never a value. Every service answers, for the variables that it reads. 404 while HEALTH_DEEP_TOKEN is not set; a token under 24 characters is a 400.',
        security: 'deepToken',
        parameters: [
          query(
            'nonce',
            z.string().regex(NONCE),
            '16 random bytes in hexadecimal: fingerprints of two nonces cannot be compared.',
            '8f14e45fceea167a5a36dedd4bea2543',
            true,
          ),
        ],
        answers: [
          json('What each variable was at the start.', 'Configuration', ConfigurationAnswer, {
            web: {
              service: WEB,
              nonce: '8f14e45fceea167a5a36dedd4bea2543',
              startedAt: '2026-11-21T04:00:00.000Z',
              build: '2026-11-21.1',
              platform: { name: 'Kiln School', fingerprint: 'f0c1a4d2b693', lessons: '0d5be2a1c774' },
              changedFiles: [],
              variables: [
                {
                  name: 'MAILER_FROM',
                  source: 'file',
                  secret: false,
                  perReplica: false,
                  fingerprint: 'mGV1Qd0cX2kPqBq3v0r7t9h0s1Zk5m8y4uJw6nL3aEo',
                },
              ],
            },
          }),
        ],
        errors: ['bad_request', 'unauthenticated', 'not_found', 'rate_limited'],
      },
    },
    witness: {
      GET: {
        tag: 'Operations',
        summary: 'The signed status, for a witness',
        description:
          'What visitors see of the status, signed with Ed25519. 404 while WITNESS_SECRET is not set. Secrets are never sent: both sides prove that they have the same one.',
        security: 'witnessProof',
        answers: [
          json('Proved under the secret of the witness.', 'Witnessed', WitnessAnswer, {
            current: {
              answer: '{"nonce":"Cw2FvNnKp0dYq3ZkqzV1TQ","current":"Hq…"}',
              proof: 'mGV1Qd0cX2kPqBq3v0r7t9h0s1Zk5m8y4uJw6nL3aEo',
            },
          }),
        ],
        errors: ['unauthenticated', 'not_found'],
      },
    },
    ...courseOperations(courses),
    ...emailOperations(mails.definitions),
    checkout: {
      POST: {
        tag: 'Payments',
        summary: 'Opens a checkout session for a configured price',
        description:
          'The customer is the person whose account asks (the service role is none: 401), the price one that the environment configures: by its plan (`pro-monthly`, `pro-yearly`, `team-monthly`, `team-yearly`) or by its id. Any other is a 400. Two clicks within ten minutes are one session.',
        security: 'identity',
        body: jsonBody('CheckoutRequest', CheckoutBody, { plan: { price: 'pro-monthly' } }),
        answers: [
          json('Send the customer to `url`.', 'CheckoutAnswer', CheckoutAnswer, {
            opened: { id: 'cs_test_a1', url: 'https://pay.example.com/c/cs_test_a1' },
          }),
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
        body: jsonBody('PaymentEvent', PaymentEventBody, {
          completed: {
            id: 'evt_1',
            type: 'checkout.session.completed',
            created: 1_795_248_000,
            data: { object: { client_reference_id: 'ada' } },
          },
        }),
        answers: [
          json('Handled, now or before.', 'WebhookAnswer', WebhookAnswer, {
            handled: { received: true, duplicate: false },
          }),
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
    heartbeat: {
      POST: {
        tag: 'Operations',
        summary: 'Reports that a job ran, or that it failed',
        description:
          'For heartbeats of the definition. A heartbeat that is late or failed is a failing probe of web, and an alert.',
        security: 'dispatchSecret',
        parameters: [
          inPath(
            'name',
            heartbeats.length === 0 ? z.string() : z.enum(heartbeats.map(({ name }) => name)),
            'The heartbeat, as the definition names it.',
            heartbeats[0]?.name ?? 'backup',
          ),
        ],
        body: jsonBody('HeartbeatRequest', BeatBody, { failed: { exitCode: 1 } }, false),
        answers: [
          json('Recorded.', 'HeartbeatAnswer', BeatAnswer, {
            ok: { heartbeat: 'backup', state: 'ok', nextBy: '2026-11-22T05:00:00.000Z' },
          }),
        ],
        errors: ['bad_request', 'unauthenticated', 'not_found', 'payload_too_large', 'store_unavailable'],
      },
    },
    silence: {
      POST: {
        tag: 'Operations',
        summary: 'Keeps alerts quiet for a while, for a deploy',
        description:
          'What still fails afterwards is sent then. A later call replaces an earlier one; the duration `0` ends a silence.',
        security: 'dispatchSecret',
        body: jsonBody('SilenceRequest', SilenceBody, {
          deploy: { duration: '15m', reason: 'deploy of 4.3' },
        }),
        answers: [
          json('Recorded.', 'SilenceAnswer', SilenceAnswer, {
            silent: { until: '2026-11-21T09:15:00.000Z' },
          }),
        ],
        errors: ['bad_request', 'unauthenticated', 'payload_too_large', 'store_unavailable'],
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
        body: jsonBody('AnalyticsRequest', AnalyticsBody, {
          one: { batch: 'b_7f3a', events: [exampleOf(events)] },
        }),
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
    ...HEALTH,
    openapi: {
      GET: {
        tag: 'Operations',
        summary: 'This document',
        answers: [
          json('OpenAPI 3.1, made from the schemas that validate.', 'OpenApi', OpenapiAnswer, {
            document: { openapi: '3.1.1', paths: {} },
          }),
        ],
        errors: [],
      },
    },
    securityTxt: {
      GET: {
        tag: 'Operations',
        summary: 'Where to report a weakness (RFC 9116)',
        description: 'As `security` of the platform definition says; 404 when it says nothing.',
        answers: [text('text/plain', 'The contact and its terms.')],
        errors: ['not_found'],
      },
    },
  }
}
