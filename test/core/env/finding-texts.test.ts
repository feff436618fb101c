import { describe, expect, test } from 'vitest'
import { LIVE_FINDINGS, WARNINGS } from '../../../src/core/env/explanations.ts'
import { type DialectReadings, differenceIn } from '../../../src/core/env/portability.ts'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { validate } from '../../../src/core/env/validate.ts'
import type { Finding } from '../../../src/core/finding.ts'
import { and } from '../../../src/core/sentences.ts'
import { contract, RULES, SERVICES } from '../../support/learning.ts'

const EXPLAINED = new Set([
  ...RULES.map(({ id }) => id),
  ...Object.keys(WARNINGS),
  ...Object.keys(LIVE_FINDINGS),
])
const isOneSentence = (text: string) => !/[a-z)\d]\. [A-Z]/.test(text)

/** Two sentences for an operator, about variables that have names. */
function isWhole(finding: Finding): void {
  expect(finding.id).toMatch(/^[a-z][a-z0-9-]+$/)
  expect(EXPLAINED).toContain(finding.id)
  expect(['error', 'warning', 'notice']).toContain(finding.severity)
  expect(finding.cause, finding.id).toMatch(/^[A-Z•].*\.$/s)
  expect(finding.fix, finding.id).toMatch(/^[A-Z].*(?:[.?]|openssl rand -base64 32)$/s)
  for (const text of [finding.cause, finding.fix]) expect(text).toSatisfy(isOneSentence)
  expect(finding.services.length).toBeGreaterThan(0)
  expect(finding.group).toMatch(/^[a-z]+$/)
  for (const name of [...finding.present, ...finding.missing]) expect(name).toMatch(/^[A-Za-z_][\w.-]*$/)
}

test('explains each finding in sentences', () => {
  // Ids are stable: people filter by them.
  expect(Object.keys(LIVE_FINDINGS)).toEqual([
    'live-name',
    'live-name-server',
    'live-certificate',
    'live-certificate-expiring',
    'live-plain-text',
    'live-unreachable',
    'live-unauthorised',
    'live-unhealthy',
    'live-store',
    'store-of-another',
    'store-migration-pending',
    'store-schema-newer',
    'sender-spf',
    'sender-dkim',
    'sender-dmarc',
  ])
  for (const meaning of Object.values(WARNINGS)) expect(meaning).toMatch(/^[A-Z].{30,}\.$/)
  for (const { meaning, fix } of Object.values(LIVE_FINDINGS)) {
    expect(meaning).toMatch(/^[A-Z].{30,}\.$/)
    expect(fix).toMatch(/^[A-Z].{10,}$/)
    expect(fix).toSatisfy(isOneSentence)
  }
})

const PAYMENTS = {
  PAYMENTS_WEBHOOK_SECRET: 'whsec_a-secret-of-length',
  PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
}
const OF_ENVIRONMENTS: readonly [id: string, env: Record<string, string>, fix: RegExp][] = [
  ['malformed-value', { RATE_LIMIT_PER_MINUTE: 'many' }, /^Set it to a whole number/],
  ['malformed-value', { HEALTH_DEEP_TOKEN: 'a,b' }, /^Set it to /],
  ['placeholder-value', { EMAIL_DISPATCH_SECRET: 'changeme' }, /^Set the real value, or remove the line\.$/],
  [
    'wrong-prefix',
    { PAYMENTS_SECRET_KEY: 'pk_live_abcdef', ...PAYMENTS },
    /should start with sk_live_ or .*sk_test_/,
  ],
  [
    'test-key-in-production',
    { PAYMENTS_SECRET_KEY: 'sk_test_abcdef', DEPLOY_ENVIRONMENT: 'production' },
    /^Set the live key\.$/,
  ],
  [
    'test-key-in-production',
    { PAYMENTS_SECRET_KEY: 'rk_test_abcdef', DEPLOY_ENVIRONMENT: 'production' },
    /^Set the live key\.$/,
  ],
  [
    'test-key-in-production',
    { NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: 'pk_test_abcdef', DEPLOY_ENVIRONMENT: 'production' },
    /^Set the live key\.$/,
  ],
  ['wrong-prefix', { PAYMENTS_WEBHOOK_SECRET: 'sk_live_abcdef' }, /should start with whsec_\.$/],
  [
    'live-key-outside-production',
    { PAYMENTS_SECRET_KEY: 'rk_live_abcdef' },
    /DEPLOY_ENVIRONMENT=production\.$/,
  ],
  [
    'live-key-outside-production',
    { PAYMENTS_SECRET_KEY: 'sk_live_abcdef' },
    /DEPLOY_ENVIRONMENT=production\.$/,
  ],
  [
    'live-key-outside-production',
    { PAYMENTS_SECRET_KEY: 'sk_live_abcdef', DEPLOY_ENVIRONMENT: 'staging' },
    /^Set the test key/,
  ],
  ['almost-production', { DEPLOY_ENVIRONMENT: 'Production' }, /^Set DEPLOY_ENVIRONMENT=production\.$/],
  [
    'public-secret',
    { NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: 'sk_live_abcdef' },
    /^Revoke that key .*publishable one here\.$/,
  ],
  ['public-secret', { NEXT_PUBLIC_MY_OWN: 'sk_live_abcdef' }, /^Revoke that key .*NEXT_PUBLIC_ variable\.$/],
  ['weak-secret', { HEALTH_DEEP_TOKEN: 'short' }, /openssl rand/],
  ['weak-secret', { MODEL_A_API_KEY: 'k3y' }, /^Check that the whole key was copied/],
  ['unknown-name', { MAILER_FORM: 'a@example.com' }, /^Did you mean MAILER_FROM\?$/],
  [
    'unknown-name',
    { MAILER_FORM: 'a@example.com', MAILER_FROM: 'a@example.com' },
    /^Did you mean MAILER_FROM, which is set as well\? Then remove this one\.$/,
  ],
  ['trusts-everybody', { TRUST_PROXY: '0.0.0.0/2' }, /^Name the addresses or ranges/],
  [
    'plain-http',
    { NEXT_PUBLIC_SITE_URL: 'http://www.example.com', DEPLOY_ENVIRONMENT: 'production' },
    /https:\/\//,
  ],
  [
    'store-without-tls',
    { STORE_URL: 'postgres://u@db.example/p', DEPLOY_ENVIRONMENT: 'production' },
    /sslmode=verify-full/,
  ],
  [
    'token-claims-unchecked',
    { DATASTORE_JWT_SECRET: 'a-secret-of-good-length-4711' },
    /^Set DATASTORE_JWT_AUDIENCE and DATASTORE_JWT_ISSUER as/,
  ],
  [
    'localhost-links',
    {
      MAILER_SMTP_URL: 'smtps://mail.example.com',
      MAILER_FROM: 'a@example.com',
      DEPLOY_ENVIRONMENT: 'production',
    },
    /^Set NEXT_PUBLIC_SITE_URL to/,
  ],
  ['group-absent', {}, /^Nothing to do, unless you want /],
]
test.each(OF_ENVIRONMENTS)(
  '%s has its whole text and fix, at the line of its variable: %j',
  (id, env, fix) => {
    const origin = (name: string) => ({
      location: { file: '.env', line: name.length, column: 1 },
      excerpt: `${name}=`,
    })
    const { findings } = validate(contract, env, SERVICES, origin)
    findings.forEach(isWhole)
    const found = findings.filter((one) => one.id === id)
    expect(found.length).toBeGreaterThan(0)
    for (const one of found) {
      expect(one.fix).toMatch(fix)
      const [first] = one.present
      expect(one.location?.line).toBe(first?.length)
      expect(one.excerpt).toBe(first && `${first}=`)
    }
  },
)

test('errors stand before warnings, and warnings before notices', () => {
  const { findings, ok } = validate(contract, { ...PAYMENTS, RATE_LIMIT_PER_MINUTE: 'x', MODEL_A_MODEL: 'x' })
  expect(ok).toBe(false)
  const severities = findings.map(({ severity }) => severity)
  const ranked = ['error', 'warning', 'notice']
  expect(severities).toEqual([...severities].sort((a, b) => ranked.indexOf(a) - ranked.indexOf(b)))
  expect(new Set(severities).size).toBe(3)
  findings.forEach(isWhole)
})

test('a finding about several variables points to the first of them that a file sets', () => {
  const place = { location: { file: '.env', line: 7, column: 1 }, excerpt: 'PAYMENTS_WEBHOOK_SECRET=' }
  const inFile = (name: string) => (name === 'PAYMENTS_WEBHOOK_SECRET' ? place : undefined)
  const { findings } = validate(contract, PAYMENTS, SERVICES, inFile)
  const found = findings.find(({ id }) => id === 'payments-without-key')
  expect(found).toMatchObject({
    ...place,
    present: ['PAYMENTS_PRICE_PRO_MONTHLY', 'PAYMENTS_WEBHOOK_SECRET'],
  })
})

test('unchecked token claims are named until both audience and issuer are set', () => {
  const of = (env: Record<string, string>, services = SERVICES) =>
    validate(contract, { DATASTORE_JWT_SECRET: 'a-secret-of-good-length-4711', ...env }, services)
      .findings.filter(({ id }) => id === 'token-claims-unchecked')
      .map(({ cause, missing }) => ({ cause, missing }))
  const [audience, issuer] = ['DATASTORE_JWT_AUDIENCE', 'DATASTORE_JWT_ISSUER']
  expect(of({})).toEqual([
    { cause: 'Tokens are accepted whatever audience and issuer they name.', missing: [audience, issuer] },
  ])
  expect(of({ [issuer]: 'x' })).toEqual([
    { cause: 'Tokens are accepted whatever audience they name.', missing: [audience] },
  ])
  expect(of({ [audience]: 'x' })).toEqual([
    { cause: 'Tokens are accepted whatever issuer they name.', missing: [issuer] },
  ])
  expect(of({ [audience]: 'x', [issuer]: 'y' })).toEqual([])
  expect(of({}, ['api', 'agent'])).toEqual([])
})

test('reports a misspelled name to the services that read the right one, and a foreign name to none', () => {
  const of = (env: Record<string, string>, services = SERVICES) =>
    validate(contract, env, services).findings.filter(({ id }) => id === 'unknown-name')
  expect(of({ MAILER_FORM: 'x' })).toMatchObject([{ group: 'mail', services: ['web'] }])
  expect(of({ MAILER_FORM: 'x' }, ['api'])).toEqual([])
  expect(of({ MAILER_FORM: ' ' })).toEqual([])
  expect(of({ PATH: 'x', HOME: 'y' })).toEqual([])
  expect(of({ MAILER_API_KEY_FLE: 'x' })).toMatchObject([
    { group: 'mail', missing: ['MAILER_API_KEY_FILE'], fix: 'Did you mean MAILER_API_KEY_FILE?' },
  ])
})

const OF_FILES: readonly [text: string, id: string, line: number, rest: Partial<Finding>][] = [
  // The rest of a secret that was broken when it was pasted.
  ...['MY_API_TOKEN', 'A_KEY', 'SECRET_OF_MINE', 'db_password'].map(
    (name): [string, string, number, Partial<Finding>] => [
      `${name}=abcd\nEFGH=`,
      'unreadable-line',
      2,
      { present: [], excerpt: '••••' },
    ],
  ),
  ['\nwhat is this', 'unreadable-line', 2, { present: [], excerpt: '••••' }],
  [' MAILER_FROM: x', 'unreadable-line', 1, { present: ['MAILER_FROM'], excerpt: ' MAILER_FROM ••••' }],
  [
    'BUILD_STAMP="open',
    'unterminated-quote',
    1,
    { cause: 'The value of BUILD_STAMP opens a quote that nothing closes.' },
  ],
  ["BUILD_STAMP='a' b", 'text-after-quote', 1, { fix: 'Put the whole value in quotes, or remove the rest.' }],
  ["BUILD_STAMP='a\n' b", 'text-after-quote', 1, { fix: 'Close the quote on the line where it should end.' }],
  [
    'X=-----BEGIN KEY-----\nabcd\n-----END KEY-----',
    'unquoted-lines',
    1,
    { present: ['X'], excerpt: 'X=••••' },
  ],
  [
    'BUILD_STAMP=a\nX=1\nBUILD_STAMP=b',
    'duplicate-name',
    3,
    { cause: 'BUILD_STAMP is set again: line 1 of the same file is overridden.' },
  ],
  ['NODE_OPTIONS=--no-warnings', 'runtime-variable', 1, { severity: 'warning' }],
  [
    'export NODE_ENV=production',
    'runtime-variable',
    1,
    { severity: 'notice', excerpt: 'export NODE_ENV=••••' },
  ],
]
test.each(OF_FILES)('in a file, %j is the finding %s, with its line', (text, id, line, rest) => {
  const { findings } = parseEnvFile(contract, text, '.env')
  findings.forEach(isWhole)
  expect(findings).toMatchObject([
    {
      id,
      severity: 'warning',
      services: SERVICES,
      group: 'file',
      missing: [],
      ...rest,
      location: { file: '.env', line },
    },
  ])
})

test('every explanation belongs to a finding that can occur', () => {
  const running = [
    'definition',
    'differs',
    'extra',
    'file-changed',
    'missing',
    'replicas',
    'same',
    'unreached',
  ]
  const elsewhere = {
    'test/core/env/portability.test.ts': ['reader-difference', 'refused-by-reader'],
    'test/core/env/alert-findings.test.ts': ['no-alert-channel', 'alert-mail-off', 'alerts-by-mail-only'],
    'test/cli/secret-files.test.ts': ['secret-set-twice', 'unreadable-secret-file'],
    'test/cli/env-verify.test.ts': running.map((what) => `configuration-${what}`),
    'test/cli/definition.test.ts and its neighbors': ['names-not-read', 'required-missing', 'no-definition'],
    'test/e2e/env-files.test.ts': ['shadowed-value'],
    'below, of packages': ['package-missing'],
  }
  const found = [OF_ENVIRONMENTS.map(([id]) => id), OF_FILES.map(([, id]) => id), Object.values(elsewhere)]
  expect(new Set(Object.keys(WARNINGS))).toEqual(new Set(found.flat(2)))
})

test('a comment after a quoted value is no text after it', () => {
  expect(parseEnvFile(contract, "BUILD_STAMP='a' # b\nX='c'#d", '.env').findings).toEqual([])
})

test('a package that is needed but not installed is a finding of the services that need it', () => {
  const location = { file: '.env', line: 1, column: 1 }
  const found = (env: Record<string, string>, isInstalled = (_: string) => false) =>
    validate(contract, env, ['web'], () => ({ location, excerpt: 'x' }), {
      production: false,
      isInstalled,
    }).findings.filter(({ id }) => id === 'package-missing')
  const DSN = { NEXT_PUBLIC_ERRORTRACK_DSN: 'https://key@errors.example.com/1' }
  found(DSN).forEach(isWhole)
  expect(found(DSN)).toMatchObject([
    {
      severity: 'warning',
      services: ['web'],
      group: 'errortrack',
      present: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
      missing: [],
      fix: expect.stringContaining('npm install @sentry/node'),
      location,
    },
  ])
  expect(found(DSN, (name) => name === '@sentry/node')).toEqual([])
  expect(found({})).toEqual([])
})

describe('a difference between readers', () => {
  const see = (line: string, ...values: (string | undefined)[]) => {
    const readers = ['node', 'compose', 'systemd', 'docker'] as const
    const sight = values.map((value, index) => ({
      dialect: readers[index] ?? 'node',
      value,
    })) satisfies DialectReadings
    const found = differenceIn('X', line, sight)
    return found && `${found.cause} ${found.fix}`
  }

  test.each<[line: string, values: (string | undefined)[], told: string]>([
    [
      '\uFEFFX=a',
      ['a', undefined, 'a'],
      'compose takes the byte order mark before it as a part of the name. Save the file as UTF-8 without a byte order mark (BOM).',
    ],
    [
      'export X=a',
      ['a', 'a', undefined],
      'systemd skips lines that begin with export. Remove the word export.',
    ],
    ['X : a', ['a', 'a', undefined], 'systemd skips the line. Write it as NAME=value.'],
    [
      'X="a',
      ['a\nb', 'a\nb', '"a'],
      'systemd ends the value with its first line. Put the value on one line (a key with \\n for each line end, in double quotes), or in a file of its own.',
    ],
    [
      'X="a#b"',
      ['a#b', 'a#b', 'a#b', '"a#b"'],
      'docker keeps the quotes. No form suits all of these readers: set it outside the file, or choose a value that needs no quotes.',
    ],
    ['X=a#b', ['a#b', 'a', 'a#b'], 'compose cuts the value at the #. Put the value in single quotes.'],
    ['X=a#b', ['a', 'a', 'a#b'], 'systemd keeps what follows the #. Put the value in single quotes.'],
    [
      'X=a#b',
      ['a', 'a', 'a#b', 'a#b'],
      'systemd and docker keep what follows the #. No form suits all of these readers: set it outside the file, or choose a value without #.',
    ],
    [
      'X=$b',
      ['$b', '', '', '$b'],
      'compose and systemd replace what follows a dollar sign. No form suits all of these readers: set it outside the file, or choose a value without a dollar sign.',
    ],
    [
      'X=a\\b',
      ['a\\b', 'ab', 'a\\b'],
      'compose reads the backslash differently. Put the value in single quotes.',
    ],
    [
      'X=a',
      ['a', 'b', 'a'],
      'compose reads the line differently. Write it as NAME=value; see platformctl env dialects.',
    ],
    ['X=', ['', 'a', ''], 'compose reads the line differently.'],
    ['X=a', [undefined, 'a', undefined], 'compose reads the line differently.'],
    ['X=a', [undefined, '"a"', undefined], 'compose keeps the quotes.'],
  ])('on %j, read as %j, is told by what the reader does', (line, values, told) => {
    expect(see(line, ...values)).toContain(`X depends on the reader: ${told}`)
  })

  test('is none where all see the same, or nothing', () => {
    expect(see('X=a', 'a', 'a')).toBeUndefined()
    expect(see('X=', '', undefined)).toBeUndefined()
    expect(see('X=a')).toBeUndefined()
  })

  test('prefers the first reader of two equal parts, and lists words as in a sentence', () => {
    expect(see('X=a', 'a', 'b')).toContain('compose reads')
    expect([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map(and)).toEqual(['', 'a', 'a and b', 'a, b and c'])
  })
})
