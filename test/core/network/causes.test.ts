import { expect, test } from 'vitest'
import { CAUSES, type CauseCode, causeOf, isCauseCode, type Phase } from '../../../src/core/network/causes.ts'

test.each<[code: string | undefined, phase: Phase, cause: CauseCode]>([
  ['ENOTFOUND', 'dns', 'dns_not_found'],
  ['EAI_AGAIN', 'dns', 'dns_unavailable'],
  ['ECONNREFUSED', 'tcp', 'connect_refused'],
  ['ETIMEDOUT', 'tcp', 'connect_timeout'],
  ['EHOSTUNREACH', 'tcp', 'connect_unreachable'],
  ['EHOSTDOWN', 'body', 'connect_unreachable'],
  ['ENETUNREACH', 'body', 'connect_unreachable'],
  ['EACCES', 'body', 'connect_unreachable'],
  ['CERT_HAS_EXPIRED', 'tls', 'tls_expired'],
  ['CERT_NOT_YET_VALID', 'tls', 'tls_not_yet_valid'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls', 'tls_wrong_name'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls', 'tls_untrusted'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls', 'tls_untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls', 'tls_untrusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls', 'tls_untrusted'],
  ['HPE_HEADER_OVERFLOW', 'answer', 'headers_too_large'],
  ['HPE_INVALID_CONSTANT', 'answer', 'bad_http'],
  ['ECONNRESET', 'tcp', 'connection_closed'],
  ['ECONNRESET', 'tls', 'tls_failed'],
  ['ECONNRESET', 'answer', 'connection_closed'],
  ['ESERVFAIL', 'dns', 'dns_unavailable'],
  ['anything', 'tcp', 'connect_unreachable'],
  [undefined, 'tcp', 'connect_unreachable'],
  [undefined, 'tls', 'tls_failed'],
  [undefined, 'answer', 'connection_closed'],
])('an error %s in the phase %s is %s', (code, phase, cause) => {
  expect(causeOf(Object.assign(new Error('10.0.0.1'), code && { code }), phase)).toBe(cause)
})

test('every cause says what it means and what to do, and names no host', () => {
  expect(isCauseCode('redirect') && !isCauseCode('constructor') && !isCauseCode('')).toBe(true)
  for (const { meaning, fix } of Object.values(CAUSES)) {
    expect(meaning).toMatch(/^[a-z].{10,}[^.]$/)
    expect(fix).toMatch(/^[A-Z].{10,}\.$/)
  }
})
