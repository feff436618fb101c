import { describe, expect, test } from 'vitest'
import { KINDS, VALUE_KINDS } from '../../src/core/env/kinds.ts'
import { readSettings } from '../../src/core/env/settings.ts'
import { validate } from '../../src/core/env/validate.ts'
import { parseWitnessSecrets } from '../../src/core/witness.ts'
import { announceEnvironment } from '../../src/daemon/announce.ts'
import { contractOf } from '../../src/platform/contract.ts'
import { learning } from '../../src/presets/learning/platform.ts'

const SECRETS = learning.contract.variables.filter(({ secret }) => secret)

/** What each secret is set beside, where its group needs more; and values that are of another kind, or cut off. */
const BESIDE: Readonly<Record<string, Record<string, string>>> = {
  DATASTORE_SERVICE_ROLE_KEY: {
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'an-anon-key',
  },
  SHAREDSTORE_REST_TOKEN: { SHAREDSTORE_REST_URL: 'https://limits.example.com' },
  MAILER_DKIM_KEY: { MAILER_DKIM_DOMAIN: 'example.com', MAILER_DKIM_SELECTOR: 's1' },
  MAILER_FEEDBACK_SECRET: { MAILER_FEEDBACK_PROVIDER: 'standard' },
  ALERT_WEBHOOK_SECRET: { ALERT_WEBHOOK_URL: 'https://alerts.example.com' },
  PAYMENTS_SECRET_KEY: {
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_of_some_length',
  },
  PAYMENTS_WEBHOOK_SECRET: {
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
    PAYMENTS_SECRET_KEY: 'sk_test_of_some_length',
  },
}
const WRONG: Readonly<Record<string, readonly string[]>> = {
  STORE_URL: ['postgres//typo', 'mysql://a@b.example/c', 'sqlite:', ':memory:'],
  JOB_STORE_URL: ['postgres//typo', 'postgres://a:p#w@b.example/c'],
  DATASTORE_SERVICE_ROLE_KEY: ['a key with spaces'],
  DATASTORE_JWT_SECRET: ['one-key-of-length,k'],
  PAYMENTS_SECRET_KEY: ['pk_test_publishable', 'whsec_of_a_webhook', 'sk_test_with a space'],
  PAYMENTS_WEBHOOK_SECRET: ['sk_test_of_the_api'],
  SHAREDSTORE_REST_TOKEN: ['a token with spaces', 'a-tökén-of-length'],
  MAILER_SMTP_URL: ['smtp.example.com:587', 'https://mail.example.com'],
  EMAIL_DISPATCH_SECRET: ['a secret with spaces', 'sécret-of-some-length'],
  HEALTH_DEEP_TOKEN: ['a token with spaces', 'a-first-one,a second'],
  MAILER_FEEDBACK_SECRET: ['whsec_', 'whsec_c2hvcnQ=', 'not base64 at all, not a key'],
  MAILER_DKIM_KEY: ['-----BEGIN PRIVATE KEY-----\\nMIIB\\n-----END PRIVATE KEY-----', 's1._domainkey'],
  ALERT_WEBHOOK_URL: ['hooks.slack.com/services/T', 'https://api.telegram.org/bot1:x/sendMessage'],
  ALERT_ESCALATION_URL: ['ftp://pager.example.com'],
  ALERT_WEBHOOK_SECRET: ['whsec_', 'whsec_c2hvcnQ='],
  HEARTBEAT_PING_URL: ['hc-ping.com/4a1f'],
  WITNESS_SECRET: ['berlin:too-short', 'a-secret-of-24-characters,a-second-of-24-characters'],
}

test.each([
  ['a-secret-of-24-characters', true],
  ['abcdefghijklmnopqrstuvwx', true],
  ['vienna:abcdefghijklmnopqrstuvw', false],
  ['vienna:a-secret-of-24-characters', true],
  ['vienna:a-secret-of-24-characters, berlin:a-second-of-24-characters', true],
  ['vienna:a-secret-of-24-characters,vienna-2:a-second-of-24-characters', true],
  ['a-secret-of-24-characters,berlin:a-second-of-24-characters', false],
  ['vienna:a-secret-of-24-characters,vienna:a-second-of-24-characters', false],
  ['vienna:a-secret-of-24-characters,b:a-second-of-24-characters, vienna:a-third-of-24-characters', false],
])('the secrets of witnesses that are taken are those that the platform can read: %s', (value, isRead) => {
  expect(parseWitnessSecrets(value) !== undefined).toBe(isRead)
  expect(outcome('WITNESS_SECRET', value).about.map(({ id }) => id)).toEqual(
    isRead ? [] : ['malformed-value'],
  )
})

/** What preflight finds about a variable, whether a start is refused for it, and whether its value is used. */
function outcome(name: string, value: string, platform = learning) {
  const env = { ...BESIDE[name], [name]: value }
  const { findings } = validate(platform.contract, env)
  const about = findings.filter(
    ({ severity, present, missing }) => severity !== 'notice' && [...present, ...missing].includes(name),
  )
  const logged: string[] = []
  const nothing = () => undefined
  const warn = (_: string, __: string, fields?: Record<string, unknown>) => logged.push(String(fields?.id))
  const log = { debug: nothing, info: nothing, warn, error: nothing }
  let refused = readSettings(platform, env).store.malformed.length > 0
  try {
    announceEnvironment({ platform, env, services: ['web', 'api', 'agent'], log })
  } catch {
    refused = true
  }
  const isLogged = about.length > 0 && about.every(({ id }) => logged.includes(id))
  return { about, refused, isLogged, isUsed: readSettings(platform, env).value(name) !== undefined }
}

describe.each(SECRETS.map(({ name }) => name))('%s', (name) => {
  test.each(['', ' ', '\t'])('that is empty (%j) is no secret at all', (value) => {
    expect(outcome(name, value).isUsed).toBe(false)
  })

  test('that is too short to be one is found by preflight and by a start', () => {
    const { about, refused, isLogged } = outcome(name, 'k')
    expect(about).not.toEqual([])
    expect(refused || isLogged).toBe(true)
  })

  test.each(['cut\u0007off-in-the-middle', 'with\na-line-of-its-own', ...(WRONG[name] ?? [])])(
    'that is malformed or of another kind (%j) is found by preflight and by a start, and no value is shown',
    (value) => {
      const { about, refused, isLogged } = outcome(name, value)
      expect(about).not.toEqual([])
      expect(refused || isLogged).toBe(true)
      // A short one is the beginning of what the fix names.
      if (value.length > 8) expect(JSON.stringify(about)).not.toContain(JSON.stringify(value).slice(1, -1))
    },
  )

  test('that holds a control character is never used', () => {
    expect(outcome(name, 'cut\u0007off-in-the-middle').isUsed).toBe(false)
  })

  test('that was left from an example is found', () => {
    expect(outcome(name, 'changeme').about).not.toEqual([])
  })
})

test('every key, secret and token is secret, and every address that holds one; and nothing else is', () => {
  const stores = ['STORE_URL', 'JOB_STORE_URL', 'MAILER_SMTP_URL']
  const hooks = ['ALERT_WEBHOOK_URL', 'ALERT_ESCALATION_URL', 'HEARTBEAT_PING_URL']
  for (const { name, secret } of learning.contract.variables) {
    const isKey = /^(?!NEXT_PUBLIC_).*_(?:KEY|SECRET|TOKEN)$/.test(name)
    expect(secret, name).toBe(isKey || [...stores, ...hooks].includes(name))
  }
})

test('secrets of a definition that are malformed are errors, whatever their kind', () => {
  const kinds = ['secret', 'pem', 'store-url', 'postgres-url', 'smtp-url'] as const
  expect(VALUE_KINDS.filter((kind) => 'secret' in KINDS[kind])).toEqual(kinds)
  for (const kind of kinds) {
    const variables = { OWN_SECRET: { kind } }
    const groups = { own: { unlocks: 'a', absent: 'b', variables } }
    const contract = contractOf({ preset: 'base', services: { web: {} }, groups })
    const { about, refused, isUsed } = outcome('OWN_SECRET', 'cut\u0007off', { ...learning, contract })
    expect(about.map(({ id, severity }) => [id, severity])).toEqual([['malformed-value', 'error']])
    expect([refused, isUsed]).toEqual([true, false])
  }
})
