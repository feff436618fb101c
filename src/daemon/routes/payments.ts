import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import { SECRET_WORKS_MS } from '../../core/mail/feedback/provider.ts'
import { handlePaymentEvent, readSignature, SIGNATURE_HEADER } from '../../core/payments/webhook.ts'
import { parseJson } from '../http/body.ts'
import { defineRoute, json, jsonBody, requireIdentity } from '../http/route.ts'

const CheckoutRequest = z.strictObject({ price: z.string().min(1).max(255) })
const CheckoutAnswer = z.strictObject({ id: z.string(), url: z.url() })

export const checkoutRoute = () =>
  defineRoute({
    tag: 'Payments',
    summary: 'Opens a checkout session for a configured price',
    description:
      'Needs the token of a person, who becomes the customer; the service role gets 401. The price is one that the environment configures, by its plan (`pro-monthly`, `pro-yearly`, `team-monthly`, `team-yearly`) or its id; any other is a 400. A second click within minutes opens the same session.',
    security: 'identity',
    body: jsonBody(8 * 1024, 'CheckoutRequest', CheckoutRequest, { plan: { price: 'pro-monthly' } }),
    answers: [
      json('Send the customer to `url`.', 'CheckoutAnswer', CheckoutAnswer, {
        opened: { id: 'cs_test_a1', url: 'https://pay.example.com/c/cs_test_a1' },
      }),
    ],
    errors: ['payments_not_configured', 'unavailable'],
    errorTexts: ({ notCharged }) => ({ unavailable: notCharged }),
    handle: (site) => async (c) => {
      if (site.checkout === undefined) {
        c.isForged = true
        // A bad body is a 400 here too.
        if (c.request.body !== null && c.request.headers.get('content-length') !== '0') await c.json()
        throw new PlatformError('payments_not_configured', 'Payments are not configured on this platform.')
      }
      const asker = await requireIdentity(site, c)
      if (asker.kind !== 'person')
        throw new PlatformError('unauthenticated', 'A checkout is for a person’s account.')
      const { price } = await c.json()
      const session = await (await site.checkout()).open(asker, price)
      if (session === undefined)
        throw new PlatformError('bad_request', 'There is no such price on this platform.', {
          issues: [{ path: 'price', message: 'not a configured price' }],
        })
      return session
    },
  })

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

export const webhookRoute = () =>
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
    handle: ({ settings: { payments }, store, onPaymentEvent: onEvent, underway, clock, timer, log }) => {
      let rightAt = Number.NEGATIVE_INFINITY
      return async (c) => {
        const now = clock.now()
        const signature = readSignature(c.request.headers.get(SIGNATURE_HEADER) ?? '')
        c.isForged = signature === undefined || !payments || now - rightAt <= SECRET_WORKS_MS || undefined
        if (payments === undefined)
          throw new PlatformError('payments_not_configured', 'Payments are not configured on this platform.')
        // The signature is over the bytes as sent: nothing may be parsed before it.
        const body = await c.text()
        const isOurs = signature?.fits(body, payments.webhookSecret) ?? false
        if (isOurs) [rightAt, c.isForged] = [now, undefined]
        if (!isOurs || !signature?.isRecent(now))
          throw new PlatformError(
            'signature_invalid',
            'The signature does not fit the body, or is not from the last five minutes.',
          )
        const { id, type, created, data } = parseJson(body, PaymentEvent)
        const event = { id, type, createdAt: created * 1000, data }
        const { paymentEvents } = await store()
        const outcome = await underway.during(
          handlePaymentEvent({ clock, timer, log }, event, paymentEvents, onEvent),
        )
        if (outcome === 'busy')
          throw new PlatformError('conflict', 'This event is being handled; deliver it again later.')
        return { received: true as const, duplicate: outcome === 'known' }
      }
    },
  })
