import { expect, test } from 'vitest'
import { validateAll } from '../../../src/env.ts'

const warned = (env: Record<string, string>) =>
  validateAll(env)
    .findings.filter(({ severity }) => severity === 'warning')
    .map(({ id, present }) => `${id} ${present.join(' ')}`)
const PRODUCTION = { DEPLOY_ENVIRONMENT: 'production' }

test.each(['0.0.0.0/0', '::/0', '10.0.0.0/8, 0.0.0.0/0', '0.0.0.0/1,128.0.0.0/1', '::/1'])(
  'trusting the proxies %s trusts everybody',
  (value) => {
    expect(warned({ TRUST_PROXY: value })).toEqual(['trusts-everybody TRUST_PROXY'])
  },
)

test.each(['10.0.0.0/8', '127.0.0.1', '2001:db8::/32', '172.16.0.0/12, fd00::/8'])(
  '%s may be proxies',
  (value) => {
    expect(warned({ TRUST_PROXY: value })).toEqual([])
  },
)

test.each(['http://www.example.com', 'HTTP://203.0.113.9', 'http://[2001:db8::1]/'])(
  'in production the public address %s is a finding, and only there',
  (value) => {
    expect(warned({ ...PRODUCTION, NEXT_PUBLIC_SITE_URL: value })).toEqual([
      'plain-http NEXT_PUBLIC_SITE_URL',
    ])
    expect(warned({ NEXT_PUBLIC_SITE_URL: value })).toEqual([])
  },
)

test.each([
  'https://www.example.com',
  'http://localhost:3000',
  'http://127.0.0.1:8000',
  'http://10.1.2.3',
  'http://api:8000',
  'http://api.internal:8000',
  'http://api.default.svc.cluster.local',
  'http://[::1]:8000',
  'http://[fd00::1]:8000',
])('in production the address %s is none', (value) => {
  expect(warned({ ...PRODUCTION, API_URL: value })).toEqual([])
})

test.each([
  'postgres://u:password-of-it@db.example/p',
  'postgresql://u:password-of-it@db.internal/p?sslmode=disable',
  'postgres://u:password-of-it@db.internal/p?sslmode=prefer',
])('in production the store %s without TLS is a finding', (value) => {
  expect(warned({ ...PRODUCTION, STORE_URL: value })).toEqual(['store-without-tls STORE_URL'])
  expect(warned({ STORE_URL: value })).toEqual([])
})

test.each([
  'sqlite:./platform.sqlite',
  'postgres://u:password-of-it@db.example/p?sslmode=require',
  'postgres://u:password-of-it@db.example/p?sslmode=verify-full',
  'postgres://u:password-of-it@127.0.0.1/p',
  'postgres://u:password-of-it@localhost/p',
])('in production the store %s is none', (value) => {
  expect(warned({ ...PRODUCTION, STORE_URL: value })).toEqual([])
})

test('tokens whose audience or issuer nobody looks at are a finding until both are set', () => {
  const datastore = {
    NEXT_PUBLIC_DATASTORE_URL: 'https://data.example.com',
    NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-datastore',
    DATASTORE_JWT_SECRET: 'a-jwt-secret-of-thirty-two-bytes!',
  }
  expect(warned(datastore)).toEqual(['token-claims-unchecked DATASTORE_JWT_SECRET'])
  expect(warned({ ...datastore, DATASTORE_JWT_AUDIENCE: 'a' })).toEqual([
    'token-claims-unchecked DATASTORE_JWT_SECRET',
  ])
  expect(warned({ ...datastore, DATASTORE_JWT_AUDIENCE: 'a', DATASTORE_JWT_ISSUER: 'b' })).toEqual([])
})
