import { CAUSES, type CauseCode } from '../network/causes.ts'
import type { Outcome } from './mailer.ts'

type Failure = Exclude<Outcome, { kind: 'sent' }>

interface OutcomeRow<Fault> {
  readonly when: string
  /** Undefined: only a fault that names the row. */
  readonly matches?: (fault: Fault) => boolean
  readonly outcome: Failure
}

/**
 * What failures are, by a stable name; the first row that matches decides. What follows for the message, such as the
 * pause before a retry, is in `delivery/retries.ts`, by their scope; one with rules of its own has its own scope.
 */
export type OutcomeTable<Fault> = Readonly<Record<string, OutcomeRow<Fault>>>

export interface SmtpFault {
  readonly code?: number | undefined
  /** Its enhanced status code (`5.1.1`, RFC 3463), when it gave one. */
  readonly enhanced?: string | undefined
  /** That was answered, or waited for an answer. */
  readonly command: 'connect' | 'tls' | 'auth' | 'mail' | 'rcpt' | 'data' | 'record' | 'local'
  /** Some of the message had been handed over when the line broke. */
  readonly handedOver: boolean
  /** Why no connection came about, where that is known. */
  readonly cause?: CauseCode | undefined
}

const connection = (reason: string) => ({ kind: 'transient', scope: 'connection', reason }) as const
const transient = (reason: string) => ({ kind: 'transient', scope: 'message', reason }) as const
/** A refusal that is not about this message, or may not be. */
const sender = (reason: string) => ({ kind: 'transient', scope: 'sender', reason }) as const
const unclear = (reason: string) => ({ ...sender(reason), isUnclear: true }) as const
const permanent = (reason: string, hardBounce = false): Failure => ({ kind: 'permanent', reason, hardBounce })

const NOT_RECORDED = 'the message before it was sent, and the store could not record that'

/** Enhanced codes that say that the address is dead (RFC 3463 §3.2): a hard bounce. */
export const DEAD_ADDRESS = /^5\.1\.(?:1|2|3|6|10)$/

const refused = ({ code = 0 }: SmtpFault) => code >= 500

/**
 * SMTP replies and faults. A digit 4 may come back and a digit 5 will not, except where the reply is about us
 * (credentials, sender, line) and not about this message: several end the run, and lessons lose no attempt.
 */
export const SMTP_OUTCOMES = {
  'certificate-refused': {
    when: 'the certificate is expired, self-signed, of an unknown issuer or of another name, or TLS fails',
    matches: ({ command, code }) => command === 'tls' && code === undefined,
    outcome: connection('the mail server’s certificate could not be verified'),
  },
  'encryption-refused': {
    when: 'STARTTLS is refused, and the credentials must not be sent without it',
    matches: ({ command }) => command === 'tls',
    outcome: connection('the mail server offers no encryption, and the credentials are not sent without it'),
  },
  'credentials-refused': {
    when: 'a reply of 4xx or 5xx to AUTH, or the server takes no credentials',
    matches: ({ command, code }) => command === 'auth' && code !== 421,
    outcome: sender('the mail server refused the credentials'),
  },
  'service-closing': {
    when: '421 to any command: too many connections, or the server shuts down',
    matches: ({ code }) => code === 421,
    outcome: connection('the mail server asks to come back later (421)'),
  },
  'credentials-needed': {
    when: '530 to any command: the server wants credentials, and none are configured',
    matches: ({ code }) => code === 530,
    outcome: sender('the mail server wants credentials (530)'),
  },
  'greeting-refused': {
    when: '4xx or 5xx as the greeting or to EHLO',
    matches: ({ command, code }) => command === 'connect' && code !== undefined,
    outcome: connection('the mail server does not talk to this machine'),
  },
  'message-too-large': {
    when: '552 or 523 with 5.3.4 or 5.2.3, or the message is larger than SIZE allows',
    matches: (fault) =>
      refused(fault) &&
      (fault.enhanced === undefined ? fault.code === 552 : /^5\.(?:3\.4|2\.3)$/.test(fault.enhanced)),
    outcome: permanent('the message is larger than the mail server takes'),
  },
  'sender-refused': {
    when: 'any other 5xx to MAIL FROM: the server does not let the configured sender send',
    matches: (fault) => fault.command === 'mail' && refused(fault),
    outcome: sender('the mail server refused the sender’s address'),
  },
  'address-dead': {
    when: '5xx with 5.1.1, 5.1.2, 5.1.3, 5.1.6 or 5.1.10: no such mailbox or domain',
    matches: (fault) => refused(fault) && DEAD_ADDRESS.test(fault.enhanced ?? ''),
    outcome: permanent('the address does not exist', true),
  },
  'policy-refused': {
    when: '5xx with 5.7.x, 5.2.0, 5.3.x or 5.4.5, or else 554 or to the content: policies, perhaps about us',
    matches: (fault) =>
      refused(fault) &&
      (fault.enhanced === undefined
        ? fault.code === 554 || fault.command === 'data'
        : /^5\.(?:7\.\d+|2\.0|3\.\d+|4\.5)$/.test(fault.enhanced)),
    outcome: unclear('the mail server’s policy refused the message'),
  },
  'message-refused': {
    when: 'any other 5xx: a full mailbox',
    matches: refused,
    outcome: permanent('the mail server refused the message'),
  },
  'message-deferred': {
    when: 'any other 4xx: greylisting, a full disk, a busy mailbox',
    matches: ({ code = 0 }) => code >= 400,
    outcome: transient('the mail server cannot take the message now'),
  },
  'address-unusable': {
    when: 'the address cannot be written into an SMTP command',
    matches: ({ command }) => command === 'local',
    outcome: permanent('the address cannot be used over SMTP'),
  },
  'not-recorded': {
    when: 'what became of the message before it on the same connection could not be stored: another is not sent',
    matches: ({ command }) => command === 'record',
    outcome: connection(NOT_RECORDED),
  },
  'dropped-after-data': {
    when: 'the line breaks, or no reply comes, after the message was handed over',
    matches: ({ handedOver }) => handedOver,
    outcome: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  },
  unreachable: {
    when: 'no address, no connection, no greeting, or the line breaks before the message was handed over',
    matches: () => true,
    outcome: connection('the mail server could not be reached'),
  },
} satisfies OutcomeTable<SmtpFault>

/** Why mail cannot be sent, in a sentence of ours. */
export class MailFault extends Error {}

export function smtpOutcome(fault: SmtpFault): Failure {
  const outcome = decide<SmtpFault>(SMTP_OUTCOMES, fault)
  if (fault.cause !== undefined && outcome === SMTP_OUTCOMES.unreachable.outcome)
    return { ...outcome, reason: `${outcome.reason}: ${CAUSES[fault.cause].meaning}` }
  // Add the reply code: it helps the operator and repeats nothing of the server's text.
  return fault.code === undefined || /\(\d+\)$/.test(outcome.reason)
    ? outcome
    : { ...outcome, reason: `${outcome.reason} (${fault.code})` }
}

/** Facts about a failed HTTP attempt: a status, or the error code (`ECONNREFUSED`). */
export interface HttpFault {
  readonly status?: number | undefined
  readonly errno?: string | undefined
  /** Not a byte of the request had left. */
  readonly neverLeft?: boolean | undefined
  /** It goes through a proxy of the environment. */
  readonly isProxied?: boolean | undefined
  /** The row that the provider's own name of the error, or our own state, decides. */
  readonly row?: HttpRow | undefined
}

const CERTIFICATE =
  /^(?:CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

const oneOf =
  (...statuses: readonly number[]) =>
  ({ status = 0 }: HttpFault) =>
    statuses.includes(status) || statuses.includes(Math.floor(status / 100))

/** Answers and faults of a mail API. The row that the fault names decides, else the first that matches. */
export const HTTP_OUTCOMES = {
  'rate-limited': {
    when: '429, or a quota of SES; `Retry-After` is kept, up to an hour, and is a second where there is none',
    matches: oneOf(429),
    outcome: { ...connection('the mail provider limits our rate'), retryAfterMs: 1000 },
  },
  'key-refused': {
    when: '401, 402 or 403, or SES with a paused account: the key, its rights, or the account',
    matches: oneOf(401, 402, 403),
    outcome: sender('the mail provider refused the key'),
  },
  'wrong-address': {
    when: '3xx, 404 or 405: MAILER_API_URL is not where mail is taken; a redirect is never followed, because the key would go along',
    matches: oneOf(3, 404, 405),
    outcome: connection('the mail provider’s address is wrong'),
  },
  'message-too-large': {
    when: '413',
    matches: oneOf(413),
    outcome: permanent('the message is larger than the mail provider takes'),
  },
  'gateway-silent': {
    when: '504, 522, 524',
    matches: oneOf(504, 522, 524),
    outcome: { kind: 'unknown', reason: 'the mail provider’s gateway timed out' },
  },
  'message-deferred': {
    when: '408, 409 (our key is at work, or had other bytes), 425, or 5xx; `Retry-After` is kept, up to an hour',
    matches: oneOf(5, 408, 409, 425),
    outcome: transient('the mail provider cannot take the message now'),
  },
  'recipient-inactive': {
    when: 'Postmark’s ErrorCode 406: the recipient bounced, complained or was suppressed there',
    outcome: permanent('the mail provider delivers nothing to this address', true),
  },
  'not-recorded': {
    when: 'Postmark and SES: what became of an earlier message could not be stored, so another is not sent',
    outcome: connection(NOT_RECORDED),
  },
  'request-refused': {
    when: 'any other status, such as 400 or 422: perhaps for our sender’s address or the texts and not for this recipient',
    matches: ({ status }) => status !== undefined,
    outcome: unclear('the mail provider refused the message'),
  },
  'certificate-refused': {
    when: 'the certificate is expired, self-signed, of an unknown issuer or of another name',
    matches: ({ errno }) => CERTIFICATE.test(errno ?? ''),
    outcome: connection('the mail provider’s certificate could not be verified'),
  },
  'key-unusable': {
    when: 'MAILER_API_KEY holds a character that no HTTP header can carry, such as the … of a shortened key: the request never left',
    matches: ({ errno }) => errno === 'UND_ERR_INVALID_ARG',
    outcome: connection('the key of the mail provider holds a character that cannot be sent'),
  },
  'proxy-refused': {
    when: 'the proxy of HTTPS_PROXY is not reached, says nothing or opens no connection: the request never left',
    matches: ({ neverLeft = false, isProxied = false }) => neverLeft && isProxied,
    outcome: connection('the proxy of this machine does not let the message through'),
  },
  unreachable: {
    when: 'no address or no connection: the request never left',
    matches: ({ neverLeft = false }) => neverLeft,
    outcome: connection('the mail provider could not be reached'),
  },
  dropped: {
    when: 'the line breaks, or no answer comes, after the request was sent',
    matches: () => true,
    outcome: { kind: 'unknown', reason: 'the connection broke after the message was handed over' },
  },
} satisfies OutcomeTable<HttpFault>

export type HttpRow = keyof typeof HTTP_OUTCOMES

export function httpOutcome(fault: HttpFault, retryAfterMs = 0): Failure {
  const outcome = fault.row ? HTTP_OUTCOMES[fault.row].outcome : decide<HttpFault>(HTTP_OUTCOMES, fault)
  return {
    ...outcome,
    ...(fault.status !== undefined && { reason: `${outcome.reason} (${fault.status})` }),
    ...(outcome.kind === 'transient' && retryAfterMs > 0 && { retryAfterMs }),
  }
}

function decide<Fault>(table: OutcomeTable<Fault>, fault: Fault): Failure {
  const row = Object.values(table).find(({ matches }) => matches?.(fault))
  if (row === undefined) throw new RangeError('an outcome table ends with a row that matches everything')
  return row.outcome
}
