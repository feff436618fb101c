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

/** Shorter than this, a secret can be guessed by trying (NIST SP 800-131A asks 112 bits; 16 base64 characters hold 96). */
const SHORTEST_SECRET = 16

/** A provider's key that is shorter than this was cut off. */
const SHORTEST_KEY = 8

/** Variables that would open something if a malformed value behaved as absent, and what it does instead. */
export const KEPT_CLOSED: ReadonlyMap<string, string> = new Map([
  ['HEALTH_DEEP_TOKEN', 'deep checks are refused to everybody'],
  ['STORE_URL', 'no other store is opened in its place'],
  ['JOB_STORE_URL', 'no other store is opened in its place'],
])

/** A warning about a well-formed value. Cause and fix follow the name of the variable and never quote the value. */
interface ValueWarning {
  readonly id: string
  readonly applies: (variable: Variable, value: string, production: boolean) => boolean
  readonly cause: string
  readonly fix: string | ((variable: Variable) => string)
}

const exposes = (id: Exposure): Pick<ValueWarning, 'id' | 'applies'> => ({
  id,
  applies: ({ kind }, value, production) => {
    const { exposure }: KindOfValue = KINDS[kind]
    return exposure?.id === id && (production || id === 'trusts-everybody') && exposure.in(value)
  },
})

const isExposed = ({ name }: Variable, value: string) => name.startsWith('NEXT_PUBLIC_') && looksSecret(value)
/** The mode of the provider whose keys begin like this one; undefined where the beginning says nothing. */
const modeOf = (variable: Variable, value: string) => {
  const { prefixes } = variable
  if (prefixes === undefined || isExposed(variable, value)) return undefined
  const [live, test] = [prefixes.live, prefixes.test].map((all) => all.some((one) => value.startsWith(one)))
  return live && test ? undefined : live ? 'live' : test ? 'test' : 'none'
}

const WARNINGS: readonly ValueWarning[] = [
  {
    ...exposes('trusts-everybody'),
    cause: 'trusts every address, so every client can choose the address that limits count it by',
    fix: 'Name the addresses or ranges of your own proxies.',
  },
  {
    ...exposes('plain-http'),
    cause:
      'is an http:// address and DEPLOY_ENVIRONMENT is production: what travels there can be read and changed',
    fix: 'Use the https:// address.',
  },
  {
    ...exposes('store-without-tls'),
    cause:
      'connects without TLS and DEPLOY_ENVIRONMENT is production: addresses and the password can be read on the way',
    fix: 'Add ?sslmode=verify-full (or require) to the address.',
  },
  {
    id: 'public-secret',
    applies: isExposed,
    cause: 'holds a secret key, and every browser can read it',
    fix: 'Revoke that key at the provider and set the publishable one here.',
  },
  {
    id: 'wrong-prefix',
    applies: (variable, value) => modeOf(variable, value) === 'none',
    cause: 'does not start as keys of its kind do',
    fix: ({ prefixes: { live, test } = { live: [], test: [] } }) =>
      `Check that it is the right key: it should start with ${[...new Set([...live, ...test])].join(', ')}.`,
  },
  {
    id: 'test-key-in-production',
    applies: (variable, value, production) => production && modeOf(variable, value) === 'test',
    cause: 'is a test key and DEPLOY_ENVIRONMENT is production',
    fix: 'Set the live key.',
  },
  {
    id: 'live-key-outside-production',
    applies: (variable, value, production) => !production && modeOf(variable, value) === 'live',
    cause: 'is a live key and DEPLOY_ENVIRONMENT is not production',
    fix: 'Set the test key, or set DEPLOY_ENVIRONMENT=production.',
  },
  {
    id: 'weak-secret',
    applies: ({ chosen }, value) =>
      chosen === true && (value.length < SHORTEST_SECRET || new Set(value).size < 6),
    cause: 'is too short or too regular to resist guessing',
    fix: 'Make a new one, for example with: openssl rand -base64 32',
  },
  {
    id: 'weak-secret',
    applies: ({ kind }, value) => kind === 'secret' && value.length < SHORTEST_KEY,
    cause: 'is too short to resist guessing',
    fix: 'Check that the whole key was copied, or ask the provider for a new one.',
  },
]

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
    if (PLACEHOLDER.test(one)) {
      const malformed = expected === undefined ? '' : `, which is malformed${effect}`
      const cause = `${name} holds a placeholder${malformed}.`
      return [{ id: 'placeholder-value', severity, cause, fix: 'Set the real value, or remove the line.' }]
    }
    const warnings = WARNINGS.filter(
      ({ id, applies }) =>
        (expected === undefined || id === 'public-secret') && applies(variable, one, production),
    ).map(
      ({ id, cause, fix }): ValueFinding => ({
        id,
        severity: 'warning',
        cause: `${name} ${cause}.`,
        fix: typeof fix === 'string' ? fix : fix(variable),
      }),
    )
    if (expected === undefined) return warnings
    const cause = `${name} is malformed${effect}.`
    return [{ id: 'malformed-value', severity, cause, fix: `Set it to ${expected}.` }, ...warnings]
  })
  return found.filter(({ id }, at) => found.findIndex((other) => other.id === id) === at)
}
