import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/env/read-settings.ts'
import type { Environment } from '../../../src/core/env/settings.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { brokenRules, GROUP_VARIABLES } from './oracle.ts'

const read = (env: Environment) => readSettings(learning, env)

const WHOLE = {
  datastore: {
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-store',
    DATASTORE_SERVICE_ROLE_KEY: 'service-role-key',
    DATASTORE_JWT_SECRET: 'jwt-secret-of-thirty-two-bytes-ok',
    DATASTORE_JWKS_URL: 'https://data.example.com/keys',
  },
  payments: {
    PAYMENTS_SECRET_KEY: 'sk_test_of-some-length',
    NEXT_PUBLIC_PAYMENTS_PUBLISHABLE_KEY: 'pk_test_of-some-length',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_of-some-length',
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
    PAYMENTS_PRICE_TEAM_YEARLY: 'price_b',
  },
  sharedStore: {
    SHAREDSTORE_REST_URL: 'https://limits.example.com',
    SHAREDSTORE_REST_TOKEN: 'token-of-the-store',
  },
  mail: {
    MAILER_API_KEY: 'mailer-key-value',
    MAILER_FROM: 'Course <course@example.com>',
    MAILER_REPLY_TO: 'help@example.com',
    MAILER_API_URL: 'https://mail.example.com',
    MAILER_SMTP_URL: 'smtp://127.0.0.1:2525',
  },
  errortrack: {
    NEXT_PUBLIC_ERRORTRACK_DSN: 'https://key@errors.example.com/1',
    ERRORTRACK_AUTH_TOKEN: 'auth-token-value',
  },
} as const

/** The groups whose settings are used whole or not at all, and what switches each on. */
const KEYS = {
  datastore: ['NEXT_PUBLIC_DATASTORE_URL'],
  payments: ['PAYMENTS_SECRET_KEY'],
  sharedStore: ['SHAREDSTORE_REST_URL'],
  mail: ['MAILER_API_KEY'],
  errortrack: ['NEXT_PUBLIC_ERRORTRACK_DSN'],
} as const

test.each(Object.keys(WHOLE) as (keyof typeof WHOLE)[])(
  'no subset of the group %s that breaks a rule is used, and every other one with its key is',
  (group) => {
    const entries = Object.entries(WHOLE[group])
    for (let subset = 0; subset < 2 ** entries.length; subset += 1) {
      const present = entries.filter((_, bit) => subset & (1 << bit))
      const names = present.map(([name]) => name)
      const broken = brokenRules(new Set(names)).length > 0
      const used = read(Object.fromEntries(present))[group] !== undefined
      const keyed = KEYS[group].every((name) => names.includes(name))
      expect(used, names.join(' ')).toBe(!broken && keyed)
    }
  },
)

test('a malformed half of a pair behaves as absent: the other half alone is not used', () => {
  expect(read({ ...WHOLE.sharedStore, SHAREDSTORE_REST_URL: 'nowhere' }).sharedStore).toBeUndefined()
  const { MAILER_SMTP_URL, ...mail } = WHOLE.mail
  expect(read(mail).mail?.route.kind).toBe('api')
  expect(read({ ...mail, MAILER_FROM: 'nobody' }).mail).toBeUndefined()
  expect(read({ ...mail, MAILER_REPLY_TO: 'nobody' }).mail).toMatchObject({ replyTo: undefined })
})

test('a table of analytics without a persistent store is not used', () => {
  expect(read({ ANALYTICS_DATASTORE_TABLE: 'events' }).analytics.table).toBeUndefined()
  expect(read({ ANALYTICS_DATASTORE_TABLE: 'events', STORE_URL: 'sqlite:./a.sqlite' }).analytics.table).toBe(
    'events',
  )
})

test('a wildcard among the origins leaves the localhost default, and none of the others is used', () => {
  expect(read({ CORS_ALLOWED_ORIGINS: 'https://a.example,*' }).site.corsOrigins).toBeUndefined()
  expect(read({ CORS_ALLOWED_ORIGINS: 'https://a.example, https://b.example' }).site.corsOrigins).toEqual([
    'https://a.example',
    'https://b.example',
  ])
})

test('an empty environment has the documented defaults', () => {
  const MB = 1024 * 1024
  expect(read({})).toMatchObject({
    site: {
      siteUrl: 'http://localhost:3000',
      logLevel: 'info',
      trustProxy: [],
      corsOrigins: undefined,
      buildStamp: undefined,
    },
    store: { address: undefined, poolSize: 10, jobStore: undefined },
    dispatch: { secret: undefined, limit: 100 },
    linkSecret: undefined,
    health: { deepToken: undefined },
    limits: { perMinute: undefined },
    identity: { audience: undefined, issuer: undefined },
    budgets: {
      analyticsTotalBytes: 4096 * MB,
      analyticsDailyBytes: 64 * MB,
      confirmationsPerDay: 10_000,
      bodyBytesInFlight: 16 * MB,
    },
  })
})

test.each(
  learning.contract.variables.flatMap(({ name, range }) =>
    range !== undefined && Number.isInteger(range[0]) ? [[name, range[0], range[1]] as const] : [],
  ),
)('%s may be %i to %i, and beyond that is absent', (name, low, high) => {
  const used = (value: number) => read({ [name]: String(value) }).value(name)
  expect([used(low), used(high)]).toEqual([String(low), String(high)])
  expect([used(low - 1), used(high + 1)]).toEqual([undefined, undefined])
})

test('a value of the budgets is what the budget is', () => {
  const MB = 1024 * 1024
  const env = {
    ANALYTICS_TOTAL_MB: '100',
    ANALYTICS_DAILY_MB: '10',
    EMAIL_CONFIRMATIONS_PER_DAY: '7',
    BODY_MEMORY_MB: '32',
  }
  expect(read(env).budgets).toEqual({
    analyticsTotalBytes: 100 * MB,
    analyticsDailyBytes: 10 * MB,
    confirmationsPerDay: 7,
    bodyBytesInFlight: 32 * MB,
  })
})

test('a health token that is malformed shuts the gate: it is not absent, and nothing opens it', () => {
  const { deepToken } = read({ HEALTH_DEEP_TOKEN: 'abc' }).health
  expect(deepToken).toBeDefined()
  expect(deepToken?.accepted).toEqual([])
  expect(read({ HEALTH_DEEP_TOKEN: 'a-token-of-some-length' }).health.deepToken?.accepted).toHaveLength(1)
})

test('prices are the configured ones, by plan', () => {
  const { DATASTORE_JWT_SECRET, ...rest } = WHOLE.datastore
  expect(read(WHOLE.payments).payments?.prices).toEqual({
    'pro-monthly': 'price_a',
    'team-yearly': 'price_b',
  })
  expect(read(rest).datastore?.tokens).toEqual({ kind: 'jwks', url: 'https://data.example.com/keys' })
  expect(DATASTORE_JWT_SECRET).toBeDefined()
})

test('the oracle names every variable of these groups', () => {
  for (const names of [GROUP_VARIABLES.datastore, GROUP_VARIABLES.sharedstore, GROUP_VARIABLES.errortrack])
    for (const name of names ?? [])
      expect(
        Object.values(WHOLE).some((group) => name in group),
        name,
      ).toBe(true)
})
