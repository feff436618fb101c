import { Pool } from 'undici'
import type { Secret } from '../../secret.ts'
import { httpOutcome } from '../outcome.ts'
import type { Transport } from '../transport.ts'
import { jsonBodyOf } from './api-body.ts'

const CONNECTIONS = 50
const ANSWER_MS = 30_000
const LARGEST_ANSWER_BYTES = 64 * 1024
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
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
  })
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
      try {
        const answer = await pool.request({
          path,
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization, 'idempotency-key': message.key },
          body: jsonBodyOf(message),
          ...(signal && { signal }),
        })
        if (answer.statusCode >= 200 && answer.statusCode < 300)
          return { kind: 'sent', id: await idOf(answer.body, message.key) }
        await answer.body.dump({ limit: LARGEST_ANSWER_BYTES }).catch(() => {})
        return httpOutcome(
          { status: answer.statusCode, errno: undefined },
          retryAfterMs(answer.headers['retry-after']),
        )
      } catch (error) {
        return httpOutcome({ status: undefined, errno: errnoOf(error) })
      }
    },
    async verify(signal) {
      const answer = await pool
        .request({
          path,
          method: 'HEAD',
          headers: { authorization },
          ...(signal && { signal }),
        })
        .catch((error: unknown) => {
          const { reason, kind } = httpOutcome({ status: undefined, errno: errnoOf(error) })
          throw new Error(kind === 'unknown' ? 'the mail provider does not answer' : reason)
        })
      await answer.body.dump({ limit: LARGEST_ANSWER_BYTES })
      if (answer.statusCode === 401 || answer.statusCode === 403)
        throw new Error(httpOutcome({ status: answer.statusCode, errno: undefined }).reason)
    },
    close: () => pool.close(),
  }
}

async function idOf(body: { text(): Promise<string> }, fallback: string): Promise<string> {
  try {
    const { id } = JSON.parse(await body.text()) as { id?: unknown }
    return typeof id === 'string' ? id.slice(0, 200) : fallback
  } catch {
    // Any 2xx says that the mail was taken, whatever the body holds.
    return fallback
  }
}

function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Seconds (RFC 9110 §10.2.3), at most an hour. */
function retryAfterMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\d{1,6}$/.test(value)) return undefined
  return Math.min(Number(value), 3600) * 1000
}
