import { Agent, request } from 'undici'
import type { Secret } from '../../secret.ts'
import type { Mailbox } from '../address.ts'
import { httpOutcome } from '../outcome.ts'
import type { Message, Transport } from '../transport.ts'

const CONNECTIONS = 50
const ANSWER_MS = 30_000
const LARGEST_ANSWER_BYTES = 64 * 1024

/** Errors of the connection itself: the message never left, so a retry cannot repeat it. */
const NEVER_LEFT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/**
 * A provider's HTTP API: POST of `{ from, to, subject, html, text, reply_to?, headers }` as JSON with
 * `Authorization: Bearer` and `Idempotency-Key`, the shape that Resend-compatible services take. Any 2xx is
 * sent; `id` of the answer is the provider's.
 */
export function openApi({ url, key }: { readonly url: string; readonly key: Secret }): Transport {
  const agent = new Agent({
    connections: CONNECTIONS,
    pipelining: 1,
    keepAliveTimeout: 30_000,
    headersTimeout: ANSWER_MS,
    bodyTimeout: ANSWER_MS,
  })
  return {
    kind: 'api',
    async send(message, signal) {
      try {
        const answer = await request(url, {
          method: 'POST',
          dispatcher: agent,
          headers: {
            'content-type': 'application/json',
            authorization: `Bearer ${key.reveal()}`,
            'idempotency-key': message.key,
          },
          body: JSON.stringify(bodyOf(message)),
          signal: signal ?? null,
        })
        if (answer.statusCode >= 200 && answer.statusCode < 300)
          return { kind: 'sent', id: await idOf(answer.body, message.key) }
        await answer.body.dump({ limit: LARGEST_ANSWER_BYTES })
        return httpOutcome(answer.statusCode, retryAfterMs(answer.headers['retry-after']))
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : ''
        if (NEVER_LEFT.has(code))
          return { kind: 'transient', scope: 'connection', reason: 'the mail provider could not be reached' }
        return { kind: 'unknown', reason: 'the connection broke after the message was handed over' }
      }
    },
    async verify(signal) {
      const answer = await request(url, {
        method: 'HEAD',
        dispatcher: agent,
        headers: { authorization: `Bearer ${key.reveal()}` },
        signal: signal ?? null,
      }).catch(() => {
        throw new Error('the mail provider could not be reached')
      })
      await answer.body.dump({ limit: LARGEST_ANSWER_BYTES })
      if (answer.statusCode === 401 || answer.statusCode === 403)
        throw new Error('the mail provider refused the key')
    },
    close: () => agent.close(),
  }
}

function bodyOf(message: Message): Record<string, unknown> {
  return {
    from: textOf(message.from),
    to: [message.to.address],
    ...(message.replyTo ? { reply_to: textOf(message.replyTo) } : {}),
    subject: message.subject,
    html: message.html,
    text: message.text,
    headers: { ...message.headers, 'Message-ID': `<${message.messageId}>` },
  }
}

function textOf({ name, address }: Mailbox): string {
  return name === undefined ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}

async function idOf(body: { text(): Promise<string> }, fallback: string): Promise<string> {
  try {
    const answer = JSON.parse(await body.text()) as { id?: unknown }
    return typeof answer.id === 'string' ? answer.id.slice(0, 200) : fallback
  } catch {
    return fallback
  }
}

/** Seconds or an HTTP date (RFC 9110 §10.2.3), at most an hour. */
function retryAfterMs(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string' || !/^\d{1,6}$/.test(value)) return undefined
  return Math.min(Number(value), 3600) * 1000
}
