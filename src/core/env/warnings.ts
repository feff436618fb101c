import type { Finding } from '../finding.ts'
import { splitList } from '../secret.ts'
import type { Variable } from './contract.ts'
import { looksSecret } from './exposure.ts'
import { type Exposure, KINDS, type KindOfValue } from './kinds.ts'

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

function isPlaceholder({ kind }: Variable, value: string): boolean {
  const { bracketed, parse }: KindOfValue = KINDS[kind]
  return PLACEHOLDER.test(value) && !(bracketed && /^[[<]/.test(value) && parse(value, {}) !== undefined)
}

/** Shorter than this, a secret can be guessed by trying. 16 base64 characters hold 96 bits. */
const SHORTEST_SECRET = 16

/** What people write for production: nothing that is asked of production is asked here. */
const ALMOST_PRODUCTION = /^(?:prod|production|prd|live)$/i

/** A provider's key that is shorter than this was cut off. */
const SHORTEST_KEY = 8

/** Variables that would open something if a malformed value behaved as absent, and what it does instead. */
export const KEPT_CLOSED: ReadonlyMap<string, string> = new Map([
  ['HEALTH_DEEP_TOKEN', 'deep checks are refused to everybody'],
  ['EMAIL_LINK_SECRET', 'unsubscribe links of its well-formed values alone work, and all others answer 503'],
  ['STORE_URL', 'the daemon does not start, and no other store is opened in its place'],
  ['JOB_STORE_URL', 'the daemon does not start, and no other store is opened in its place'],
])

/** A warning about a well-formed value that leaves something open. Cause and fix follow the name of the variable. */
const EXPOSED: Readonly<Record<Exposure, readonly [cause: string, fix: string]>> = {
  'trusts-everybody': [
    'trusts every address, so every client can choose the address that limits count it by',
    'Name the addresses or ranges of your own proxies.',
  ],
  'plain-http': [
    'is an http:// address and DEPLOY_ENVIRONMENT is production: what travels there can be read and changed',
    'Use the https:// address.',
  ],
  'store-without-tls': [
    'connects without TLS and DEPLOY_ENVIRONMENT is production: addresses and the password can be read on the way',
    'Add ?sslmode=verify-full (or require) to the address.',
  ],
}

/** Warnings about a well-formed value, which they never quote; of a malformed one only that it is a secret in public. */
function* warningsAbout(
  { name, kind, chosen, prefixes }: Variable,
  value: string,
  production: boolean,
  isMalformed: boolean,
): Generator<ValueFinding> {
  const warning = (id: string, cause: string, fix: string): ValueFinding => ({
    id,
    severity: 'warning',
    cause: `${name} ${cause}.`,
    fix,
  })
  const { exposure }: KindOfValue = KINDS[kind]
  const isPublic = name.startsWith('NEXT_PUBLIC_') && looksSecret(value)
  if (!isMalformed && exposure && (production || exposure.id === 'trusts-everybody') && exposure.in(value))
    yield warning(exposure.id, ...EXPOSED[exposure.id])
  if (isPublic)
    yield warning(
      'public-secret',
      'holds a secret key, and every browser can read it',
      'Revoke that key at the provider and set the publishable one here.',
    )
  if (isMalformed) return
  if (name === 'DEPLOY_ENVIRONMENT' && !production && ALMOST_PRODUCTION.test(value))
    yield warning(
      'almost-production',
      'is not production, and nothing is checked as for production',
      'Set DEPLOY_ENVIRONMENT=production.',
    )
  if (prefixes && !isPublic) {
    const [live, test] = [prefixes.live, prefixes.test].map((all) => all.some((one) => value.startsWith(one)))
    const all = [...new Set([...prefixes.live, ...prefixes.test])].join(' or ')
    if (!live && !test)
      yield warning(
        'wrong-prefix',
        'does not start as keys of its kind do',
        `Check that it is the right key: it should start with ${all}.`,
      )
    if (production && test && !live)
      yield warning(
        'test-key-in-production',
        'is a test key and DEPLOY_ENVIRONMENT is production',
        'Set the live key.',
      )
    if (!production && live && !test)
      yield warning(
        'live-key-outside-production',
        'is a live key and DEPLOY_ENVIRONMENT is not production',
        'Set the test key, or set DEPLOY_ENVIRONMENT=production.',
      )
  }
  if (chosen && (value.length < SHORTEST_SECRET || new Set(value).size < 6))
    yield warning(
      'weak-secret',
      'is too short or too regular to resist guessing',
      'Make a new one, for example with: openssl rand -base64 32',
    )
  else if (kind === 'secret' && value.length < SHORTEST_KEY)
    yield warning(
      'weak-secret',
      'is too short to resist guessing',
      'Check that the whole key was copied, or ask the provider for a new one.',
    )
}

type ValueFinding = Pick<Finding, 'id' | 'cause' | 'fix' | 'severity'>

/** Findings about a value, which they never repeat (CONTRACT §2). `expected` is what a malformed one should be. */
export function valueFindings(
  variable: Variable,
  value: string,
  production: boolean,
  expected: string | undefined,
): ValueFinding[] {
  const { name, malformed } = variable
  const severity = expected !== undefined && malformed === 'error' ? 'error' : 'warning'
  const closed = KEPT_CLOSED.get(name)
  const effect = closed === undefined ? ' and behaves as absent' : `, so ${closed}`
  const values = variable.rotates && expected === undefined ? splitList(value) : [value]
  const found = values.flatMap((one): ValueFinding[] => {
    if (isPlaceholder(variable, one)) {
      const malformed = expected === undefined ? '' : `, which is malformed${effect}`
      const cause = `${name} holds a placeholder${malformed}.`
      return [{ id: 'placeholder-value', severity, cause, fix: 'Set the real value, or remove the line.' }]
    }
    const warnings = [...warningsAbout(variable, one, production, expected !== undefined)]
    if (expected === undefined) return warnings
    const cause = `${name} is malformed${effect}.`
    return [{ id: 'malformed-value', severity, cause, fix: `Set it to ${expected}.` }, ...warnings]
  })
  return found.filter(({ id }, at) => found.findIndex((other) => other.id === id) === at)
}
