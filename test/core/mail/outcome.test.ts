import { expect, test } from 'vitest'
import {
  HTTP_OUTCOMES,
  httpOutcome,
  SMTP_OUTCOMES,
  type SmtpFault,
  smtpOutcome,
} from '../../../src/core/mail/outcome.ts'

const http = (status: number | undefined, errno?: string) => httpOutcome({ status, errno })
const smtp = (fault: Partial<SmtpFault>) =>
  smtpOutcome({ code: undefined, enhanced: undefined, command: 'rcpt', handedOver: false, ...fault })
/** An outcome in short: what is given up, and for whom; `sender?`: perhaps for this recipient alone. */
const short = (outcome: ReturnType<typeof smtpOutcome>) =>
  outcome.kind === 'transient'
    ? `${outcome.scope}${outcome.isUnclear ? '?' : ''}`
    : outcome.kind === 'permanent' && outcome.hardBounce
      ? 'hard bounce'
      : outcome.kind

test('every status of a mail API has its outcome, from one edge to the other', () => {
  const expected = (status: number) => {
    if (status < 400 && status >= 300) return 'connection'
    // A gateway passed it on: it may have been taken.
    if ([504, 522, 524].includes(status)) return 'unknown'
    if (status >= 500 && status < 600) return 'message'
    const named: Record<number, string> = {
      401: 'sender',
      402: 'sender',
      403: 'sender',
      404: 'connection',
      405: 'connection',
      408: 'message',
      409: 'message',
      413: 'permanent',
      425: 'message',
      429: 'connection',
    }
    return named[status] ?? 'sender?'
  }
  for (let status = 100; status < 650; status += 1) {
    if (status >= 200 && status < 300) continue
    const outcome = http(status)
    expect(short(outcome), String(status)).toBe(expected(status))
    expect(outcome.reason).toMatch(new RegExp(`^the m.* \\(${status}\\)$`))
  }
})

test('a request that never left is not unknown, and a certificate that is refused is still named', () => {
  const never = (errno?: string) => httpOutcome({ errno, neverLeft: true })
  for (const errno of ['ECONNREFUSED', 'UND_ERR_ABORTED', 'UND_ERR_SOCKET', undefined])
    expect(never(errno)).toEqual(HTTP_OUTCOMES.unreachable.outcome)
  expect(never('CERT_HAS_EXPIRED')).toEqual(HTTP_OUTCOMES['certificate-refused'].outcome)
})

test.each([
  ['CERT_HAS_EXPIRED', 'connection'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'connection'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'connection'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'connection'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'connection'],
  ['HOSTNAME_MISMATCH', 'connection'],
  ['INVALID_CA', 'connection'],
  ['INVALID_PURPOSE', 'connection'],
  ['UND_ERR_SOCKET', 'unknown'],
  ['UND_ERR_ABORTED', 'unknown'],
  ['NO_CERT_HAS_EXPIRED', 'unknown'],
  [undefined, 'unknown'],
])('a request that failed with %s has the outcome %s', (errno, expected) => {
  expect(short(http(undefined, errno))).toBe(expected)
})

test('a request that never left through a proxy has the proxy as its cause, and a certificate behind it as its own', () => {
  const reasonOf = (isProxied: boolean, errno?: string) =>
    httpOutcome({ errno, neverLeft: true, isProxied }).reason
  expect(reasonOf(false, 'ECONNREFUSED')).toBe('the mail provider could not be reached')
  expect(reasonOf(true, 'ECONNREFUSED')).toMatch(/proxy/)
  expect(reasonOf(true, 'CERT_HAS_EXPIRED')).toMatch(/certificate/)
})

test('a waiting time is kept where the message may be tried again; one of nothing is none', () => {
  expect(httpOutcome({ status: 429, errno: undefined }, 0)).toHaveProperty('retryAfterMs', 1000)
  expect(httpOutcome({ status: 503, errno: undefined }, 5)).toHaveProperty('retryAfterMs', 5)
  expect(httpOutcome({ status: 429, errno: undefined })).toHaveProperty('retryAfterMs', 1000)
  expect(httpOutcome({ status: 503, errno: undefined })).not.toHaveProperty('retryAfterMs')
  expect(httpOutcome({ status: 413, errno: undefined }, 5)).not.toHaveProperty('retryAfterMs')
})

test.each<[Partial<SmtpFault>, string]>([
  [{ command: 'tls' }, 'connection'],
  [{ command: 'tls', code: 454 }, 'connection'],
  [{ command: 'auth', code: 535 }, 'sender'],
  [{ command: 'auth' }, 'sender'],
  [{ command: 'auth', code: 421 }, 'connection'],
  [{ code: 421 }, 'connection'],
  [{ code: 530 }, 'sender'],
  [{ command: 'connect', code: 554 }, 'connection'],
  [{ command: 'connect' }, 'connection'],
  [{ code: 552 }, 'permanent'],
  [{ code: 552, enhanced: '5.2.2' }, 'permanent'],
  [{ code: 523, enhanced: '5.3.4' }, 'permanent'],
  [{ code: 499, enhanced: '5.3.4' }, 'message'],
  [{ code: 499, enhanced: '5.7.1' }, 'message'],
  [{ command: 'mail', code: 553 }, 'sender'],
  [{ command: 'mail', code: 553, enhanced: '5.1.3' }, 'sender'],
  [{ command: 'mail', code: 550, enhanced: '5.1.1' }, 'sender'],
  [{ command: 'mail', code: 500 }, 'sender'],
  [{ command: 'mail', code: 499 }, 'message'],
  [{ command: 'mail', code: 552 }, 'permanent'],
  [{ code: 550, enhanced: '5.1.1' }, 'hard bounce'],
  [{ code: 450, enhanced: '5.1.1' }, 'message'],
  [{ code: 550, enhanced: '5.1.2' }, 'hard bounce'],
  [{ code: 550, enhanced: '5.1.3' }, 'hard bounce'],
  [{ code: 550, enhanced: '5.1.6' }, 'hard bounce'],
  [{ code: 550, enhanced: '5.1.10' }, 'hard bounce'],
  [{ code: 550, enhanced: '5.1.4' }, 'permanent'],
  [{ code: 550, enhanced: '5.1.11' }, 'permanent'],
  [{ code: 550, enhanced: '15.1.1' }, 'permanent'],
  [{ code: 554 }, 'sender?'],
  [{ code: 554, enhanced: '5.6.0' }, 'permanent'],
  [{ code: 550, enhanced: '5.7.26' }, 'sender?'],
  [{ code: 550, enhanced: 'x5.7.1' }, 'permanent'],
  [{ code: 500, enhanced: '5.7.1' }, 'sender?'],
  [{ code: 550 }, 'permanent'],
  [{ code: 500 }, 'permanent'],
  [{ command: 'data', code: 550 }, 'sender?'],
  [{ code: 554, enhanced: '5.2.0' }, 'sender?'],
  [{ command: 'rcpt', code: 550, enhanced: '5.4.5' }, 'sender?'],
  [{ code: 552, enhanced: '5.3.1' }, 'sender?'],
  [{ code: 550, enhanced: '5.4.1' }, 'permanent'],
  [{ code: 499 }, 'message'],
  [{ code: 400 }, 'message'],
  [{ code: 399 }, 'connection'],
  [{ code: 399, handedOver: true }, 'unknown'],
  [{ command: 'local' }, 'permanent'],
  [{ command: 'record', handedOver: true }, 'connection'],
  [{ command: 'data', handedOver: true }, 'unknown'],
  [{ command: 'data' }, 'connection'],
])('of the SMTP fault %j it is %s', (fault, expected) => {
  expect(short(smtp(fault))).toBe(expected)
})

test('a reason ends with the reply’s digits, once', () => {
  expect(smtp({ code: 550 }).reason).toBe('the mail server refused the message (550)')
  expect(smtp({ code: 421 }).reason).toBe('the mail server asks to come back later (421)')
  expect(smtp({ code: 530 }).reason).toBe('the mail server wants credentials (530)')
  expect(smtp({ command: 'data' }).reason).toBe('the mail server could not be reached')
})

test('every row of SMTP has a reason of its own', () => {
  const reasons = Object.values(SMTP_OUTCOMES).map(({ outcome }) => outcome.reason)
  expect(new Set(reasons).size).toBe(reasons.length)
})
