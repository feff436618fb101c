import { type Dispatcher, Pool } from 'undici'
import { asciiAddress, type Mailbox } from '../../address.ts'
import { codeOf } from '../../error-code.ts'
import type { Secret } from '../../secret.ts'
import { type Encoding, encodedFill, joinPieces, type Piece } from '../encoding.ts'
import { httpOutcome } from '../outcome.ts'
import { LINES, type Message, type Transport } from '../transport.ts'

export interface Exchange {
  readonly method: 'POST' | 'HEAD'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  readonly signal?: AbortSignal | undefined
}

export interface ProviderResponse {
  readonly status: number
  readonly retryAfter: string | undefined
  /** The provider's own time: a date in `retryAfter` is later than this, whatever our clock says. */
  readonly date: string | undefined
  /** At most `LARGEST_ANSWER_BYTES` of it. */
  readonly text: string
}

const LARGEST_ANSWER_BYTES = 64 * 1024

/** Given up before any of it was sent: as undici says it of a pool that is closed. */
const notSent = () => Object.assign(new Error('not sent'), { code: 'UND_ERR_CLOSED' })

/**
 * One request and its whole answer. Straight on undici's dispatcher: a stream and an abort listener for each answer of
 * a few bytes would cost as much as the request. Rejects with undici's error.
 */
export function exchange(pool: Dispatcher, { signal, ...request }: Exchange): Promise<ProviderResponse> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(notSent())
    let status = 0
    let retryAfter: string | undefined
    let date: string | undefined
    let length = 0
    const chunks: Buffer[] = []
    let stop: (() => void) | undefined
    const ended = () => stop && signal?.removeEventListener('abort', stop)
    pool.dispatch(request, {
      onRequestStart(controller) {
        if (signal?.aborted) return controller.abort(notSent())
        stop = () => controller.abort(new Error('aborted'))
        signal?.addEventListener('abort', stop, { once: true })
      },
      onResponseStart(_, statusCode, fields) {
        status = statusCode
        const text = (value: string | string[] | undefined) => (typeof value === 'string' ? value : undefined)
        retryAfter = text(fields['retry-after'])
        date = text(fields.date)
      },
      onResponseData(_, chunk) {
        if (length < LARGEST_ANSWER_BYTES) chunks.push(chunk)
        length += chunk.length
      },
      onResponseEnd() {
        ended()
        resolve({ status, retryAfter, date, text: Buffer.concat(chunks).toString() })
      },
      onResponseError(_, error) {
        ended()
        reject(error)
      },
    })
  })
}

/** ASCII characters that a JSON string may hold unescaped (RFC 8259 §7). */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const WIDE = /[\u0080-\uffff]/g

/** ASCII only, so that bytes and characters are the same and are written as they are. */
const asciiJson: Encoding = {
  encode: (text) =>
    PLAIN.test(text)
      ? text
      : JSON.stringify(text)
          .slice(1, -1)
          .replace(WIDE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
}
const fill = encodedFill(asciiJson)
const quoted = (text: string) => `"${asciiJson.encode(text)}"`

/** The JSON of one message (docs/mail-api.md), in pieces: the same message has the same bytes. */
export function jsonPiecesOf(message: Message): readonly Piece[] {
  const { from, to, replyTo, subject, headers, messageId } = message
  const pieces: Piece[] = [
    `${senderOf(from)},"to":[${quoted(asciiAddress(to.address))}],${replyTo === undefined ? '' : `"reply_to":${quoted(textOf(replyTo))},`}"subject":${quoted(subject)},"html":"`,
  ]
  fillPart(message, 'html', pieces)
  pieces.push('","text":"')
  fillPart(message, 'text', pieces)
  let tail = '","headers":{'
  // A header's name is a token (RFC 5322 §2.2) and needs no escaping.
  for (const name in headers) tail += `"${name}":${quoted(headers[name] ?? '')},`
  pieces.push(`${tail}"Message-ID":${quoted(`<${messageId}>`)}}}`)
  return pieces
}

const senders = new WeakMap<Mailbox, string>()

/** The sender is the same in every message. */
function senderOf(from: Mailbox): string {
  let written = senders.get(from)
  if (written === undefined) {
    written = `{"from":${quoted(textOf(from))}`
    senders.set(from, written)
  }
  return written
}

function fillPart(message: Message, part: 'html' | 'text', pieces: Piece[]): void {
  if (message.source === undefined) pieces.push(asciiJson.encode(message[part]))
  else fill(message.source.compiled[part], message.source.slots, pieces)
}

function textOf({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  return name === undefined ? bare : `"${name.replace(/["\\]/g, '\\$&')}" <${bare}>`
}

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
