import { codeOf } from '../errors.ts'
/**
 * Every way in which asking another server can fail: code → what it means → what to do. docs/reference/health.md is
 * made from it. No sentence names a host, because a probe may show it to the public.
 */
export const CAUSES = {
  dns_not_found: {
    meaning: 'its name does not exist',
    fix: 'Check the spelling of the host, and that its DNS record is published.',
  },
  dns_unavailable: {
    meaning: 'its name could not be looked up: the resolver failed',
    fix: 'Check the resolver of this machine (/etc/resolv.conf), then ask again.',
  },
  dns_timeout: {
    meaning: 'its name was not looked up in time',
    fix: 'The resolver of this machine does not answer: check it and the network.',
  },
  connect_refused: {
    meaning: 'the connection was refused: nothing listens there',
    fix: 'Start the service, or correct its port.',
  },
  connect_unreachable: {
    meaning: 'there is no route to it',
    fix: 'Check the network of this machine, and whether the address is of a family (IPv4, IPv6) it can reach.',
  },
  connect_timeout: {
    meaning: 'the connection was not accepted in time',
    fix: 'A firewall drops the packets, the address is wrong, or the machine is down.',
  },
  proxy_refused: {
    meaning: 'the proxy of this machine cannot be reached, or does not let it through',
    fix: 'Check that the proxy of HTTP_PROXY or HTTPS_PROXY runs and passes it on, or name its host in NO_PROXY.',
  },
  tls_expired: {
    meaning: 'its certificate has expired',
    fix: 'Renew the certificate and reload the server that presents it.',
  },
  tls_not_yet_valid: {
    meaning: 'its certificate is not valid yet',
    fix: 'Compare the clocks of both machines with the certificate’s first day.',
  },
  tls_wrong_name: {
    meaning: 'its certificate is for another name',
    fix: 'Ask it by a name in the certificate, or issue one that holds this name.',
  },
  tls_untrusted: {
    meaning: 'its certificate is not signed by an authority that is trusted here',
    fix: 'Serve the whole chain; for an authority of your own, name its file in NODE_EXTRA_CA_CERTS.',
  },
  tls_failed: {
    meaning: 'no encrypted connection came about',
    fix: 'Check that the port speaks TLS: http:// and https:// may be mixed up.',
  },
  tls_timeout: {
    meaning: 'the encrypted connection did not come about in time',
    fix: 'Something accepts the connection without speaking TLS: check the proxy in front of the service.',
  },
  answer_timeout: {
    meaning: 'it accepted the connection and did not answer in time',
    fix: 'The process hangs or is overloaded: look at its log and its event loop, or give it longer.',
  },
  body_timeout: {
    meaning: 'its answer began and did not end in time',
    fix: 'The process stalls while it answers: look at its log.',
  },
  connection_closed: {
    meaning: 'the connection broke before the answer was whole',
    fix: 'The process may have ended, or a proxy cut the line: look at the logs of both.',
  },
  bad_http: {
    meaning: 'what it answers is not HTTP',
    fix: 'Something else listens there: check the port, and http:// against https://.',
  },
  headers_too_large: {
    meaning: 'the headers of its answer are larger than 16 KB',
    fix: 'Something other than the service answers: check the address and the proxy in front.',
  },
  encoded: {
    meaning: 'its answer is compressed although that was declined',
    fix: 'Turn compression off for the health endpoints in the proxy in front.',
  },
  too_large: {
    meaning: 'its answer is too large to be a health report',
    fix: 'Something other than the service answers: check the address.',
  },
  redirect: {
    meaning: 'it redirects elsewhere, and redirects are not followed',
    fix: 'Name the address that it redirects to, when you trust it.',
  },
  token_missing: {
    meaning: 'it asks for a token for deep checks, and none was given',
    fix: 'Put the token into HEALTH_DEEP_TOKEN, or name its source with --env-file, --token-env or --token-file.',
  },
  unauthorised: {
    meaning: 'it refuses the token for deep checks',
    fix: 'Put the token into HEALTH_DEEP_TOKEN, or name another source with --token-env or --token-file.',
  },
  forbidden: {
    meaning: 'it refuses to answer this machine (403)',
    fix: 'Allow this machine in the proxy or firewall in front.',
  },
  not_found: {
    meaning: 'it answers, but has no health endpoint there',
    fix: 'Check the address: it is the service’s root, without /api/health.',
  },
  rate_limited: {
    meaning: 'it refuses because it was asked too often (429)',
    fix: 'Ask less often, or exempt the health endpoints in the proxy in front.',
  },
  server_error: {
    meaning: 'it answers with an error of the server and without a health report',
    fix: 'The proxy in front may not reach the service: look at the logs of both.',
  },
  bad_json: {
    meaning: 'what it answers is not JSON',
    fix: 'Something other than the service answers: check the address.',
  },
  not_health: {
    meaning: 'it answers, but not with a health report',
    fix: 'Something other than the service answers: check the address.',
  },
  wrong_service: {
    meaning: 'another service of the platform answers there',
    fix: 'The addresses of two services are mixed up: check them.',
  },
} as const satisfies Record<string, { meaning: string; fix: string }>

export type CauseCode = keyof typeof CAUSES

export const isCauseCode = (value: string): value is CauseCode => Object.hasOwn(CAUSES, value)

/** How far a request had come, with the causes of its time-out there and of a failure that has no code of its own. */
export const PHASES = {
  dns: { timeout: 'dns_timeout', failure: 'dns_unavailable' },
  tcp: { timeout: 'connect_timeout', failure: 'connect_unreachable' },
  tls: { timeout: 'tls_timeout', failure: 'tls_failed' },
  answer: { timeout: 'answer_timeout', failure: 'connection_closed' },
  body: { timeout: 'body_timeout', failure: 'connection_closed' },
} as const satisfies Readonly<Record<string, Readonly<Record<'timeout' | 'failure', CauseCode>>>>

export type Phase = keyof typeof PHASES

/** Codes of Node's errors that mean one cause wherever they occur; OpenSSL's are those of X509_verify_cert_error_string(3). */
const CODES: readonly (readonly [codes: RegExp, cause: CauseCode])[] = [
  [/^(?:ENOTFOUND|ENODATA)$/, 'dns_not_found'],
  [/^EAI_AGAIN$/, 'dns_unavailable'],
  [/^ECONNREFUSED$/, 'connect_refused'],
  [/^ETIMEDOUT$/, 'connect_timeout'],
  [
    /^E(?:HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|ADDRNOTAVAIL|AFNOSUPPORT|ACCES|PERM)$/,
    'connect_unreachable',
  ],
  [/^CERT_HAS_EXPIRED$/, 'tls_expired'],
  [/^CERT_NOT_YET_VALID$/, 'tls_not_yet_valid'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'tls_wrong_name'],
  [/SELF_SIGNED_CERT|^UNABLE_TO_(?:GET_ISSUER|VERIFY_LEAF)|^CERT_(?:UNTRUSTED|REVOKED)$/, 'tls_untrusted'],
  [/^(?:EPROTO$|ERR_SSL_)/, 'tls_failed'],
  [/^HPE_HEADER_OVERFLOW$/, 'headers_too_large'],
  [/^HPE_/, 'bad_http'],
]

/** The cause of an error in this phase, by its code: one of ours or of Node's. Its text could hold an address. */
export function causeOf(error: unknown, phase: Phase): CauseCode {
  const code = codeOf(error)
  if (isCauseCode(code)) return code
  // The connection was accepted and cut at once, so something listens there.
  if (code === 'ECONNRESET' && phase === 'tcp') return 'connection_closed'
  return CODES.find(([codes]) => codes.test(code))?.[1] ?? PHASES[phase].failure
}
