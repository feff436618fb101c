import { attempt, isRecord } from '../../is-record.ts'
import type { RotatingSecret } from '../../secret.ts'
import { type Feedback, type FeedbackEvent, type FeedbackKind, instantOf, reasonFor } from './event.ts'

/** A webhook as it arrived. `body` holds the bytes that the signature covers. */
export interface FeedbackRequest {
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

export interface VerifyOptions {
  readonly secret: RotatingSecret
  readonly now: number
  /** Fetches a small text over HTTPS; SES signs with a certificate that it publishes. */
  readonly fetchText: (url: string) => Promise<string>
}

export type Verification =
  /** `deliveryId` is the signed name of this delivery, where the provider gives one; `token` is it again where the body is not signed. */
  | {
      readonly kind: 'genuine'
      readonly value: unknown
      readonly deliveryId?: string
      readonly token?: string
    }
  /** SNS asks whether this address wants the topic; `url` is one of its own. */
  | { readonly kind: 'confirm'; readonly url: string }
  | Refusal

/** What a provider says of one recipient, before it is checked. */
export interface Item {
  /** Undefined: nothing about the recipient's mailbox. */
  readonly kind: FeedbackKind | undefined
  /** The same each time the provider delivers the event. Default: the delivery, and the place in it. */
  readonly id?: unknown
  readonly address?: unknown
  readonly messageId?: unknown
  readonly at?: unknown
  readonly status?: string | undefined
}

export const NOTHING: readonly Item[] = [{ kind: undefined }]

export interface FeedbackProvider {
  verify(request: FeedbackRequest, options: VerifyOptions): Verification | Promise<Verification>
  /** What a body says. `deliveryId` as `verify` gave it. Throws a FeedbackFormatError for a body of another form. */
  items(body: unknown, deliveryId: string | undefined): readonly Item[]
}

/** A provider's answer that is signed correctly but has another form than its documentation says. */
export class FeedbackFormatError extends Error {
  override readonly name = 'FeedbackFormatError'
}

/** The events of a genuine body. A malformed item is ignored, so that the others are heard; one that is alone is a fault. */
export function readItems(
  items: readonly Item[],
  { now, deliveryId }: { readonly now: number; readonly deliveryId: string | undefined },
): Feedback {
  const events: FeedbackEvent[] = []
  for (const [index, { kind, status, ...item }] of items.entries()) {
    if (kind === undefined) continue
    const { id = deliveryId && `${deliveryId}/${index}` } = item
    const [key, address] = [optionalText(id), optionalText(item.address)]
    if (key !== undefined && address !== undefined)
      events.push({
        id: key,
        kind,
        address,
        messageId: optionalText(item.messageId)?.replace(/^<|>$/g, ''),
        at: timeOf(item.at, now),
        reason: reasonFor(kind, status),
      })
    else if (items.length === 1) throw new FeedbackFormatError('the event has no name or no recipient')
  }
  return { events, ignored: items.length - events.length }
}

/** A signature older or newer than this is a replay (CONTRACT §12). */
const TOLERANCE_MS = 5 * 60 * 1000

/** Without a signature (or password) it is anybody's, with a wrong one perhaps, and with a right one the provider's. */
export const refused = (signature: 'none' | 'wrong' | 'right', reason: string) =>
  ({ kind: 'refused', signature, reason }) as const
export type Refusal = ReturnType<typeof refused>
export const UNFIT = refused('wrong', 'the signature does not fit')
/** Older, or from a clock that is ahead. Look for it last: only a right signature says that a clock is wrong. */
export const NOT_RECENT = refused('right', 'the signature is too old, or from the future: compare the clocks')

/** How long after a right signature a wrong one counts as forged: providers repeat for eight hours or more, so a later alert loses nothing. */
export const SECRET_WORKS_MS = 6 * 60 * 60 * 1000

export const isRecent = (at: number, now: number, mostMs = TOLERANCE_MS) =>
  now - at <= mostMs && at - now <= TOLERANCE_MS
/** UTC milliseconds of Unix seconds; NaN for another text. */
export const unixTime = (text: string) => (/^\d{1,11}$/.test(text) ? Number(text) * 1000 : Number.NaN)

/** The body as JSON; undefined when it is not valid UTF-8, starts with a byte order mark, or is not JSON. */
export const parseBody = (body: Uint8Array): unknown =>
  attempt(() => JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)))

export type Fields = Readonly<Record<string, unknown>>

/** An object's own fields; a FeedbackFormatError for anything else. */
export function fields(value: unknown, where: string): Fields {
  if (isRecord(value)) return value
  throw new FeedbackFormatError(`${where} is not an object`)
}

export const optionalFields = (value: unknown): Fields => (isRecord(value) ? value : {})

export function list(value: unknown, where: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new FeedbackFormatError(`${where} is not a list`)
}

/** A text of 1 to 1,000 characters. */
export const optionalText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= 1000 ? value : undefined

/** What a table has under a text from outside. */
export const lookup = <T>(table: Readonly<Record<string, T>>, key: unknown): T | undefined =>
  typeof key === 'string' && Object.hasOwn(table, key) ? table[key] : undefined

/** UTC milliseconds of an ISO 8601 time or of Unix seconds; `now` when it is missing or lies in the future. */
function timeOf(value: unknown, now: number): number {
  const given = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? instantOf(value) : 0
  return given && Number.isFinite(given) && given > 0 ? Math.min(Math.round(given), now) : now
}
