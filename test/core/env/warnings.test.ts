import { expect, test } from 'vitest'
import { z } from 'zod'
import { createContract } from '../../../src/core/env/contract.ts'
import { looksSecret } from '../../../src/core/env/exposure.ts'
import type { Kind } from '../../../src/core/env/kinds.ts'
import { validate } from '../../../src/core/env/validate.ts'
import { validateAll, validateApi } from '../../../src/env.ts'

const warned = (env: Record<string, string>) =>
  validateAll(env)
    .findings.filter(({ severity }) => severity === 'warning')
    .map(({ id, present }) => `${id} ${present.join(' ')}`)

test.each([
  ...['changeme', 'CHANGE_ME', 'xxx', 'XXXXXXXX', 'sk_test_xxxxxxxxxxxx', 'whsec_...', '***', '…'],
  // What stands for a key.
  ...['<your-key>', 'your-api-key', '[key]', '{{ key }}', `\${KEY}`, 'todo', 'null', 'my-secret', 'password'],
  // What people and templates leave behind.
  ...['change_it', 'replace-me', 'replace with a key', 'TBD', 'fixme', 'dummy', 'placeholder', 'example'],
  ...['sample', 'secret', 'paste-key-here', '%API_KEY%', 'undefined', 'nil', 'none'],
])('%j is a placeholder', (value) => {
  expect(warned({ MODEL_A_API_KEY: value })).toEqual(['placeholder-value MODEL_A_API_KEY'])
})

test.each(['sk-4f9a8bxxxx12', 'example-4711-key', 'AIzaSyD-xxl', 'nullable', 'secretly-good-4711'])(
  '%j may be a real key',
  (value) => {
    expect(warned({ MODEL_A_API_KEY: value })).toEqual([])
  },
)

test('warns of any secret short enough to guess', () => {
  expect(warned({ MODEL_A_API_KEY: 'k3y' })).toEqual(['weak-secret MODEL_A_API_KEY'])
  expect(warned({ MODEL_A_API_KEY: 'k3y-4711' })).toEqual([])
  for (const token of ['k3y-4711', 'good-abcdef-0123456789,k3y-4711', 'k3y-4711,good-abcdef-0123456789'])
    expect(warned({ HEALTH_DEEP_TOKEN: token })).toEqual(['weak-secret HEALTH_DEEP_TOKEN'])
})

test.each([
  ['HEALTH_DEEP_TOKEN', 'abcdef-hijklmno', true],
  ['HEALTH_DEEP_TOKEN', 'abcdef-hijklmnop', false],
  ['HEALTH_DEEP_TOKEN', 'abcdeabcdeabcdeabcde', true],
  ['HEALTH_DEEP_TOKEN', 'abcdefabcdefabcdefab', false],
  ['MODEL_A_API_KEY', 'abcdefg', true],
  ['MODEL_A_API_KEY', 'aaaaaaaa', false],
] as const)('%s=%s is weak: %s', (name, value, weak) => {
  expect(warned({ [name]: value })).toEqual(weak ? [`weak-secret ${name}`] : [])
})

test.each([
  ...['sk_live_4711', 'sk-test-4711', 'sk-ant-4711', 'rk_live_4711', 'whsec_4711'],
  ...['ghp_4711', 'ghs_4711', 'xoxa-4711', 'xoxr-4711'],
  ...['-----BEGIN PRIVATE KEY-----', '-----BEGIN RSA PRIVATE KEY-----'],
])('%s is secret wherever it is', (value) => {
  expect(looksSecret(value)).toBe(true)
  expect(looksSecret(`a ${value}`)).toBe(false)
})

test.each(['sk-4711', 'pk_live_4711', 'ghx_4711', 'xoxz-4711', 'SK_LIVE_4711', '-----BEGIN PUBLIC KEY-----'])(
  '%s may be public',
  (value) => {
    expect(looksSecret(value)).toBe(false)
  },
)

test('a token is secret by its role alone, and only as a whole', () => {
  expect(looksSecret(token({ role: 'service_role' }))).toBe(true)
  expect(looksSecret(token({ iat: 1, role: 'service_role', exp: 2 }))).toBe(true)
  expect(looksSecret(token({ role: 'service_roles' }))).toBe(false)
  expect(looksSecret(token({ name: 'service_role' }))).toBe(false)
  expect(looksSecret(`x${token({ role: 'service_role' })}`)).toBe(false)
  expect(looksSecret(`${token({ role: 'service_role' })}.x`)).toBe(false)
})

test.each([
  ['change-me-12345', false],
  ['change-me-1234', true],
  ['not-changeme', false],
  ['xx', false],
  ['sk_test_xx', false],
  ['pk_live_xxx', true],
  ['verylong_xxx', false],
  ['..', false],
  ['...', true],
  ['enter_the_key_here', true],
  ['enter_the_key_hereafter', false],
  ['a <key>', false],
  ['<key> a', false],
  ['nan', true],
  ['banana', false],
] as const)('recognizes %j as a placeholder: %s', (value, is) => {
  expect(warned({ DEPLOY_ENVIRONMENT: value })).toEqual(is ? ['placeholder-value DEPLOY_ENVIRONMENT'] : [])
})

test.each<[Kind, string, ...string[]]>([
  ['json', '[1,2]'],
  ['json', '["a"]', 'malformed-value'],
  ['json', '[]'],
  ['json', '[1, two]', 'placeholder-value'],
  ['json', 'null', 'placeholder-value'],
  ['host', '[::1]'],
  ['host', '[host]', 'placeholder-value'],
  ['mailbox', '<a@b.example>'],
  ['mailbox', '<your-address>', 'placeholder-value'],
  ['text', '[1,2]', 'placeholder-value'],
])('%s: %s is not a placeholder for brackets that its kind reads', (kind, value, ...ids) => {
  const schema = kind === 'json' ? { schema: z.array(z.number()) } : {}
  const variables = { SEATS: { kind, ...schema } }
  const shop = { services: 'all', unlocks: 'a', absent: 'b', variables } as const
  const { findings } = validate(createContract({ services: ['web'], groups: { shop } }), { SEATS: value })
  expect(findings.flatMap(({ id, severity }) => (severity === 'notice' ? [] : id))).toEqual(ids)
})

test.each([
  ['production', false],
  ['Production', true],
  ['prod', true],
  ['live', true],
  ['staging', false],
  ['production-eu', false],
] as const)('DEPLOY_ENVIRONMENT=%s looks like production and is not: %s', (value, is) => {
  expect(warned({ DEPLOY_ENVIRONMENT: value })).toEqual(is ? ['almost-production DEPLOY_ENVIRONMENT'] : [])
})

test.each([
  ['API_URL', 'https://api.example/?a=b'],
  ['LOG_LEVEL', 'loud'],
  ['TRUST_PROXY', '10.0.0.0/33'],
  ['CORS_ALLOWED_ORIGINS', 'https://a.example/path'],
  ['STORE_POOL_SIZE', '201'],
  ['PAYMENTS_PRICE_TEAM_YEARLY', 'price 9'],
  ['EMAIL_DISPATCH_LIMIT', '10001'],
  ['RATE_LIMIT_PER_MINUTE', '0'],
  ['ANALYTICS_DATASTORE_TABLE', 'my events'],
  ['ALERT_EMAIL_TO', 'Ops <ops@example.com>'],
])('%s=%s is malformed, which is a warning', (name, value) => {
  expect(warned({ [name]: value })).toEqual([`malformed-value ${name}`])
  expect(warned({ EMAIL_DISPATCH_LIMIT: '10000' })).toEqual([])
})

test('an unescaped # in a password is malformed: the text before it would be the host', () => {
  for (const [name, value] of [
    ['STORE_URL', 'postgres://user:p#ss@db.example/name'],
    ['STORE_URL', 'postgres://user:p@ss#word@db.example/name'],
    ['MAILER_SMTP_URL', 'smtp://user:12#34@smtp.example'],
  ] as const) {
    const finding = validateAll({ [name]: value }).findings.find(({ id }) => id === 'malformed-value')
    expect(finding?.fix, value).toMatch(/%23\.$/)
  }
  expect(warned({ STORE_URL: 'postgres://user:p%23ss@db.example/name' })).toEqual([])
})

test('a placeholder says when it is malformed too, and so behaves as absent', () => {
  const cause = (env: Record<string, string>) =>
    validateAll(env).findings.find(({ id }) => id === 'placeholder-value')?.cause
  expect(cause({ NEXT_PUBLIC_SITE_URL: 'changeme' })).toMatch(/behaves as absent/)
  expect(cause({ MODEL_A_API_KEY: 'changeme' })).not.toMatch(/absent/)
})

test.each([
  'correct horse battery staple',
  'pässwort-mit-umlauten-4711',
  'zero-width-\u200b-space-4711',
  'good-enough-4711-0815,but this one is not-4711',
  'x7y8'.repeat(1025),
])('a bearer secret that no HTTP header carries is malformed: %j', (value) => {
  for (const name of ['EMAIL_DISPATCH_SECRET', 'HEALTH_DEEP_TOKEN'])
    expect(warned({ [name]: value })).toEqual([`malformed-value ${name}`])
  expect(warned({ EMAIL_LINK_SECRET: value }).filter((one) => one.startsWith('malformed'))).toEqual([])
})

test('a bearer secret may hold every visible ASCII character, and a space around the comma', () => {
  const visible = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at))
    .join('')
    .replace(',', '')
  for (const value of [visible, `${visible} , ${visible}2`, 'x7y8z9'.repeat(682)])
    expect(warned({ EMAIL_DISPATCH_SECRET: value })).toEqual([])
})

test.each([
  ['HEALTH_DEEP_TOKEN', 'xxx', 'placeholder-value', /refused to everybody/, 'health'],
  ['HEALTH_DEEP_TOKEN', 'abc', 'malformed-value', /refused to everybody/, 'health'],
  ['EMAIL_LINK_SECRET', 'abc', 'malformed-value', /well-formed values alone work/, 'mail'],
  ['STORE_URL', 'changeme', 'placeholder-value', /daemon does not start, and no other store/, 'store'],
  ['STORE_URL', 'nonsense', 'malformed-value', /daemon does not start, and no other store/, 'store'],
  ['JOB_STORE_URL', 'nonsense', 'malformed-value', /daemon does not start, and no other store/, 'store'],
])('%s=%s says what stays closed, and so does its group', (name, value, id, closed, group) => {
  const { findings, groups } = validateAll({ [name]: value })
  expect(findings.find((finding) => finding.id === id)?.cause).toMatch(closed)
  expect(groups.find((one) => one.name === group)).toMatchObject({
    state: 'absent',
    meaning: expect.stringMatching(closed),
  })
})

const token = (claims: object) =>
  ['{"alg":"HS256"}', JSON.stringify(claims), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')

test('warns of a secret under a public name, even where it is no value of that variable', () => {
  expect(warned({ NEXT_PUBLIC_SITE_URL: 'sk_live_51Kx8q2Vd' })).toEqual([
    'malformed-value NEXT_PUBLIC_SITE_URL',
    'public-secret NEXT_PUBLIC_SITE_URL',
  ])
})

test('warns of a secret under a public name, even outside the contract or as a copy', () => {
  const datastore = { NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com' }
  expect(warned({ ...datastore, NEXT_PUBLIC_DATASTORE_ANON_KEY: token({ role: 'service_role' }) })).toEqual([
    'public-secret NEXT_PUBLIC_DATASTORE_ANON_KEY',
  ])
  expect(warned({ ...datastore, NEXT_PUBLIC_DATASTORE_ANON_KEY: token({ role: 'anon' }) })).toEqual([])
  expect(warned({ NEXT_PUBLIC_MAILER_API_KEY: 'any-key-4711' })).toContain(
    'public-secret NEXT_PUBLIC_MAILER_API_KEY',
  )
  expect(warned({ NEXT_PUBLIC_MY_OWN: 'sk_live_4711' })).toEqual(['public-secret NEXT_PUBLIC_MY_OWN'])
  expect(warned({ NEXT_PUBLIC_MY_OWN: 'harmless' })).toEqual([])
  expect(
    warned({
      ...datastore,
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'the-same-key',
      DATASTORE_SERVICE_ROLE_KEY: 'the-same-key',
    }),
  ).toEqual(['public-secret NEXT_PUBLIC_DATASTORE_ANON_KEY DATASTORE_SERVICE_ROLE_KEY'])
  // Each value of a pair that is rotated opens the platform.
  const [current, old] = ['current-abcdef-0123456', 'old-abcdef-0123456789']
  for (const copy of [current, old])
    expect(warned({ HEALTH_DEEP_TOKEN: `${current},${old}`, NEXT_PUBLIC_MY_OWN: copy })).toEqual([
      'public-secret NEXT_PUBLIC_MY_OWN HEALTH_DEEP_TOKEN',
    ])
})

test('a public secret concerns the web service, which alone hands it out', () => {
  const [finding] = validateAll({ NEXT_PUBLIC_MY_OWN: 'sk_live_4711' }).findings
  expect(finding).toMatchObject({ id: 'public-secret', services: ['web'] })
  expect(validateApi({ NEXT_PUBLIC_MY_OWN: 'sk_live_4711' }).findings).not.toContainEqual(finding)
})
