import type { Finding } from '../finding.ts'
import { splitSecrets } from '../secret.ts'
import type { Variable } from './contract.ts'
import { listOf, parseProxies } from './values.ts'

type Warning = Pick<Finding, 'id' | 'cause' | 'fix'>
type ValueFinding = Warning & Pick<Finding, 'severity'>

/** Warnings about well-formed values that leave something open to others on the network. */
function exposureWarnings(input: {
  readonly variable: { readonly name: string; readonly kind: string }
  readonly value: string
  /** DEPLOY_ENVIRONMENT. */
  readonly environment: string | undefined
}): Warning[] {
  const {
    variable: { name, kind },
    value,
    environment,
  } = input
  if (kind === 'proxies' && trustsEverybody(value))
    return [
      {
        id: 'trusts-everybody',
        cause: `${name} trusts every address, so every client can choose the address that limits count it by.`,
        fix: 'Name the addresses or ranges of your own proxies.',
      },
    ]
  if (environment !== 'production' || !/^(?:urls?|store-url|postgres-url)$/.test(kind)) return []
  const url = URL.parse(value)
  const isPlain = (one: string) => /^http:/i.test(one) && !isPrivate(URL.parse(one)?.hostname ?? '')
  if (/^urls?$/.test(kind) && (kind === 'url' ? [value] : listOf(value)).some(isPlain))
    return [
      {
        id: 'plain-http',
        cause: `${name} is an http:// address and DEPLOY_ENVIRONMENT is production: what travels there can be read and changed.`,
        fix: 'Use the https:// address.',
      },
    ]
  if (kind.endsWith('-url') && url && /^postgres(?:ql)?:$/.test(url.protocol) && !hasTls(url))
    return [
      {
        id: 'store-without-tls',
        cause: `${name} connects without TLS and DEPLOY_ENVIRONMENT is production: addresses and the password can be read on the way.`,
        fix: 'Add ?sslmode=verify-full (or require) to the address.',
      },
    ]
  return []
}

/** Ranges this wide hold half the internet; nobody's proxies do. */
const WIDEST = { ipv4: 2, ipv6: 3 } as const

function trustsEverybody(value: string): boolean {
  return (parseProxies(value) ?? []).some((proxy) => {
    const [address = '', bits] = proxy.split('/')
    return bits !== undefined && Number(bits) <= (address.includes(':') ? WIDEST.ipv6 : WIDEST.ipv4)
  })
}

/** Whether only a private network knows this name or address. */
function isPrivate(host: string): boolean {
  return (
    !/[.:]/.test(host) ||
    /\.(?:internal|local|localhost|lan|home\.arpa|svc|test)$/i.test(host) ||
    /^(?:127|10)\.|^192\.168\.|^172\.(?:1[6-9]|2\d|3[01])\.|^\[(?:::1|f[cd][0-9a-f]{2}:.*)\]$/i.test(host)
  )
}

function hasTls({ hostname, searchParams }: URL): boolean {
  const here =
    /^(?:localhost|127(?:\.\d+){3}|\[::1\]|%2f.*)?$/i.test(hostname) ||
    (searchParams.get('host') ?? '').startsWith('/')
  return here || /^(?:require|verify-ca|verify-full)$/.test(searchParams.get('sslmode') ?? '')
}

/** Values that people leave behind when they copy an example, or that a template leaves when it has nothing to fill in. */
const PLACEHOLDER = new RegExp(
  [
    'change[-_ ]?(?:me|this|it)\\W*\\d{0,4}',
    'replace[-_ ]?(?:me|this|it)',
    'replace[-_ ]with[-_ ].*',
    'todo|tbd|fixme|dummy|placeholder|example|sample|password|secret',
    'your[-_ ].*',
    'my[-_ ](?:key|secret|token|password)',
    '(?:insert|enter|paste|put)[-_ ].*[-_ ]here',
    // The prefix of a provider, and nothing real behind it.
    '(?:[a-z]{2,6}[-_])?(?:live[-_]|test[-_])?(?:x{3,}|\\.{3,}|\\*{3,}|…)',
    '<.*>|\\[.*\\]|\\{\\{.*\\}\\}|\\$\\{.*\\}|%[A-Z_]+%',
    'undefined|null|nil|none|nan',
  ]
    .map((pattern) => `^(?:${pattern})$`)
    .join('|'),
  'i',
)

/** Shorter than this, a secret can be guessed by trying (NIST SP 800-131A asks 112 bits; 16 base64 characters hold 96). */
const SHORTEST_SECRET = 16

/** A provider's key that is shorter than this was cut off. */
const SHORTEST_KEY = 8

const SECRET_KEY =
  /^(?:sk[-_](?:live|test|ant|proj)[-_]|rk_(?:live|test)_|whsec_|gh[pousr]_|xox[abpr]-|-----BEGIN [A-Z ]*PRIVATE KEY)/

/** A secret key, or a token of the data store that was signed for its servers (RFC 7519: the claims are readable). */
export function looksSecret(value: string): boolean {
  if (SECRET_KEY.test(value)) return true
  const claims = /^eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]*$/.exec(value)?.[1]
  return (
    claims !== undefined && /"role"\s*:\s*"service_role"/.test(Buffer.from(claims, 'base64url').toString())
  )
}

/** Variables that would open something if a malformed value behaved as absent, and what it does instead. */
const KEPT_CLOSED: ReadonlyMap<string, string> = new Map([
  ['HEALTH_DEEP_TOKEN', 'deep checks are refused to everybody'],
  ['STORE_URL', 'no other store is opened in its place'],
  ['JOB_STORE_URL', 'no other store is opened in its place'],
])

/** What a malformed value does instead of behaving as absent; undefined where it behaves so. */
export function keptClosed(name: string): string | undefined {
  return KEPT_CLOSED.get(name)
}

const SEVERITY = { warn: 'warning', error: 'error' } as const

interface Valued {
  readonly variable: Variable
  readonly value: string
  /** DEPLOY_ENVIRONMENT. */
  readonly environment: string | undefined
  /** What it should be; undefined if it is well-formed. */
  readonly expected: string | undefined
}

/**
 * Warnings about a value, without ever repeating it (CONTRACT §2); about each of the two values of a secret
 * that is being rotated. A malformed value is an error where its variable says so.
 */
export function valueFindings(input: Valued): ValueFinding[] {
  const { variable, value, expected } = input
  const values = variable.rotates && expected === undefined ? splitSecrets(value) : [value]
  const warnings = values.flatMap((one) => warningsOf({ ...input, value: one }))
  const severity = expected === undefined ? 'warning' : SEVERITY[variable.malformed]
  return warnings
    .filter(({ id }, at) => warnings.findIndex((other) => other.id === id) === at)
    .map((one) => ({ ...one, severity: one.id === 'public-secret' ? 'warning' : severity }))
}

function warningsOf(input: Valued): Warning[] {
  const { variable, value, environment, expected } = input
  const { name } = variable
  const closed = keptClosed(name)
  const effect = closed === undefined ? ' and behaves as absent' : `, so ${closed}`
  if (PLACEHOLDER.test(value)) {
    return [
      {
        id: 'placeholder-value',
        cause: `${name} holds a placeholder${expected === undefined ? '' : `, which is malformed${effect}`}.`,
        fix: 'Set the real value, or remove the line.',
      },
    ]
  }
  const exposed: Warning[] =
    name.startsWith('NEXT_PUBLIC_') && looksSecret(value)
      ? [
          {
            id: 'public-secret',
            cause: `${name} holds a secret key, and every browser can read it.`,
            fix: 'Revoke that key at the provider and set the publishable one here.',
          },
        ]
      : []
  if (expected !== undefined)
    return [
      { id: 'malformed-value', cause: `${name} is malformed${effect}.`, fix: `Set it to ${expected}.` },
      ...exposed,
    ]
  const warnings: Warning[] = [...exposureWarnings({ variable, value, environment }), ...exposed]
  if (exposed.length === 0 && variable.prefixes) {
    warnings.push(...prefixWarnings(name, value, variable.prefixes, environment))
  }
  if (variable.chosen && (value.length < SHORTEST_SECRET || new Set(value).size < 6)) {
    warnings.push({
      id: 'weak-secret',
      cause: `${name} is too short or too regular to resist guessing.`,
      fix: 'Make a new one, for example with: openssl rand -base64 32',
    })
  } else if (variable.kind === 'secret' && value.length < SHORTEST_KEY) {
    warnings.push({
      id: 'weak-secret',
      cause: `${name} is too short to resist guessing.`,
      fix: 'Check that the whole key was copied, or ask the provider for a new one.',
    })
  }
  return warnings
}

function prefixWarnings(
  name: string,
  value: string,
  { live, test }: NonNullable<Variable['prefixes']>,
  environment: string | undefined,
): Warning[] {
  const starts = (prefixes: readonly string[]) => prefixes.some((prefix) => value.startsWith(prefix))
  const [isLive, isTest] = [starts(live), starts(test)]
  if (!isLive && !isTest) {
    const known = [...new Set([...live, ...test])].join(', ')
    return [
      {
        id: 'wrong-prefix',
        cause: `${name} does not start as keys of its kind do.`,
        fix: `Check that it is the right key: it should start with ${known}.`,
      },
    ]
  }
  if (isLive && isTest) return []
  const production = environment === 'production'
  if (production && isTest) {
    return [
      {
        id: 'test-key-in-production',
        cause: `${name} is a test key and DEPLOY_ENVIRONMENT is production.`,
        fix: 'Set the live key.',
      },
    ]
  }
  if (!production && isLive) {
    return [
      {
        id: 'live-key-outside-production',
        cause: `${name} is a live key and DEPLOY_ENVIRONMENT is not production.`,
        fix: 'Set the test key, or set DEPLOY_ENVIRONMENT=production.',
      },
    ]
  }
  return []
}
