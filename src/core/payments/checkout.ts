import { createHash } from 'node:crypto'
import type { Identity } from '../access/identity.ts'
import type { Settings } from '../env/settings.ts'
import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { dispatcherTo, exchange } from '../network/exchange.ts'

export const ANSWER_MS = 10_000
export const LARGEST_ANSWER_BYTES = 256 * 1024
/** Two clicks within this time get the same session, because the provider repeats its answer to a repeated key. */
const SAME_SESSION_MS = 10 * 60 * 1000

/** Opens checkouts at the payments API, for configured prices and the identity's own address only. */
export function openCheckout(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  { prices, apiUrl, secretKey }: NonNullable<Settings['payments']>,
  siteUrl: string,
) {
  const dispatcher = dispatcherTo(new URL(apiUrl).origin)
  const configured = new Map(Object.entries(prices).flatMap(([plan, id]) => [[plan, id] as const, [id, id]]))

  return {
    /** Takes plan names (`pro-monthly`) and price ids, of the configured ones only: undefined for any other. */
    async open({ subject, email }: Extract<Identity, { kind: 'person' }>, price: string) {
      const id = configured.get(price)
      if (id === undefined) return undefined
      const body = sessionForm(id, siteUrl, { client_reference_id: subject, customer_email: email })
      const window = Math.floor(clock.now() / SAME_SESSION_MS)
      const headers = {
        authorization: `Bearer ${secretKey.reveal()}`,
        'content-type': 'application/x-www-form-urlencoded',
        'idempotency-key': createHash('sha256').update(`${window}\n${body}`).digest('base64url'),
      }
      try {
        const request = { method: 'POST', headers, body, dispatcher } as const
        const url = `${apiUrl}/v1/checkout/sessions`
        const { status, text } = await exchange(url, request, LARGEST_ANSWER_BYTES, ANSWER_MS)
        if (status !== 200) throw new AnswerError(`the payments API answered ${status}`)
        return sessionOf(JSON.parse(text))
      } catch (cause) {
        // Another error's message could quote the request.
        const reason =
          cause instanceof AnswerError ? cause.message : 'the payments API could not be reached in time'
        log.warn('checkout_failed', 'the payments provider opened no checkout', { reason })
        throw new PlatformError('unavailable', NOT_OPENED, { cause })
      }
    },
    close: () => dispatcher.close(),
  }
}

const NOT_OPENED = 'The payments provider opened no checkout now; nothing was charged. Try again later.'

export function sessionForm(price: string, siteUrl: string, customer: Record<string, string>): string {
  return new URLSearchParams({
    mode: 'subscription',
    'line_items[0][price]': price,
    'line_items[0][quantity]': '1',
    ...customer,
    success_url: `${siteUrl}/?checkout=done`,
    cancel_url: `${siteUrl}/?checkout=cancelled`,
  }).toString()
}

function sessionOf(answer: unknown) {
  const { id, url } = Object(answer) as { id?: unknown; url?: unknown }
  if (typeof id === 'string' && typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    return { id, url }
  throw new AnswerError('the payments API answered no session')
}

/** An error of ours, whose sentence may be logged. */
class AnswerError extends Error {
  override readonly name = 'AnswerError'
}
