import { expect, test } from 'vitest'
import { type Environment, readSettings } from '../../../src/core/env/settings.ts'
import { resolvePlatform } from '../../../src/platform/resolve.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { brokenRules, subsetsOf } from './oracle.ts'

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
  datastore: 'NEXT_PUBLIC_DATASTORE_URL',
  payments: 'PAYMENTS_SECRET_KEY',
  sharedStore: 'SHAREDSTORE_REST_URL',
  mail: 'MAILER_FROM',
  errortrack: 'NEXT_PUBLIC_ERRORTRACK_DSN',
} as const

test.each(Object.keys(WHOLE) as (keyof typeof WHOLE)[])(
  'no subset of the group %s that breaks a rule is used, and every other one with its key is',
  (group) => {
    const values: Environment = WHOLE[group]
    for (const names of subsetsOf(Object.keys(values))) {
      const broken = brokenRules(new Set(names)).length > 0
      const used = read(Object.fromEntries(names.map((name) => [name, values[name]])))[group] !== undefined
      expect(used, names.join(' ')).toBe(!broken && names.includes(KEYS[group]))
    }
  },
)

/** Settings with their secrets revealed, as plain values. */
function plain(value: unknown): unknown {
  if (isSecret(value)) return value.reveal()
  if (value instanceof Map) return Object.fromEntries(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}

const isSecret = (value: unknown): value is { reveal(): string } =>
  typeof value === 'object' && value !== null && 'reveal' in value && typeof value.reveal === 'function'
const MB = 1024 * 1024
const pair = (current: string) => ({ current, accepted: [current] })

test('every value of a whole environment is read into its place', () => {
  const { DATASTORE_JWKS_URL: _keys, ...datastore } = WHOLE.datastore
  const { MAILER_API_URL: _api, ...mail } = WHOLE.mail
  const settings = read({
    ...datastore,
    ...WHOLE.payments,
    ...WHOLE.sharedStore,
    ...mail,
    ...WHOLE.errortrack,
    NEXT_PUBLIC_SITE_URL: 'https://www.example.com/',
    BUILD_STAMP: 'build-1',
    LOG_LEVEL: 'WARN',
    TRUST_PROXY: '10.0.0.0/8, 127.0.0.1',
    DEPLOY_ENVIRONMENT: ' staging ',
    CORS_ALLOWED_ORIGINS: 'https://a.example',
    STORE_URL: 'postgres://u:p@db.example/platform',
    STORE_POOL_SIZE: '7',
    JOB_STORE_URL: 'sqlite:./jobs.sqlite',
    PAYMENTS_API_URL: 'https://pay.example.com/',
    MAILER_BOUNCE_ADDRESS: 'bounce@example.com',
    MAILER_RATE: '12',
    ALERT_WEBHOOK_URL: 'https://ops.example.com/alerts',
    ALERT_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ALERT_EMAIL_TO: 'ops@example.com',
    HEARTBEAT_PING_URL: 'https://hc.example.com/ping',
    EMAIL_DISPATCH_SECRET: 'dispatch-secret-of-length',
    EMAIL_DISPATCH_LIMIT: '50',
    EMAIL_LINK_SECRET: 'link-secret-of-some-length',
    ANALYTICS_DATASTORE_TABLE: 'events',
    HEALTH_DEEP_TOKEN: 'deep-token-of-some-length',
    RATE_LIMIT_PER_MINUTE: '9',
    DATASTORE_JWT_AUDIENCE: 'authenticated',
    DATASTORE_JWT_ISSUER: 'https://data.example.com/auth',
    ANALYTICS_TOTAL_MB: '100',
    ANALYTICS_DAILY_MB: '10',
    EMAIL_CONFIRMATIONS_PER_DAY: '7',
    BODY_MEMORY_MB: '32',
  })
  expect(settings.broken).toEqual([])
  const {
    value: _value,
    secretValues: _secretValues,
    groups,
    addresses: _addresses,
    lacking: _lacking,
    broken: _broken,
    ...rest
  } = settings
  expect(new Set([...groups.values()])).toEqual(new Set(['configured', 'absent']))
  expect(plain(rest)).toEqual({
    site: {
      siteUrl: 'https://www.example.com',
      buildStamp: 'build-1',
      logLevel: 'warn',
      trustProxy: ['10.0.0.0/8', '127.0.0.1'],
      environment: 'staging',
      corsOrigins: ['https://a.example'],
    },
    store: {
      address: { kind: 'postgres', url: 'postgres://u:p@db.example/platform' },
      poolSize: 7,
      jobStore: { kind: 'sqlite', file: './jobs.sqlite' },
      malformed: [],
    },
    datastore: {
      url: 'https://data.example.com',
      anonKey: 'anon-key-of-the-store',
      serviceRoleKey: 'service-role-key',
      tokens: { kind: 'secret', secret: pair('jwt-secret-of-thirty-two-bytes-ok') },
    },
    payments: {
      secretKey: 'sk_test_of-some-length',
      webhookSecret: pair('whsec_of-some-length'),
      publishableKey: 'pk_test_of-some-length',
      apiUrl: 'https://pay.example.com',
      prices: { 'pro-monthly': 'price_a', 'team-yearly': 'price_b' },
    },
    sharedStore: { url: 'https://limits.example.com', token: 'token-of-the-store' },
    mail: {
      key: 'mailer-key-value',
      from: { name: 'Course', address: 'course@example.com' },
      route: { kind: 'smtp', url: 'smtp://127.0.0.1:2525' },
      replyTo: { name: undefined, address: 'help@example.com' },
      bounceAddress: 'bounce@example.com',
      dkim: undefined,
    },
    sender: {
      from: { name: 'Course', address: 'course@example.com' },
      replyTo: { name: undefined, address: 'help@example.com' },
    },
    alerts: {
      webhook: {
        url: 'https://ops.example.com/alerts',
        secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      },
      mailTo: { name: undefined, address: 'ops@example.com' },
    },
    heartbeatPing: 'https://hc.example.com/ping',
    feedback: undefined,
    mailRate: 12,
    dispatch: { secret: pair('dispatch-secret-of-length'), limit: 50 },
    linkKeys: ['link-secret-of-some-length'],
    areLinksInDoubt: false,
    errortrack: { dsn: 'https://key@errors.example.com/1' },
    analytics: { table: 'events' },
    health: { deepToken: pair('deep-token-of-some-length') },
    limits: { perMinute: 9 },
    identity: { audience: 'authenticated', issuer: 'https://data.example.com/auth' },
    budgets: {
      analyticsTotalBytes: 100 * MB,
      analyticsDailyBytes: 10 * MB,
      confirmationsPerDay: 7,
      bodyBytesInFlight: 32 * MB,
    },
  })
})

test('both variables of an exclusive pair are read', () => {
  const { DATASTORE_JWT_SECRET: _secret, ...datastore } = WHOLE.datastore
  const { MAILER_SMTP_URL: _smtp, ...mail } = WHOLE.mail
  const { datastore: keys, mail: sender, payments } = read({ ...datastore, ...mail, ...WHOLE.payments })
  expect(keys?.tokens).toEqual({ kind: 'jwks', url: 'https://data.example.com/keys' })
  expect(sender?.route).toEqual({ kind: 'api', url: 'https://mail.example.com' })
  expect(payments?.apiUrl).toBe('https://api.stripe.com')
  const { MAILER_API_URL: _api, ...known } = mail
  for (const [MAILER_PROVIDER, url] of [
    ['resend', 'https://api.resend.com/emails'],
    ['postmark', 'https://api.postmarkapp.com/email'],
  ]) {
    const provider = { kind: 'api', provider: MAILER_PROVIDER }
    expect(read({ ...known, MAILER_PROVIDER }).mail?.route).toEqual({ ...provider, url })
    const own = { ...provider, url: 'https://mail.example.com' }
    expect(read({ ...mail, MAILER_PROVIDER }).mail?.route).toEqual(own)
  }
  const { DATASTORE_JWKS_URL: _url, ...none } = datastore
  expect(read(none).datastore?.tokens).toBeUndefined()
})

test.each([
  ['debug', 'debug'],
  ['Error', 'error'],
  ['trace', 'info'],
])('the level %s of the log is %s', (given, level) => {
  expect(read({ LOG_LEVEL: given }).site.logLevel).toBe(level)
})

test('a malformed half of a pair behaves as absent: the other half alone is not used', () => {
  expect(read({ ...WHOLE.sharedStore, SHAREDSTORE_REST_URL: 'nowhere' }).sharedStore).toBeUndefined()
  const { MAILER_SMTP_URL, ...mail } = WHOLE.mail
  expect(read(mail).mail?.route.kind).toBe('api')
  expect(read({ ...mail, MAILER_FROM: 'nobody' }).mail).toBeUndefined()
  expect(read({ ...mail, MAILER_REPLY_TO: 'nobody' }).mail).toMatchObject({ replyTo: undefined })
})

test('a malformed price is not for sale', () => {
  const { payments } = read({ ...WHOLE.payments, PAYMENTS_PRICE_PRO_YEARLY: 'no id' })
  expect(payments?.prices).toEqual({ 'pro-monthly': 'price_a', 'team-yearly': 'price_b' })
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
  expect(read({})).toMatchObject({
    site: {
      siteUrl: 'http://localhost:3000',
      logLevel: 'info',
      trustProxy: [],
      corsOrigins: undefined,
      buildStamp: undefined,
    },
    store: { address: undefined, poolSize: 10, jobStore: undefined, malformed: [] },
    dispatch: { secret: undefined, limit: 100 },
    linkKeys: [],
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
  learning.contract.variables.flatMap(({ name, range, kind }) =>
    range !== undefined && Number.isInteger(range[0])
      ? [[name, range[0], range[1], kind === 'duration' ? 'ms' : ''] as const]
      : [],
  ),
)('%s may be %i to %i, and beyond that is absent', (name, low, high, unit) => {
  const used = (value: number) => read({ [name]: `${value}${unit}` }).value(name)
  expect([used(low), used(high)]).toEqual([`${low}${unit}`, `${high}${unit}`])
  expect([used(low - 1), used(high + 1)]).toEqual([undefined, undefined])
})

test('a malformed health token keeps the gate closed: it does not count as absent', () => {
  const { deepToken } = read({ HEALTH_DEEP_TOKEN: 'abc' }).health
  expect(deepToken).toBeDefined()
  expect(deepToken?.accepted).toEqual([])
  expect(read({ HEALTH_DEEP_TOKEN: 'a-token-of-some-length' }).health.deepToken?.accepted).toHaveLength(1)
})

test('a variable that is not set, or malformed where that is a warning, has its default, as programs read it', () => {
  const platform = resolvePlatform(
    {
      preset: 'base',
      services: {
        web: {},
        bookings: { address: ['BOOKINGS_URL', 'BOOKINGS_INTERNAL_URL'], format: 'status' },
      },
      groups: {
        bookings: {
          unlocks: 'a',
          absent: 'b',
          variables: {
            BOOKINGS_URL: { kind: 'url', default: 'http://bookings.internal:4000/', malformed: 'warn' },
            BOOKINGS_INTERNAL_URL: { kind: 'url' },
            BOOKINGS_REGION: { kind: 'text', default: 'eu' },
          },
        },
      },
    },
    { folder: '/' },
  )
  const addressIn = (env: Environment) => readSettings(platform, env).addresses.get('bookings')
  expect(addressIn({})).toBe('http://bookings.internal:4000')
  expect(addressIn({ BOOKINGS_URL: 'bookings' })).toBe('http://bookings.internal:4000')
  expect(addressIn({ BOOKINGS_URL: 'http://elsewhere.internal' })).toBe('http://elsewhere.internal')
  expect(addressIn({ BOOKINGS_INTERNAL_URL: 'http://inside.internal' })).toBe('http://inside.internal')
  expect(readSettings(platform, {}).value('BOOKINGS_REGION')).toBe('eu')
  expect(readSettings(platform, { BOOKINGS_REGION: 'us' }).value('BOOKINGS_REGION')).toBe('us')
})

test('a variable of one’s own with the name of one that was left out is not taken for the engine’s', () => {
  const variables = { RATE_LIMIT_PER_MINUTE: { kind: 'text' }, STORE_URL: { kind: 'host' } } as const
  const shop = { unlocks: 'a', absent: 'b', variables }
  const without = ['limits', 'store', 'analytics'] as const
  const platform = resolvePlatform({ preset: 'base', without, groups: { shop } }, { folder: '/' })
  for (const STORE_URL of ['shop.example', 'no host']) {
    const { limits, store, value } = readSettings(platform, { RATE_LIMIT_PER_MINUTE: 'many', STORE_URL })
    expect(value('RATE_LIMIT_PER_MINUTE')).toBe('many')
    expect([limits.perMinute, store.address, store.malformed]).toEqual([undefined, undefined, []])
  }
})

test('of a secret with two values each is kept out of outputs, and one that is malformed leaves links in doubt', () => {
  const env = { EMAIL_LINK_SECRET: 'link-secret-of-today, abc' }
  const { secretValues, areLinksInDoubt } = read(env)
  expect(secretValues).toEqual([env.EMAIL_LINK_SECRET, 'link-secret-of-today', 'abc'])
  expect(areLinksInDoubt).toBe(true)
})
