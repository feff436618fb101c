import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/env/settings.ts'
import { validate } from '../../../src/core/env/validate.ts'
import { contractOf } from '../../../src/platform/contract.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { contract, SERVICES } from '../../support/learning.ts'
import { brokenRules, GROUP_VARIABLES, subsetsOf } from './oracle.ts'

/** A well-formed value for each variable, so that only presence decides. */
const VALUES: Record<string, string> = {
  STORE_URL: 'sqlite:./platform.sqlite',
  JOB_STORE_URL: 'postgres://jobs@db.example/jobs',
  STORE_POOL_SIZE: '10',
  MAILER_SMTP_URL: 'smtp://127.0.0.1:2525',
  MAILER_FROM: 'Course <course@example.com>',
  MAILER_PROVIDER: 'resend',
  MAILER_REPLY_TO: 'help@example.com',
  MAILER_FEEDBACK_PROVIDER: 'postmark',
  ALERT_WEBHOOK_FORMAT: 'slack',
  ALERT_ESCALATION_AFTER: '20m',
  ALERT_EMAIL_TO: 'ops@example.com',
  MAILER_RATE: '14',
  MAILER_DKIM_DOMAIN: 'example.com',
  MAILER_DKIM_KEY: String(
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
  ),
  MAILER_BOUNCE_ADDRESS: 'bounce@example.com',
  EMAIL_DISPATCH_LIMIT: '50',
  RATE_LIMIT_PER_MINUTE: '60',
  ANALYTICS_TOTAL_MB: '100',
  ANALYTICS_DAILY_MB: '10',
  EMAIL_CONFIRMATIONS_PER_DAY: '100',
  BODY_MEMORY_MB: '32',
  CORS_ALLOWED_ORIGINS: 'https://www.example.com',
  TRUST_PROXY: '10.0.0.0/8',
  LOG_LEVEL: 'warn',
  ANALYTICS_DATASTORE_TABLE: 'events',
  NEXT_PUBLIC_ERRORTRACK_DSN: 'https://key@errors.example.com/1',
}
const sampleOf = (name: string) =>
  VALUES[name] ??
  (/_(URL|ENDPOINT)$/.test(name) ? 'https://service.example.com' : `value_of_${name.toLowerCase()}`)

const errorIds = (env: Record<string, string>) =>
  validate(contract, env)
    .findings.filter((finding) => finding.severity === 'error')
    .map((finding) => finding.id)
    .sort()

test('each variable of the default platform is read by the services that its table names, and the others by web', () => {
  const readers = Map.groupBy(contract.variables, ({ services }) => services.join(', '))
  const names = [...readers].map(([services, of]) => [services, of.map(({ name }) => name).join(' ')])
  expect(Object.fromEntries(names)).toEqual({
    'web, api, agent': [
      'BUILD_STAMP LOG_LEVEL TRUST_PROXY DEPLOY_ENVIRONMENT CORS_ALLOWED_ORIGINS STORE_URL STORE_POOL_SIZE',
      'NEXT_PUBLIC_ERRORTRACK_DSN ERRORTRACK_AUTH_TOKEN BODY_MEMORY_MB ALERT_WEBHOOK_URL ALERT_WEBHOOK_FORMAT',
      'ALERT_WEBHOOK_SECRET ALERT_ESCALATION_URL ALERT_ESCALATION_AFTER ALERT_EMAIL_TO',
    ].join(' '),
    'web, agent': [
      'API_URL MODEL_A_API_KEY MODEL_A_MODEL MODEL_B_API_KEY MODEL_B_MODEL MODEL_C_API_KEY MODEL_C_MODEL',
      'CLOUDMODEL_API_KEY CLOUDMODEL_API_ENDPOINT CLOUDMODEL_API_DEPLOYMENT CLOUDMODEL_API_VERSION',
    ].join(' '),
    api: expect.stringMatching(/^JOB_STORE_URL HARDWARE_A_TOKEN (?:\w+ ){11}CLOUDQPU_CLIENT_SECRET$/),
    'web, api': 'SHAREDSTORE_REST_URL SHAREDSTORE_REST_TOKEN RATE_LIMIT_PER_MINUTE',
    agent: 'COURSE_INDEX_PATH',
    web: expect.any(String),
  })
})

test.each([
  [
    'leave their group absent if set alone',
    'adjusts',
    `BUILD_STAMP LOG_LEVEL TRUST_PROXY DEPLOY_ENVIRONMENT STORE_POOL_SIZE JOB_STORE_URL PAYMENTS_API_URL
    EMAIL_DISPATCH_SECRET EMAIL_DISPATCH_LIMIT EMAIL_LINK_SECRET MAILER_RATE MAILER_BOUNCE_ADDRESS
    ALERT_WEBHOOK_FORMAT ALERT_ESCALATION_AFTER`,
  ],
  [
    'hold a secret of your own, whose strength is checked',
    'chosen',
    `DATASTORE_JWT_SECRET EMAIL_DISPATCH_SECRET EMAIL_LINK_SECRET HEALTH_DEEP_TOKEN ALERT_WEBHOOK_SECRET
    WITNESS_SECRET`,
  ],
  [
    'take a second value while they are rotated',
    'rotates',
    `DATASTORE_JWT_SECRET PAYMENTS_WEBHOOK_SECRET EMAIL_DISPATCH_SECRET EMAIL_LINK_SECRET HEALTH_DEEP_TOKEN
    MAILER_FEEDBACK_SECRET`,
  ],
  [
    'are sent as bearer tokens',
    'bearer',
    `DATASTORE_SERVICE_ROLE_KEY PAYMENTS_SECRET_KEY SHAREDSTORE_REST_TOKEN EMAIL_DISPATCH_SECRET
    HEALTH_DEEP_TOKEN`,
  ],
  [
    'are addresses that paths are put behind',
    'base',
    'NEXT_PUBLIC_SITE_URL NEXT_PUBLIC_API_URL NEXT_PUBLIC_AGENT_URL API_URL AGENT_URL',
  ],
  ['may differ between replicas', 'perReplica', 'BUILD_STAMP'],
] as const)('the variables of the default platform that %s are named here', (_, flag, names) => {
  expect(contract.variables.flatMap((one) => (one[flag] ? one.name : []))).toEqual(names.split(/\s+/))
})

test.each(Object.entries(GROUP_VARIABLES))(
  'every subset of the group %s breaks exactly the rules that the oracle names',
  (_, names) => {
    for (const present of subsetsOf(names)) {
      const env = Object.fromEntries(present.map((name) => [name, sampleOf(name)]))
      expect(errorIds(env), present.join(' ')).toEqual(brokenRules(new Set(present)).sort())
    }
  },
)

test.each([{}, ...SERVICES.map((service) => ({ service }))])(
  'an empty environment passes without a warning %o',
  ({ service }: { service?: (typeof SERVICES)[number] }) => {
    const report = validate(contract, {}, service ? [service] : SERVICES)
    expect(report.ok).toBe(true)
    expect(report.findings.filter(({ severity }) => severity !== 'notice')).toEqual([])
  },
)

test('unset, empty and white space mean the same', () => {
  for (const blank of ['', ' ', '\t \n']) {
    expect(validate(contract, { SHAREDSTORE_REST_TOKEN: blank, MAILER_FROM: blank })).toEqual(
      validate(contract, {}),
    )
  }
})

test('a bad value behaves as absent and hides no error of its group', () => {
  const report = validate(contract, {
    NEXT_PUBLIC_DATASTORE_URL: 'not an address',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon_key_value',
  })
  expect(report.findings.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['datastore-pair', 'malformed-value']),
  )
})

test('a wildcard anywhere among the origins is an error, and only one finding', () => {
  for (const value of ['*', 'https://a.example,*', 'https://*.example.com']) {
    for (const service of ['web', 'api', 'agent']) {
      const report = validate(contract, { CORS_ALLOWED_ORIGINS: value }, [service])
      const ids = report.findings.filter(({ severity }) => severity !== 'notice').map(({ id }) => id)
      expect(ids, service).toEqual(['cors-wildcard'])
    }
  }
})

const [KEY, FROM] = [{ MAILER_API_KEY: 'AKIDEXAMPLE:value/of/secret' }, { MAILER_FROM: 'a@example.com' }]
const SES = { MAILER_API_URL: 'https://email.eu-central-1.amazonaws.com' }
const relay = (url: string) => ({ MAILER_SMTP_URL: url })
const of = (provider: string) => ({ MAILER_PROVIDER: provider })

test.each<[errors: string[], env: Record<string, string>]>([
  [[], { ...relay('smtp://relay.example.com'), ...FROM, ...KEY }],
  [[], { ...relay('smtp://user@relay.example.com'), ...FROM, ...KEY }],
  [[], { ...relay('smtp://relay.example.com/?a=b@c'), ...FROM, ...of('smtp') }],
  [['mail-without-key'], { ...relay('smtp://user@relay.example.com'), ...FROM }],
  [['mail-without-key'], { ...relay('SMTPS://user:pass@relay.example.com'), ...FROM }],
  [['mail-without-key'], { ...FROM, ...SES }],
  [[], { ...KEY, ...FROM, ...of('postmark') }],
  [[], { ...KEY, ...FROM, ...SES, ...of('ses') }],
  [[], { ...KEY, ...FROM, ...SES, ...of('postmark') }],
  [['mail-without-key'], { ...of('postmark'), ...FROM }],
  [['mail-without-sender'], { ...of('postmark'), ...KEY }],
  [['mail-provider-without-region'], { ...KEY, ...FROM, ...of('ses') }],
  [['mail-ses-key'], { MAILER_API_KEY: 'AKIDEXAMPLE', ...FROM, ...SES, ...of('ses') }],
  [['mail-provider-without-server'], { ...KEY, ...FROM, ...SES, ...of('smtp') }],
  [
    ['mail-provider-other-server'],
    { ...relay('smtp://relay.example.com'), ...KEY, ...FROM, ...of('postmark') },
  ],
])('mail: %j for %j', (errors, env) => {
  expect(errorIds(env)).toEqual(errors)
  const { mail } = readSettings(learning, env)
  expect(mail === undefined).toBe(errors.length > 0)
})

test('reports to a service only findings about variables that it reads', () => {
  const env = {
    SHAREDSTORE_REST_URL: 'https://limits.example.com',
    MAILER_FROM: 'a@example.com',
    HARDWARE_A_TOKEN: 'token_value',
  }
  const ids = (service: 'web' | 'api' | 'agent') =>
    validate(contract, env, [service])
      .findings.filter(({ severity }) => severity === 'error')
      .map(({ id }) => id)
  expect(ids('web')).toEqual(['sharedstore-pair', 'mail-without-key'])
  expect(ids('api')).toEqual(['hardware-a-pair', 'sharedstore-pair'])
  expect(ids('agent')).toEqual([])
})

test('a service that reads only the missing variable gets no finding: only the web service reads the analytics table', () => {
  const env = { ANALYTICS_DATASTORE_TABLE: 'events' }
  expect(
    validate(contract, env, ['api', 'agent']).findings.filter(({ severity }) => severity !== 'notice'),
  ).toEqual([])
  expect(validate(contract, env).findings[0]).toMatchObject({
    id: 'analytics-without-store',
    services: ['web'],
    missing: ['STORE_URL'],
  })
})

test.each([
  ['site', 'LOG_LEVEL', 'NEXT_PUBLIC_SITE_URL'],
  ['store', 'STORE_POOL_SIZE', 'STORE_URL'],
  ['payments', 'PAYMENTS_API_URL', undefined],
  ['mail', 'EMAIL_DISPATCH_LIMIT', undefined],
])('%s is absent while only %s is set, and says what that means', (name, adjusts, switches) => {
  const stateOf = (...names: string[]) =>
    validate(contract, Object.fromEntries(names.map((one) => [one, sampleOf(one)]))).groups.find(
      (group) => group.name === name,
    )
  expect(stateOf(adjusts)).toEqual({ ...stateOf(), present: [adjusts] })
  expect(stateOf(adjusts)?.state).toBe('absent')
  if (switches !== undefined) expect(stateOf(adjusts, switches)?.state).toBe('configured')
  const notice = validate(contract, { [adjusts]: sampleOf(adjusts) }).findings.find(
    ({ id, group }) => id === 'group-absent' && group === name,
  )
  expect(notice?.missing).not.toContain(adjusts)
})

test.each([
  ['mail', { EMAIL_DISPATCH_LIMIT: '50', EMAIL_LINK_SECRET: 'abc' }, /^unsubscribe links of its well-formed/],
  ['store', { STORE_POOL_SIZE: '10', JOB_STORE_URL: 'mysql://a' }, /^the daemon does not start/],
  ['health', { HEALTH_DEEP_TOKEN: 'abc' }, /^deep checks are refused/],
] as const)('of %s, what a malformed value entails is said, whatever else is set: %j', (name, env, means) => {
  const found = validate(contract, env).groups.find((group) => group.name === name)
  expect(found?.meaning).toMatch(means)
})

test.each([
  ['production' as const, { DEPLOY_ENVIRONMENT: 'production' }],
  [{ when: 'SHOP_URL' }, { SHOP_URL: 'https://shop.example' }],
])(
  'a variable that is required %j fails its own readers alone, whoever reads the condition',
  (required, env) => {
    const own = contractOf({
      preset: 'base',
      services: { web: {}, api: {} },
      groups: {
        shop: {
          services: ['web'],
          unlocks: 'the shop',
          absent: 'no shop',
          variables: { SHOP_URL: { kind: 'url' } },
        },
        kiln: {
          services: ['api'],
          unlocks: 'kilns',
          absent: 'no kilns',
          variables: { KILN_REGION: { kind: 'text', required } },
        },
      },
    })
    expect(validate(own, env).findings.filter(({ severity }) => severity === 'error')).toMatchObject([
      { id: 'required-missing', missing: ['KILN_REGION'], services: ['api'] },
    ])
    expect(validate(own, env, ['api']).ok).toBe(false)
    expect(validate(own, env, ['web']).ok).toBe(true)
  },
)
