import { Pool } from 'undici'
import { codeOf } from '../../error-code.ts'
import type { Secret } from '../../secret.ts'
import { joinPieces } from '../encoding.ts'
import { httpOutcome } from '../outcome.ts'
import { LINES, type Transport } from '../transport.ts'
import { jsonPiecesOf } from './api-body.ts'
import { exchange, type ProviderResponse } from './api-exchange.ts'

const CONNECT_MS = 10_000
const ANSWER_MS = 30_000
const LONGEST_WAIT_MS = 3_600_000
/** Mail APIs take addresses as text and parse them, and quoted local parts are where such parsers go wrong. */
const NEEDS_NO_QUOTES = /^[^\s"<>,;:()[\]\\]+@[^\s"<>,;:()[\]\\@]+$/

/**
 * A provider's HTTP API: POST of `{ from, to, subject, html, text, reply_to?, headers }` as JSON with
 * `Authorization: Bearer` and `Idempotency-Key`, the shape that Resend-compatible services take (docs/mail-api.md).
 * Any 2xx is sent; `id` of the answer is the provider's. Redirects are not followed.
 */
export function openApi({ url, key }: { readonly url: string; readonly key: Secret }): Transport {
  const { origin, pathname, search } = new URL(url)
  const path = pathname + search
  const pool = new Pool(origin, {
    connections: LINES.api,
    pipelining: 1,
    allowH2: false,
    connectTimeout: CONNECT_MS,
    keepAliveTimeout: 30_000,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
  })
  let closing: Promise<void> | undefined
  const authorization = `Bearer ${key.reveal()}`
  return {
    kind: 'api',
    async send(message, signal) {
      if (!NEEDS_NO_QUOTES.test(message.to.address))
        return {
          kind: 'permanent',
          hardBounce: false,
          reason: 'the address cannot be given to a mail API safely',
        }
      let answer: ProviderResponse
      try {
        const headers = { 'content-type': 'application/json', authorization, 'idempotency-key': message.key }
        const body = joinPieces(jsonPiecesOf(message))
        answer = await exchange(pool, { method: 'POST', path, headers, body, signal })
      } catch (error) {
        return httpOutcome({ status: undefined, errno: codeOf(error) || undefined })
      }
      return answer.status >= 200 && answer.status < 300
        ? { kind: 'sent', id: idOf(answer.text) ?? message.key }
        : httpOutcome({ status: answer.status, errno: undefined }, retryAfterMs(answer))
    },
    async verify(signal) {
      const { status } = await exchange(pool, {
        method: 'HEAD',
        path,
        headers: { authorization },
        body: null,
        signal,
      }).catch((error: unknown) => {
        const { reason, kind } = httpOutcome({ status: undefined, errno: codeOf(error) || undefined })
        throw new Error(kind === 'unknown' ? 'the mail provider does not answer' : reason)
      })
      if (status === 401 || status === 403) throw new Error(httpOutcome({ status, errno: undefined }).reason)
    },
    close() {
      closing ??= pool.close()
      return closing
    },
  }
}

/** Any 2xx says that the mail was taken, whatever the body holds; an id in it is the provider's. */
function idOf(text: string): string | undefined {
  try {
    const { id } = JSON.parse(text) as { id?: unknown }
    return typeof id === 'string' ? id.slice(0, 200) : undefined
  } catch {
    return undefined
  }
}

/** Seconds or a date (RFC 9110 §10.2.3), at most an hour. */
function retryAfterMs({ retryAfter, date }: ProviderResponse): number | undefined {
  if (retryAfter === undefined) return undefined
  const ms = /^\d{1,6}$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - Date.parse(date ?? '')
  return ms >= 0 ? Math.min(ms, LONGEST_WAIT_MS) : undefined
}
