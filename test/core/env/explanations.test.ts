import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LIVE_FINDINGS, WARNINGS } from '../../../src/core/env/explanations.ts'
import { portability } from '../../../src/core/env/portability.ts'
import { parseEnvFile } from '../../../src/core/env/reader.ts'
import { validate } from '../../../src/core/env/validate.ts'
import { contract, RULES, SERVICES, VARIABLES } from '../../support/learning.ts'

const EXPLAINED = new Set([
  ...RULES.map(({ id }) => id),
  ...Object.keys(WARNINGS),
  ...Object.keys(LIVE_FINDINGS),
])

function idsOf(text: string): string[] {
  const { assignments, findings } = parseEnvFile(contract, text, '.env')
  const env = Object.fromEntries(assignments.map(({ name, value }) => [name, value]))
  const surroundings = { production: true, isInstalled: () => false }
  return [
    ...findings,
    ...portability(contract, text, '.env', assignments),
    ...validate(contract, env, SERVICES, () => undefined, surroundings).findings,
  ].map(({ id }) => id)
}

test('every possible finding has an explanation', () => {
  const value = fc.constantFrom(
    '',
    'changeme',
    'x',
    '"open',
    "'a' b",
    '*',
    '7',
    'https://a.example',
    'sk_live_abc',
    'pk_test_abc',
    '$A',
    'a\\',
    'a@b.example',
  )
  const line = fc.oneof(
    fc
      .tuple(
        fc.constantFrom(...VARIABLES.map(({ name }) => name), 'MAILER_FORM', 'X'),
        fc.constantFrom('=', ' = ', ':', ''),
        value,
      )
      .map((parts) => parts.join('')),
    fc.string(),
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      for (const id of idsOf(lines.join('\n'))) expect(EXPLAINED).toContain(id)
    }),
    { numRuns: 500 },
  )
})

const LONG = 'a-secret-of-good-length-4711'
/** A file for each warning, so that every explanation belongs to a finding that can occur. */
const GIVES: Readonly<Record<string, string>> = {
  'malformed-value': 'RATE_LIMIT_PER_MINUTE=many',
  'placeholder-value': 'EMAIL_DISPATCH_SECRET=changeme',
  'wrong-prefix': 'PAYMENTS_SECRET_KEY=pk_live_abc',
  'test-key-in-production': `PAYMENTS_SECRET_KEY=sk_test_abc\nDEPLOY_ENVIRONMENT=production`,
  'live-key-outside-production': 'PAYMENTS_SECRET_KEY=sk_live_abc',
  'almost-production': 'DEPLOY_ENVIRONMENT=prod',
  'public-secret': 'NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY=sk_live_abc',
  'weak-secret': 'HEALTH_DEEP_TOKEN=short',
  'unknown-name': 'MAILER_FORM=a@example.com',
  'duplicate-name': `EMAIL_LINK_SECRET=${LONG}\nEMAIL_LINK_SECRET=${LONG}2`,
  'runtime-variable': 'NODE_OPTIONS=--no-warnings',
  'unreadable-line': 'what is this',
  'unterminated-quote': 'BUILD_STAMP="open',
  'unquoted-lines': 'X=-----BEGIN KEY-----\nabcd\n-----END KEY-----',
  'text-after-quote': "BUILD_STAMP='a' b",
  'reader-difference': 'BUILD_STAMP=$2b$10$abc',
  'refused-by-reader': 'BUILD_STAMP = a',
  'package-missing': 'NEXT_PUBLIC_ERRORTRACK_DSN=https://key@errors.example.com/1',
  'trusts-everybody': 'TRUST_PROXY=0.0.0.0/0',
  'plain-http': 'NEXT_PUBLIC_SITE_URL=http://www.example.com\nDEPLOY_ENVIRONMENT=production',
  'store-without-tls': 'STORE_URL=postgres://u@db.example/p\nDEPLOY_ENVIRONMENT=production',
  'token-claims-unchecked': `DATASTORE_JWT_SECRET=${LONG}`,
  'group-absent': '',
}

test.each(Object.entries(GIVES))('%s is given', (id, text) => {
  expect(idsOf(text)).toContain(id)
})

/** What `env verify` finds: test/cli/env-verify.test.ts. */
const RUNNING = [
  'definition',
  'differs',
  'extra',
  'file-changed',
  'missing',
  'replicas',
  'same',
  'unreached',
].map((what) => `configuration-${what}`)

test('every explanation belongs to a finding that can occur', () => {
  // Six are about several files or a definition: test/cli/secret-files.test.ts, test/e2e/env-files.test.ts,
  // test/cli/definition.test.ts and test/cli/which-platform.test.ts give them; three about the whole environment: test/core/env/alert-findings.test.ts.
  expect(Object.keys(WARNINGS).sort()).toEqual(
    [
      ...Object.keys(GIVES),
      'shadowed-value',
      'names-not-read',
      'required-missing',
      'no-definition',
      'secret-set-twice',
      'unreadable-secret-file',
      'no-alert-channel',
      'alert-mail-off',
      'alerts-by-mail-only',
      ...RUNNING,
    ].sort(),
  )
})
