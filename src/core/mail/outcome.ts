import type { Outcome } from './mailer.ts'

type Failure = Exclude<Outcome, { kind: 'sent' }>

/** One row of an outcome table: what happened, and what it means for the message. */
export interface OutcomeRow<Fault> {
  /** Stable, for tests and docs. */
  readonly id: string
  /** Description of the failure, for the reference page. */
  readonly when: string
  readonly matches: (fault: Fault) => boolean
  readonly outcome: Failure
}

/** Facts about a failed SMTP attempt. */
export interface SmtpFault {
  /** The server's last reply code, when it gave one. */
  readonly code: number | undefined
  /** Its enhanced status code (`5.1.1`, RFC 3463), when it gave one. */
  readonly enhanced: string | undefined
  /** The command that was answered, or that waited for an answer. */
  readonly command: 'connect' | 'tls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'record' | 'local'
  /** Some of the message had been handed over when the line broke. */
  readonly handedOver: boolean
}

const connection = (reason: string): Failure => ({ kind: 'transient', scope: 'connection', reason })
const transient = (reason: string): Failure => ({ kind: 'transient', scope: 'message', reason })
/** A refusal that may not be about this message. */
const sender = (reason: string): Failure => ({ kind: 'transient', scope: 'sender', reason })
const permanent = (reason: string, hardBounce = false): Failure => ({ kind: 'permanent', reason, hardBounce })

const NOT_RECORDED = 'the message before it was sent, and the store could not record that'

/** Enhanced codes that say that the address is dead (RFC 3463 §3.2): a hard bounce. */
export const DEAD_ADDRESS = /^5\.1\.(?:1|2|3|6|10)$/
const POLICY = /^5\.7\.\d+$/
const TOO_LARGE = /^5\.(?:3\.4|2\.3)$/

/**
 * SMTP replies and faults to outcomes; the first row that matches decides. A digit 4 may come back and a digit 5 will
 * not, except where the reply is about us (credentials, sender, line) and not about this message: then the transport
 * pauses and no message is given up for it.
 */
export const SMTP_OUTCOMES: readonly OutcomeRow<SmtpFault>[] = [
  {
    id: 'certificate-refused',
    when: 'the certificate is expired, self-signed, of an unknown issuer or of another name, or TLS fails',
    matches: ({ command, code }) => command === 'tls' && code === undefined,
    outcome: connection('the mail server’s certificate could not be verified'),
  },
  {
    id: 'encryption-refused',
    when: 'STARTTLS is refused, and the credentials must not be sent without it',
    matches: ({ command }) => command === 'tls',
    outcome: connection('the mail server offers no encryption, and the credentials are not sent without it'),
  },
  {
    id: 'credentials-refused',
    when: 'a reply of 4xx or 5xx to AUTH, or the server takes no credentials',
    matches: ({ command, code }) => command === 'auth' && code !== 421,
    outcome: sender('the mail server refused the credentials'),
  },
  {
    id: 'service-closing',
    when: '421 to any command: too many connections, or the server shuts down',
    matches: ({ code }) => code === 421,
    outcome: connection('the mail server asks to come back later (421)'),
  },
  {
    id: 'credentials-needed',
    when: '530 to any command: the server wants credentials, and none are configured',
    matches: ({ code }) => code === 530,
    outcome: sender('the mail server wants credentials (530)'),
  },
  {
    id: 'greeting-refused',
    when: '4xx or 5xx as the greeting or to EHLO',
    matches: ({ command, code }) => command === 'connect' && code !== undefined,
    outcome: connection('the mail server does not talk to this machine'),
  },
  {
    id: 'message-too-large',
    when: '552 or 523 with 5.3.4 or 5.2.3, or the message is larger than SIZE allows',
    matches: ({ code, enhanced }) =>
      code !== undefined &&
      code >= 500 &&
      (TOO_LARGE.test(enhanced ?? '') || (code === 552 && enhanced === undefined)),
    outcome: permanent('the message is larger than the mail server takes'),
  },
  {
    id: 'sender-refused',
    when: 'any other 5xx to MAIL FROM: the server does not let the configured sender send',
    matches: ({ command, code }) => command === 'mail' && code !== undefined && code >= 500,
    outcome: sender('the mail server refused the sender’s address'),
  },
  {
    id: 'address-dead',
    when: '5xx with 5.1.1, 5.1.2, 5.1.3, 5.1.6 or 5.1.10: no such mailbox or domain',
    matches: ({ enhanced }) => DEAD_ADDRESS.test(enhanced ?? ''),
    outcome: permanent('the address does not exist', true),
  },
  {
    id: 'policy-refused',
    when: '5xx with 5.7.x, or 554 without such a code: a policy, perhaps about us and not about the message',
    matches: ({ code, enhanced }) =>
      code !== undefined &&
      code >= 500 &&
      (POLICY.test(enhanced ?? '') || (code === 554 && enhanced === undefined)),
    outcome: sender('the mail server’s policy refused the message'),
  },
  {
    id: 'message-refused',
    when: 'any other 5xx: content, a full mailbox',
    matches: ({ code }) => code !== undefined && code >= 500,
    outcome: permanent('the mail server refused the message'),
  },
  {
    id: 'message-deferred',
    when: 'any other 4xx: greylisting, a full disk, a busy mailbox',
    matches: ({ code }) => code !== undefined && code >= 400,
    outcome: transient('the mail server cannot take the message now'),
  },
  {
    id: 'address-unusable',
    when: 'the address cannot be written into an SMTP command',
    matches: ({ command }) => command === 'local',
    outcome: permanent('the address cannot be used over SMTP'),
  },
  {
    id: 'not-recorded',
    when: 'what became of the message before it on the same connection could not be stored: another is not sent',
    matches: ({ command }) => command === 'record',
    outcome: connection(NOT_RECORDED),
  },
  {
    id: 'dropped-after-data',
    when: 'the line breaks, or no reply comes, after the message was handed over',
    matches: ({ handedOver }) => handedOver,
    outcome: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  },
  {
    id: 'unreachable',
    when: 'no address, no connection, no greeting, or the line breaks before the message was handed over',
    matches: () => true,
    outcome: connection('the mail server could not be reached'),
  },
]

export function smtpOutcome(fault: SmtpFault): Failure {
  const outcome = decide(SMTP_OUTCOMES, fault)
  // Add the reply code: it helps the operator and repeats nothing of the server's text.
  return fault.code === undefined || /\(\d+\)$/.test(outcome.reason)
    ? outcome
    : { ...outcome, reason: `${outcome.reason} (${fault.code})` }
}

/** Facts about a failed HTTP attempt: a status, or the error code (`ECONNREFUSED`). */
export interface HttpFault {
  readonly status: number | undefined
  readonly errno: string | undefined
  /** The row that the provider's own name of the error, or our own state, decides. */
  readonly row?:
    | 'rate-limited'
    | 'key-refused'
    | 'request-refused'
    | 'recipient-inactive'
    | 'not-recorded'
    | undefined
}

/** Codes of faults in which not a byte of the request had left. */
const NEVER_LEFT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EACCES',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
])
const CERTIFICATE =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

const between = (low: number, high: number) => (fault: HttpFault) =>
  fault.status !== undefined && fault.status >= low && fault.status <= high
const oneOf =
  (...statuses: readonly number[]) =>
  ({ status }: HttpFault) =>
    status !== undefined && statuses.includes(status)

/** Answers and faults of a mail API to outcomes; the row that the fault names decides, else the first that matches. */
export const HTTP_OUTCOMES: readonly OutcomeRow<HttpFault>[] = [
  {
    id: 'rate-limited',
    when: '429, or a quota of SES; `Retry-After` is kept, up to an hour',
    matches: oneOf(429),
    outcome: connection('the mail provider limits our rate'),
  },
  {
    id: 'key-refused',
    when: '401, 402 or 403, or SES with a paused account: the key, its rights, or the account',
    matches: oneOf(401, 402, 403),
    outcome: sender('the mail provider refused the key'),
  },
  {
    id: 'wrong-address',
    when: '3xx, 404 or 405: MAILER_API_URL is not where mail is taken; a redirect is never followed, because the key would go along',
    matches: (fault) => between(300, 399)(fault) || oneOf(404, 405)(fault),
    outcome: connection('the mail provider’s address is wrong'),
  },
  {
    id: 'message-too-large',
    when: '413',
    matches: oneOf(413),
    outcome: permanent('the message is larger than the mail provider takes'),
  },
  {
    id: 'message-deferred',
    when: '408, 409 (our key is at work elsewhere), 425, or 5xx; `Retry-After` is kept, up to an hour',
    matches: (fault) => between(500, 599)(fault) || oneOf(408, 409, 425)(fault),
    outcome: transient('the mail provider cannot take the message now'),
  },
  {
    id: 'request-refused',
    when: '400 or 422: the request, perhaps for our sender’s address or the texts and not for this recipient',
    matches: oneOf(400, 422),
    outcome: sender('the mail provider refused the message'),
  },
  {
    id: 'recipient-inactive',
    when: 'Postmark’s ErrorCode 406: the recipient bounced, complained or was suppressed there',
    matches: () => false,
    outcome: permanent('the mail provider delivers nothing to this address', true),
  },
  {
    id: 'not-recorded',
    when: 'Postmark and SES: what became of an earlier message could not be stored, so another is not sent',
    matches: () => false,
    outcome: connection(NOT_RECORDED),
  },
  {
    id: 'message-refused',
    when: 'any other status',
    matches: ({ status }) => status !== undefined,
    outcome: permanent('the mail provider refused the message'),
  },
  {
    id: 'certificate-refused',
    when: 'the certificate is expired, self-signed, of an unknown issuer or of another name',
    matches: ({ errno }) => CERTIFICATE.test(errno ?? ''),
    outcome: connection('the mail provider’s certificate could not be verified'),
  },
  {
    id: 'key-unusable',
    when: 'MAILER_API_KEY holds a character that no HTTP header can carry, such as the … of a shortened key: the request never left',
    matches: ({ errno }) => errno === 'UND_ERR_INVALID_ARG',
    outcome: connection('the key of the mail provider holds a character that cannot be sent'),
  },
  {
    id: 'unreachable',
    when: 'no address or no connection: the request never left',
    matches: ({ errno }) => NEVER_LEFT.has(errno ?? ''),
    outcome: connection('the mail provider could not be reached'),
  },
  {
    id: 'dropped',
    when: 'the line breaks, or no answer comes, after the request was sent',
    matches: () => true,
    outcome: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  },
]

export function httpOutcome(fault: HttpFault, retryAfterMs?: number): Failure {
  const outcome = HTTP_OUTCOMES.find(({ id }) => id === fault.row)?.outcome ?? decide(HTTP_OUTCOMES, fault)
  return {
    ...outcome,
    ...(fault.status === undefined ? {} : { reason: `${outcome.reason} (${fault.status})` }),
    ...(outcome.kind === 'transient' && retryAfterMs !== undefined ? { retryAfterMs } : {}),
  }
}

function decide<Fault>(rows: readonly OutcomeRow<Fault>[], fault: Fault): Failure {
  const row = rows.find(({ matches }) => matches(fault))
  if (row === undefined) throw new RangeError('an outcome table ends with a row that matches everything')
  return row.outcome
}
