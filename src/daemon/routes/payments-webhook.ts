import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import { handlePaymentEvent, isSigned, SIGNATURE_HEADER } from '../../core/payments/webhook.ts'
import { parseJson } from '../http/body.ts'
import { defineRoute, json, jsonBody } from '../http/route.ts'

/** The fields of a provider's event that the platform reads; the rest is for the host. */
const PaymentEvent = z.looseObject({
  id: z.string().regex(/^[\w-]{1,255}$/, 'an id of 1 to 255 letters, digits and _ -'),
  type: z.string().regex(/^[\w.]{1,255}$/, 'a dotted name of at most 255 characters'),
  created: z.int().min(0).max(99_999_999_999),
  data: z.record(z.string(), z.unknown()),
})

const WebhookAnswer = z.strictObject({
  received: z.literal(true),
  duplicate: z.boolean().describe('It was handled before; nothing was done.'),
})

export const route = () =>
  defineRoute({
    tag: 'Payments',
    summary: 'Takes an event of the payments provider',
    description:
      'Signed over the bytes of the body, at most five minutes ago. Each event is handled once, however often it is delivered; anything but 200 asks for another delivery.',
    security: 'webhookSignature',
    body: jsonBody(256 * 1024, 'PaymentEvent', PaymentEvent, {
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
    errors: ['conflict', 'payments_not_configured', 'unavailable', 'store_unavailable'],
    handle:
      ({ settings: { payments }, store, onPaymentEvent: onEvent, clock, log }) =>
      async (c) => {
        if (payments === undefined)
          throw new PlatformError('payments_not_configured', 'Payments are not configured on this platform.')
        // The signature is over the bytes as sent: nothing may be parsed before it.
        const body = await c.text()
        const header = c.request.headers.get(SIGNATURE_HEADER) ?? ''
        if (!isSigned(body, header, payments.webhookSecret, clock.now()))
          throw new PlatformError('signature_invalid', 'The signature does not fit the body, or is too old.')
        const { id, type, created, data } = parseJson(body, PaymentEvent)
        const event = { id, type, createdAt: created * 1000, data }
        const outcome = await handlePaymentEvent(
          { clock, log },
          event,
          (await store()).paymentEvents,
          onEvent,
        )
        if (outcome === 'busy')
          throw new PlatformError('conflict', 'This event is being handled; deliver it again later.')
        return { received: true as const, duplicate: outcome === 'known' }
      },
  })
