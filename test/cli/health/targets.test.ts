import { expect, test } from 'vitest'
import { readToken, targetsOf } from '../../../src/cli/health/targets.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { testContext } from '../../support/context.ts'

/** Whom a command line asks, and where. */
const asked = (
  { url = [], ...options }: { url?: readonly string[]; service?: readonly string[] },
  env?: Record<string, string>,
) =>
  targetsOf(learning.services, { url, ...options }, env).map(
    (one) => `${one.service} ${one.url}${one.health}`,
  )

test('without an address the services of this machine are asked, by a number and not by a name', () => {
  expect(asked({})).toEqual([
    expect.stringMatching(/^web http:\/\/127\.0\.0\.1:\d+\/api/),
    expect.stringMatching(/^api http:\/\/127\.0\.0\.1:\d+\/api/),
    expect.stringMatching(/^agent http:\/\/127\.0\.0\.1:\d+\/api/),
  ])
})

test('named addresses choose the services; those of a file do only where none is named', () => {
  const file = { API_URL: 'https://api.example', AGENT_URL: '  ' }
  expect(asked({}, file)).toEqual(['api https://api.example/api/health'])
  expect(asked({ url: ['web=https://www.example'] }, file)).toEqual(['web https://www.example/api/health'])
  expect(asked({ service: ['api', 'web'] }, file)).toEqual([
    expect.stringMatching(/^web http:\/\/127/),
    'api https://api.example/api/health',
  ])
  expect(asked({ url: ['web=https://www.example'], service: ['web', 'api'] }, file)).toEqual([
    'web https://www.example/api/health',
    'api https://api.example/api/health',
  ])
  expect(asked({ url: ['api=http://a', 'other=http://b/ready'] })).toEqual([
    'api http://a/api/health',
    'other http://b/ready',
  ])
})

test('the address that is named wins, then that of a file, then the daemon that runs here, then this machine', () => {
  const running = { web: 'http://127.0.0.1:3210' }
  const web = (url: readonly string[], file: Record<string, string> | undefined, daemon = {}) =>
    targetsOf(learning.services, { url, service: ['web'] }, file, daemon)[0]?.url
  const file = { NEXT_PUBLIC_SITE_URL: 'https://www.example' }
  expect(web(['web=http://a'], file, running)).toBe('http://a')
  expect(web([], file, running)).toBe('https://www.example')
  expect(web([], { NEXT_PUBLIC_SITE_URL: ' ' }, running)).toBe(running.web)
  expect(web([], undefined)).toBe('http://127.0.0.1:3000')
})

test('a service that is named and has no address is wrong usage, and one that is not named is left out', () => {
  const shop = { name: 'shop', address: ['SHOP_URL'], health: '/health' }
  // The definition's own, which has a usual port.
  const services = [...learning.services, shop, { name: 'worker', port: 4100, health: '/up' }]
  const names = (service?: string[]) =>
    targetsOf(services, { url: [], service }, {}).map((one) => one.service)
  expect(names()).toEqual(['web', 'api', 'agent', 'worker'])
  for (const named of [['shop'], ['web', 'shop']])
    expect(() => names(named)).toThrow(
      'the address of shop is not known: set SHOP_URL, or name it with --url',
    )
})

test('a slip in a name is told, and no other word is repeated', () => {
  expect(() => asked({ url: ['wbe=http://x'] })).toThrow("unknown service 'wbe'. Did you mean web?")
  expect(() => asked({ url: ['https://user:canary@x'] })).toThrow(/^--url takes (?!.*canary)/)
  expect(asked({ url: [`${'a'.repeat(32)}=http://x`] })).toHaveLength(1)
  expect(() => asked({ url: [`${'a'.repeat(33)}=http://x`] })).toThrow('--url takes')
})

test('of the variable that is rotated the first token is sent, and of another one all of it', async () => {
  const token = async (env: Record<string, string>, tokenEnv?: string) =>
    readToken(testContext().context, tokenEnv === undefined ? {} : { tokenEnv }, env, [])
  expect(await token({ HEALTH_DEEP_TOKEN: ' new , old ' })).toBe('new')
  expect(await token({ HEALTH_DEEP_TOKEN: 'new,old' }, 'HEALTH_DEEP_TOKEN')).toBe('new')
  expect(await token({ OTHER: ' a,b ' }, 'OTHER')).toBe('a,b')
  expect(await token({})).toBeUndefined()
  await expect(token({}, 'OTHER')).rejects.toThrow('the variable OTHER that --token-env names is not set')
  expect(await token({ OTHER: 'x'.repeat(4096) }, 'OTHER')).toHaveLength(4096)
  for (const bad of ['x'.repeat(4097), 'a b', 'ä', 'a\n b'])
    await expect(token({ OTHER: bad }, 'OTHER')).rejects.toThrow('not allowed in an HTTP header')
})

test.each([
  ['http://www.example', true],
  ['https://www.example', false],
  ['http://localhost:3000', false],
  ['http://127.0.0.9:3000', false],
  ['http://[::1]:3000', false],
  ['http://127.0.0.1.evil.example', true],
  ['http://localhost.evil.example', true],
])('a token that travels to %s is warned of: %s', async (url, warned) => {
  const { context, stderr } = testContext()
  const env = { HEALTH_DEEP_TOKEN: 'token' }
  await readToken(context, {}, env, [{ service: 'web', url, health: '' }])
  expect(stderr().includes('unencrypted')).toBe(warned)
  const others = ['api', 'api', 'worker'].map((service) => ({ service, url, health: '' }))
  await readToken(context, {}, env, [{ service: 'web', url: 'https://www.example', health: '' }, ...others])
  // Each service once.
  expect(stderr().split('unencrypted')).toHaveLength(warned ? 4 : 1)
})
