import type { SecretPair } from '../../secret.ts'
import type { Feedback } from './event.ts'

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
