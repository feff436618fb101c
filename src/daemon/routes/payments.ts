import * as z from 'zod'
import type { Identify } from '../../core/access/identity.ts'
import type { Clock } from '../../core/clock.ts'
import { PlatformError } from '../../core/errors.ts'
import type { Log } from '../../core/log.ts'
import type { Checkout } from '../../core/payments/checkout.ts'
import {
  handlePaymentEvent,
  isSigned,
  type OnPaymentEvent,
  type PaymentEventStore,
} from '../../core/payments/webhook.ts'
import type { SecretPair } from '../../core/secret.ts'
import { parseJson, readJson, readText } from '../http/body.ts'
import { jsonResponse } from '../http/respond.ts'
import { type RouteHandler, requireIdentity } from '../http/route.ts'

const CHECKOUT_BODY_BYTES = 8 * 1024
const WEBHOOK_BODY_BYTES = 256 * 1024

export const CheckoutBody = z.strictObject({ price: z.string().min(1).max(255) })

/** The fields of a provider's event that the platform reads; the rest is for the host. */
export const PaymentEventBody = z.looseObject({
  id: z.string().regex(/^[\w-]{1,255}$/, 'an id of 1 to 255 letters, digits and _ -'),
  type: z.string().regex(/^[\w.]{1,255}$/, 'a dotted name of at most 255 characters'),
  created: z.int().min(0).max(99_999_999_999),
  data: z.record(z.string(), z.unknown()),
})

export const SIGNATURE_HEADER = 'Stripe-Signature'

export function checkoutRoute({
  identify,
  checkout,
}: {
  readonly identify: Identify
  /** Undefined while payments are not configured. */
  readonly checkout: (() => Promise<Checkout>) | undefined
}): RouteHandler {
  return async (asked) => {
    const { requestId } = asked
    if (checkout === undefined) throw notConfigured()
    const asker = await requireIdentity(identify, asked)
    if (asker.kind !== 'person')
      throw new PlatformError('unauthenticated', 'A checkout is for a person’s account.')
    const { price } = await readJson(asked, CheckoutBody, CHECKOUT_BODY_BYTES)
    const outcome = await (await checkout()).open(asker, price)
    if (outcome.kind === 'unknown_price')
      throw new PlatformError('bad_request', 'There is no such price on this platform.', {
        issues: [{ path: 'price', message: 'not a configured price' }],
      })
    return jsonResponse({ id: outcome.id, url: outcome.url }, { requestId })
  }
}

export function webhookRoute(options: {
  /** Undefined while payments are not configured. */
  readonly secret: SecretPair | undefined
  readonly store: () => Promise<PaymentEventStore>
  readonly onEvent: OnPaymentEvent | undefined
  readonly clock: Clock
  readonly log: Log
}): RouteHandler {
  const { secret, store, onEvent, clock, log } = options
  return async (asked) => {
    const { request, requestId } = asked
    if (secret === undefined) throw notConfigured()
    // The signature is over the bytes as sent: nothing may be parsed before it.
    const body = await readText(asked, WEBHOOK_BODY_BYTES)
    const header = request.headers.get(SIGNATURE_HEADER) ?? ''
    if (!isSigned({ body, header, secret, nowMs: clock.now() }))
      throw new PlatformError('signature_invalid', 'The signature does not fit the body, or is too old.')
    const { id, type, created, data } = parseJson(body, PaymentEventBody)
    const event = { id, type, createdAt: created * 1000, data }
    const outcome = await handlePaymentEvent({ event, store: await store(), onEvent, clock, log })
    if (outcome === 'busy')
      throw new PlatformError('conflict', 'This event is being handled; deliver it again later.')
    return jsonResponse({ received: true, duplicate: outcome === 'known' }, { requestId })
  }
}

function notConfigured(): PlatformError {
  return new PlatformError('payments_not_configured', 'Payments are not configured on this platform.')
}
