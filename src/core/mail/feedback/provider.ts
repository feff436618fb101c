import type { SecretPair } from '../../secret.ts'
import { type Feedback, FeedbackFormatError } from './event.ts'

/** A webhook as it arrived. `body` holds the bytes that the signature covers. */
export interface FeedbackRequest {
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

export interface VerifyOptions {
  readonly secret: SecretPair
  /** UTC milliseconds. */
  readonly now: number
  /** Fetches a small text over HTTPS; SES signs with a certificate that it publishes. */
  readonly fetchText: (url: string) => Promise<string>
}

export type Verification =
  /** Genuine. `deliveryId` is the signed name of this delivery, where the provider gives one; `token` is it again where the body is not signed. */
  | {
      readonly kind: 'genuine'
      readonly value: unknown
      readonly deliveryId?: string
      readonly token?: string
    }
  /** SNS asks whether this address wants the topic; `url` is one of its own. */
  | { readonly kind: 'confirm'; readonly url: string }
  | { readonly kind: 'refused'; readonly reason: string }

/** How one provider's feedback is verified and read: one file and one row in `providers.ts` each. */
export interface FeedbackProvider {
  verify(request: FeedbackRequest, options: VerifyOptions): Verification | Promise<Verification>
  /** `deliveryId` as `verify` gave it. Throws a FeedbackFormatError for a body of another form. */
  read(value: unknown, context: { readonly now: number; readonly deliveryId: string | undefined }): Feedback
}

/** A signature older or newer than this is a replay. */
export const TOLERANCE_MS = 5 * 60 * 1000

export const refused = (reason: string): Verification => ({ kind: 'refused', reason })

/** Unix seconds within the tolerance, or undefined. */
export function recentSeconds(text: string, now: number): number | undefined {
  if (!/^\d{1,11}$/.test(text)) return undefined
  const seconds = Number(text)
  return Math.abs(now - seconds * 1000) <= TOLERANCE_MS ? seconds : undefined
}

/** The body as JSON; undefined when it is not valid UTF-8, starts with a byte order mark, or is not JSON. */
export function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
  } catch {
    return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

/** An object's own fields; a FeedbackFormatError for anything else. */
export function fields(value: unknown, where: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new FeedbackFormatError(`${where} is not an object`)
  // The check above leaves plain objects of JSON, whose keys are strings.
  return value as Fields
}

export function optionalFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

export function list(value: unknown, where: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new FeedbackFormatError(`${where} is not a list`)
  return value
}

export function text(value: unknown, where: string): string {
  if (typeof value !== 'string' || value === '' || value.length > 1000)
    throw new FeedbackFormatError(`${where} is not a text of 1 to 1,000 characters`)
  return value
}

export function optionalText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= 1000 ? value : undefined
}

/** UTC milliseconds of an ISO 8601 time or of Unix seconds; `now` when it is missing or lies in the future. */
export function timeOf(value: unknown, now: number): number {
  const at =
    typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(at) && at > 0 ? Math.min(Math.round(at), now) : now
}

/** A Message-ID without its angle brackets. */
export function messageId(value: unknown): string | undefined {
  return optionalText(value)?.replace(/^<|>$/g, '')
}
