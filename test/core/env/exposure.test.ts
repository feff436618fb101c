import { expect, test } from 'vitest'
import { travelsInClear } from '../../../src/core/env/exposure.ts'
import { validateAll } from '../../../src/env.ts'

const warned = (env: Record<string, string>) =>
  validateAll(env)
    .findings.filter(({ severity }) => severity === 'warning')
    .map(({ id, present }) => `${id} ${present.join(' ')}`)
// With the white space that a reader may leave.
const PRODUCTION = { DEPLOY_ENVIRONMENT: 'production ' }

test.each(['0.0.0.0/0', '::/0', '0.0.0.0/1,128.0.0.0/1', '2000::/3'])(
  'trusting the proxies %s trusts everybody',
  (value) => {
    expect(warned({ TRUST_PROXY: value })).toEqual(['trusts-everybody TRUST_PROXY'])
  },
)

test.each(['10.0.0.0/8', '2001:db8::/32', '172.16.0.0/12, fd00::/8', '64.0.0.0/3', '2000::/4'])(
  '%s may be proxies',
  (value) => {
    expect(warned({ TRUST_PROXY: value })).toEqual([])
  },
)

test.each([
  ...['HTTP://203.0.113.9', 'http://11.0.0.1', 'http://1.10.0.1'],
  // Beside the private networks.
  ...['http://192.169.0.1', 'http://172.15.0.1', 'http://172.32.0.1'],
  ...['http://[2001:db8::1]/', 'http://[fe80::1]', 'http://[2001:db8::fd00]'],
  ...['http://www.example.com', 'http://localhost.example.com', 'http://10.example.com'],
  ...['http://api.svc.example.com', 'http://notlocal.xlocal'],
])('in production the public address %s is a finding, and only there', (value) => {
  expect(warned({ ...PRODUCTION, NEXT_PUBLIC_SITE_URL: value })).toEqual(['plain-http NEXT_PUBLIC_SITE_URL'])
  expect(warned({ NEXT_PUBLIC_SITE_URL: value })).toEqual([])
})

test.each([
  'https://www.example.com',
  // This machine, private networks, and names inside one.
  ...['http://localhost:3000', 'http://127.0.0.1:8000', 'http://[::1]:8000'],
  ...[
    'http://10.1.2.3',
    'http://192.168.0.1',
    'http://172.16.0.1',
    'http://172.31.0.1',
    'http://[fd00::1]:8000',
  ],
  ...['http://api:8000', 'http://api.internal:8000', 'http://api.default.svc.cluster.local'],
  ...['http://printer.LAN', 'http://a.home.arpa', 'http://a.local', 'http://a.test'],
])('in production the address %s is none', (value) => {
  expect(warned({ ...PRODUCTION, API_URL: value })).toEqual([])
})

test('of several addresses each is looked at', () => {
  expect(travelsInClear('https://a.example, http://b.example')).toBe(true)
  expect(travelsInClear('https://a.example, http://b.internal')).toBe(false)
})

test.each([
  'postgres://u:password-of-it@db.example/p',
  'postgresql://u:password-of-it@db.internal/p?sslmode=disable',
  'postgres://u:password-of-it@db.internal/p?sslmode=prefer',
  'postgres://u:password-of-it@db.internal/p?sslmode=requires',
  'postgres://u:password-of-it@127.example/p',
  'postgres://u:password-of-it@db.example/p?host=other.example/run',
  'postgres://u:password-of-it@127.0.0.1,db2.example/p?target_session_attrs=read-write',
])('in production the store %s without TLS is a finding', (value) => {
  expect(warned({ ...PRODUCTION, STORE_URL: value })).toEqual(['store-without-tls STORE_URL'])
  expect(warned({ STORE_URL: value })).toEqual([])
})

test.each([
  'sqlite:./platform.sqlite',
  'postgres://u:password-of-it@db.example/p?sslmode=require',
  'postgres://u:password-of-it@db.example/p?sslmode=verify-full',
  'postgresql://u:password-of-it@db.example/p?sslmode=verify-ca',
  'postgres://u:password-of-it@localhost/p',
  'postgres://u:password-of-it@[::1]/p',
  'postgres://u:password-of-it@127.1.2.3/p',
  'postgres://u:password-of-it@db.example/p?host=/run/postgresql',
  'postgres://u:password-of-it@127.0.0.1:5432,[::1]:5433/p',
  'postgres://u:password-of-it@db1.example,db2.example/p?sslmode=require',
])('in production the store %s is none', (value) => {
  expect(warned({ ...PRODUCTION, STORE_URL: value })).toEqual([])
})
