import * as z from 'zod'
import { PlatformError } from '../../core/errors.ts'
import { defineRoute, json, jsonBody, requireIdentity } from '../http/route.ts'

const CheckoutRequest = z.strictObject({ price: z.string().min(1).max(255) })
const CheckoutAnswer = z.strictObject({ id: z.string(), url: z.url() })

export const route = () =>
  defineRoute({
    tag: 'Payments',
    summary: 'Opens a checkout session for a configured price',
    description:
      'The customer is the person whose account asks (the service role is none: 401), the price one that the environment configures: by its plan (`pro-monthly`, `pro-yearly`, `team-monthly`, `team-yearly`) or by its id. Any other is a 400. Two clicks within ten minutes are one session.',
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
      if (site.checkout === undefined)
        throw new PlatformError('payments_not_configured', 'Payments are not configured on this platform.')
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
