import type { Outcome } from './transport.ts'

/** What is known of a failed SMTP attempt. */
export interface SmtpFault {
  /** The server's last reply code, when it gave one. */
  readonly code: number | undefined
  /** The server's last reply, for its enhanced status code (RFC 3463); never shown. */
  readonly response: string | undefined
  /** Some of the message had been handed over when the line broke. */
  readonly handedOver: boolean
  /** What went wrong before any reply: `EAUTH`, `EDNS`, `ETLS` … */
  readonly errno: string | undefined
}

/** Enhanced codes that say that the address is dead (RFC 3463 §3.2): a hard bounce. */
const DEAD_ADDRESS = /\b5\.1\.(?:1|2|3|6|10)\b/

/** SMTP replies and faults to outcomes: the only such table. 4xx may come back, 5xx will not, 421 is about the line. */
export function smtpOutcome({
  code,
  response,
  handedOver,
  errno,
}: SmtpFault): Exclude<Outcome, { kind: 'sent' }> {
  if (errno === 'EAUTH')
    return { kind: 'transient', scope: 'connection', reason: 'the mail server refused the credentials' }
  if (errno === 'ETLS' || errno === 'ECERT')
    return {
      kind: 'transient',
      scope: 'connection',
      reason: 'the mail server’s certificate could not be verified',
    }
  if (code === 421)
    return { kind: 'transient', scope: 'connection', reason: 'the mail server asks to come back later (421)' }
  if (code !== undefined && code >= 500) {
    const hardBounce = DEAD_ADDRESS.test(response ?? '')
    return {
      kind: 'permanent',
      hardBounce,
      reason: hardBounce
        ? `the address does not exist (${code})`
        : `the mail server refused the message (${code})`,
    }
  }
  if (code !== undefined && code >= 400)
    return {
      kind: 'transient',
      scope: 'message',
      reason: `the mail server cannot take the message now (${code})`,
    }
  if (handedOver) return { kind: 'unknown', reason: 'the connection broke after the message was handed over' }
  return { kind: 'transient', scope: 'connection', reason: 'the mail server could not be reached' }
}

/** HTTP statuses of a mail API to outcomes. 429 is about us, not the message; 409 is our key already at work. */
export function httpOutcome(
  status: number,
  retryAfterMs: number | undefined,
): Exclude<Outcome, { kind: 'sent' }> {
  const retry = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (status === 429)
    return {
      kind: 'transient',
      scope: 'connection',
      reason: 'the mail provider limits our rate (429)',
      ...retry,
    }
  if (status === 401 || status === 403)
    return { kind: 'transient', scope: 'connection', reason: `the mail provider refused the key (${status})` }
  if (status === 408 || status === 409 || status === 425 || status >= 500) {
    return {
      kind: 'transient',
      scope: 'message',
      reason: `the mail provider cannot take the message now (${status})`,
      ...retry,
    }
  }
  return { kind: 'permanent', hardBounce: false, reason: `the mail provider refused the message (${status})` }
}
