import { createHash } from 'node:crypto'
import { Agent, request } from 'undici'
import type { Identity } from '../access/identity.ts'
import type { Clock } from '../clock.ts'
import type { Settings } from '../env/settings.ts'
import { PlatformError } from '../errors.ts'
import type { Log } from '../log.ts'

export interface CheckoutSession {
  readonly id: string
  /** Where the customer pays. */
  readonly url: string
}

/** Opens a checkout session for a configured price; `unknown_price` for any other. */
export interface Checkout {
  /** Plan names (`pro-monthly`) and price ids, of the configured ones only. */
  open(
    asker: Extract<Identity, { kind: 'person' }>,
    price: string,
  ): Promise<{ readonly kind: 'unknown_price' } | ({ readonly kind: 'opened' } & CheckoutSession)>
  close(): Promise<void>
}

const ANSWER_MS = 10_000
const LARGEST_ANSWER_BYTES = 256 * 1024
/** Two clicks within this time get the same session, because the provider repeats its answer to a repeated key. */
const SAME_SESSION_MS = 10 * 60 * 1000

/**
 * The payments API (form-encoded POST to `/v1/checkout/sessions`, `Authorization: Bearer`, `Idempotency-Key`): the
 * price comes from the configuration, the customer from the identity, the way back from the site's address.
 */
export function openCheckout(input: {
  readonly payments: NonNullable<Settings['payments']>
  readonly siteUrl: string
  readonly clock: Clock
  readonly log: Log
}): Checkout {
  const { payments, siteUrl, clock, log } = input
  const agent = new Agent({
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
    connect: { timeout: ANSWER_MS },
    maxResponseSize: LARGEST_ANSWER_BYTES,
  })
  const configured = new Map<string, string>()
  for (const [plan, id] of Object.entries(payments.prices)) configured.set(plan, id).set(id, id)

  return {
    async open(asker, price) {
      const id = configured.get(price)
      if (id === undefined) return { kind: 'unknown_price' }
      const body = new URLSearchParams({
        mode: 'subscription',
        'line_items[0][price]': id,
        'line_items[0][quantity]': '1',
        client_reference_id: asker.subject,
        customer_email: asker.email,
        success_url: `${siteUrl}/?checkout=done`,
        cancel_url: `${siteUrl}/?checkout=cancelled`,
      }).toString()
      const window = Math.floor(clock.now() / SAME_SESSION_MS)
      const key = createHash('sha256').update(`${window}\n${body}`).digest('base64url')
      try {
        const answer = await request(`${payments.apiUrl}/v1/checkout/sessions`, {
          method: 'POST',
          dispatcher: agent,
          headers: {
            authorization: `Bearer ${payments.secretKey.reveal()}`,
            'content-type': 'application/x-www-form-urlencoded',
            'idempotency-key': key,
          },
          body,
          signal: AbortSignal.timeout(ANSWER_MS),
        })
        if (answer.statusCode !== 200) {
          await answer.body.dump({ limit: LARGEST_ANSWER_BYTES })
          throw new AnswerError(`the payments API answered ${answer.statusCode}`)
        }
        return { kind: 'opened', ...sessionOf(await answer.body.json()) }
      } catch (error) {
        log.warn('checkout_failed', 'the payments provider opened no checkout', { reason: reasonOf(error) })
        throw new PlatformError(
          'unavailable',
          'The payments provider opened no checkout now; nothing was charged. Try again later.',
          { cause: error },
        )
      }
    },
    close: () => agent.close(),
  }
}

function sessionOf(answer: unknown): CheckoutSession {
  const { id, url } = Object(answer) as { id?: unknown; url?: unknown }
  if (typeof id === 'string' && typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    return { id, url }
  throw new AnswerError('the payments API answered no session')
}

/** An error of ours, whose sentence may be logged. Another error's message could quote the request. */
class AnswerError extends Error {
  override readonly name = 'AnswerError'
}

function reasonOf(error: unknown): string {
  return error instanceof AnswerError ? error.message : 'the payments API could not be reached in time'
}
