import { CheckoutBody, PaymentEventBody } from '../../routes/payments.ts'
import { CheckoutAnswer, WebhookAnswer } from '../answers.ts'
import type { RouteOperations } from '../operation.ts'
import { JSON_BODY, json } from '../operation.ts'

export const PAYMENTS = {
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
        json('Send the customer to `url`.', {
          name: 'CheckoutAnswer',
          schema: CheckoutAnswer,
          examples: { opened: { id: 'cs_test_a1', url: 'https://pay.example.com/c/cs_test_a1' } },
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
        json('Handled, now or before.', {
          name: 'WebhookAnswer',
          schema: WebhookAnswer,
          examples: { handled: { received: true, duplicate: false } },
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
} satisfies Partial<RouteOperations>
