import { generateKeyPairSync } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { CompactSign, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Identity, jwtIdentify, parseIdentity } from '../../../src/core/access/identity.ts'
import { clock, JWT_SECRET, NOW, pairOf, token } from '../../support/accounts.ts'
import { serve } from '../../support/servers.ts'

const bySecret = jwtIdentify(clock, { kind: 'secret', secret: pairOf(JWT_SECRET) })
const ask = (authorization: string | undefined) =>
  new Request('http://web.example/', {
    headers: authorization === undefined ? {} : { Authorization: authorization },
  })
/** What a token signed with the secret says. */
const read = async (claims: Record<string, unknown> = {}, secret = JWT_SECRET, identify = bySecret) =>
  identify(ask(`Bearer ${await token(claims, secret)}`))
const ADA: Identity = { kind: 'person', subject: 'ada', email: 'ada@example.com' }
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test.each([
  ['nothing more', {}],
  ['its role and audience', { role: 'authenticated', aud: 'authenticated' }],
  ['a role like that of the service', { role: 'Service_Role' }],
  [
    'a life of a week, an address that its account has verified and no anonymous sign-in',
    {
      exp: NOW / 1000 + 7 * 24 * 3600,
      user_metadata: { email_verified: true },
      app_metadata: null,
      is_anonymous: false,
    },
  ],
  ['an end 4 s ago', { exp: NOW / 1000 - 4 }],
  ['a beginning in 5 s', { nbf: NOW / 1000 + 5 }],
  ['an address that is verified', { email_verified: true }],
])('a token with %s names its person', async (_, claims) => {
  expect(await read(claims)).toEqual(ADA)
  expect(await bySecret(ask(`bearer ${await token(claims)}`))).toEqual(ADA)
})

test('the service role needs no person, and its key may live for years; a subject may have 255 characters', async () => {
  for (const claims of [{ sub: undefined, email: undefined }, { exp: NOW / 1000 + 10 * 365 * 24 * 3600 }])
    expect(await read({ ...claims, role: 'service_role' })).toEqual({ kind: 'service' })
  expect(await read({ sub: 'a'.repeat(255) })).toMatchObject({ subject: 'a'.repeat(255) })
})

test.each<[string, Record<string, unknown>]>([
  ['no expiry', { exp: undefined }],
  ['an expiry that is no number', { exp: '9999999999' }],
  ['no expiry, for the service role', { exp: undefined, role: 'service_role' }],
  ['no subject', { sub: undefined }],
  ['an empty subject', { sub: '' }],
  ['a subject that is no text', { sub: 5 }],
  ['a subject without end', { sub: 'a'.repeat(256) }],
  ['no e-mail', { email: undefined }],
  ['a life of more than a week', { exp: NOW / 1000 + 7 * 24 * 3600 + 6 }],
  ['as long a life, said to begin tomorrow', { exp: NOW / 1000 + 8 * 24 * 3600, iat: NOW / 1000 + 86_400 }],
  ['an e-mail that is not verified', { email_verified: false }],
  ['an e-mail that its account has not verified', { user_metadata: { email_verified: false } }],
  ['an e-mail that was verified by no boolean', { app_metadata: { email_verified: 'true' } }],
  ['an anonymous sign-in', { is_anonymous: true }],
  ['an anonymous sign-in that no boolean says', { is_anonymous: 'false' }],
  ['an e-mail that is none', { email: 'ada' }],
  ['an e-mail with a header in it', { email: 'ada@example.com\r\nBcc: eve@example.com' }],
  ['an end 5 s ago', { exp: NOW / 1000 - 5 }],
  ['a beginning in 6 s', { nbf: NOW / 1000 + 6 }],
  ['the role anon, even if every other claim is valid', { role: 'anon', email_verified: true }],
  ...['false', 'true', 0, 1, null, {}].map((value): [string, { email_verified: unknown }] => [
    `a verification of ${JSON.stringify(value)}`,
    { email_verified: value },
  ]),
])('rejects a token with %s', async (_, claims) => {
  expect(await read(claims)).toBeUndefined()
})

test('a token with another key, another algorithm or none is rejected', async () => {
  const good = await token()
  const [header, , signature] = good.split('.')
  const pair = await generateKeyPair('ES256')
  const forged = [
    await token({}, 'another-secret-of-thirty-two-bytes'),
    `${part({ alg: 'none' })}.${part(CLAIMS)}.`,
    `${part({ alg: 'none' })}.${part(CLAIMS)}.${signature}`,
    `${header}.${part({ ...CLAIMS, sub: 'eve' })}.${signature}`,
    await adas({ alg: 'HS512' }).sign(new TextEncoder().encode(JWT_SECRET.repeat(2))),
    await adas({ alg: 'ES256' }).sign(pair.privateKey),
    `${part({ alg: 'HS256', crit: ['x'], x: 1 })}.${part(CLAIMS)}.${signature}`,
    await new CompactSign(new TextEncoder().encode('[]'))
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode(JWT_SECRET)),
    `${good}.`,
    `${good}x`,
    '..',
    `${'a'.repeat(20_000)}.b.c`,
  ]
  for (const one of forged) expect(await bySecret(ask(`Bearer ${one}`))).toBeUndefined()
  for (const header of [
    undefined,
    '',
    'Bearer',
    `Basic ${good}`,
    good,
    `x Bearer ${good}`,
    `Bearer ${good.split('.').slice(0, 2).join('.')}`,
    `Bearer ${good}.d`,
  ])
    expect(await bySecret(ask(header))).toBeUndefined()
})

const keyServer = async (answer: RequestListener) => `${await serve(answer)}/keys`

const byKeySet = (url: string, claims = {}) => jwtIdentify(clock, { kind: 'jwks', url }, claims)
const CLAIMS = { sub: 'ada', email: 'ada@example.com', exp: NOW / 1000 + 600 }
const adas = (header: { alg: string; kid?: string }, more = {}) =>
  new SignJWT({ ...CLAIMS, ...more }).setProtectedHeader(header)

async function keySet() {
  const pair = await generateKeyPair('ES256', { extractable: true })
  const jwk: JWK = { ...(await exportJWK(pair.publicKey)), kid: 'first', alg: 'ES256', use: 'sig' }
  let asked = 0
  const url = await keyServer((_, response) => {
    asked += 1
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ keys: [jwk] }))
  })
  const sign = (alg = 'ES256', kid = 'first', more = {}) => adas({ alg, kid }, more)
  /** A request with a token that this key has signed. */
  const bearer = async (signed = sign(), key: Parameters<SignJWT['sign']>[0] = pair.privateKey) =>
    ask(`Bearer ${await signed.sign(key)}`)
  return { url, pair, sign, bearer, jwk, asked: () => asked, identify: byKeySet(url) }
}

test('with a key set its own keys are taken, and fetched once for many tokens', async () => {
  const { identify, bearer, asked } = await keySet()
  const good = await bearer()
  expect(await Promise.all(Array.from({ length: 20 }, () => identify(good)))).toEqual(Array(20).fill(ADA))
  expect(asked()).toBe(1)
})

test.each(['secret', 'key set'])(
  'by a %s, a token is refused from its expiry on, however often it was taken',
  async (by) => {
    const set = await keySet()
    const bySecret = by === 'secret'
    const tokens = bySecret
      ? ({ kind: 'secret', secret: pairOf(JWT_SECRET) } as const)
      : ({ kind: 'jwks', url: set.url } as const)
    let now = NOW
    const identify = jwtIdentify({ now: () => now }, tokens)
    const good = bySecret ? ask(`Bearer ${await token()}`) : await set.bearer()
    expect(await identify(good)).toEqual(ADA)
    // Ten minutes, and what clocks may differ by.
    now = NOW + 604_000
    expect(await identify(good)).toEqual(ADA)
    now = NOW + 606_000
    expect(await identify(good)).toBeUndefined()
  },
)

test('with a key set, rejects an HMAC made from the public key, and an unknown key', async () => {
  const { identify, sign, bearer, jwk, asked } = await keySet()
  const { privateKey: other } = await generateKeyPair('ES256')
  for (const forged of [
    await bearer(sign('HS256'), new TextEncoder().encode(JSON.stringify(jwk))),
    await bearer(sign(), other),
    await bearer(sign('ES256', 'second'), other),
  ])
    expect(await identify(forged)).toBeUndefined()
  // An unknown key id must not make us ask the key server for every forged token.
  expect(asked()).toBe(1)
})

test('with a key set every algorithm of public keys is taken', async () => {
  const keys = [
    [
      generateKeyPairSync('rsa', { modulusLength: 2048 }),
      'RS256',
      'RS384',
      'RS512',
      'PS256',
      'PS384',
      'PS512',
    ],
    [generateKeyPairSync('ec', { namedCurve: 'P-256' }), 'ES256'],
    [generateKeyPairSync('ec', { namedCurve: 'P-384' }), 'ES384'],
    [generateKeyPairSync('ec', { namedCurve: 'P-521' }), 'ES512'],
    [generateKeyPairSync('ed25519'), 'EdDSA', 'Ed25519'],
  ] as const
  const set = keys.map(([{ publicKey }], index) => ({
    ...publicKey.export({ format: 'jwk' }),
    kid: `key-${index}`,
  }))
  const url = await keyServer((_, response) => response.end(JSON.stringify({ keys: set })))
  const identify = byKeySet(url)
  for (const [index, [{ privateKey }, ...algorithms]] of keys.entries())
    for (const alg of algorithms) {
      const signed = await adas({ alg, kid: `key-${index}` }).sign(privateKey)
      expect(await identify(ask(`Bearer ${signed}`)), alg).toEqual(ADA)
    }
})

test('rejects a token that two keys of the set could have signed', async () => {
  const set = await keySet()
  const url = await keyServer((_, response) =>
    response.end(JSON.stringify({ keys: [set.jwk, { ...set.jwk, kid: 'second' }] })),
  )
  expect(await byKeySet(url)(await set.bearer(adas({ alg: 'ES256' })))).toBeUndefined()
})

test('a key set is used for ten minutes, then asked for anew', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  onTestFinished(() => void vi.useRealTimers())
  const set = await keySet()
  const good = await set.bearer()
  for (const [after, asked] of [
    [0, 1],
    [599_999, 1],
    [600_000, 2],
  ] as const) {
    vi.setSystemTime(NOW + after)
    expect(await set.identify(good)).toEqual(ADA)
    expect(set.asked()).toBe(asked)
  }
})

test.each<[string, (response: Parameters<RequestListener>[1]) => unknown]>([
  ['answers 500', (response) => response.writeHead(500).end()],
  ['answers something else', (response) => response.end('<html>')],
  ['answers no key set', (response) => response.end('{"keys":3}')],
  ['sends elsewhere', (response) => response.writeHead(302, { Location: '/' }).end()],
  ['drops the line', (response) => response.destroy()],
])('treats a key server that %s as an outage, not as a wrong token', async (_, answer) => {
  const url = await keyServer((_request, response) => void answer(response))
  const good = await (await keySet()).bearer()
  await expect(byKeySet(url)(good)).rejects.toMatchObject({ code: 'unavailable' })
})

test.each([
  ['ends at 128 KB', 128 * 1024, true],
  ['is larger', 128 * 1024 + 1, false],
  ['never ends', Number.POSITIVE_INFINITY, false],
])('a key set that %s', async (_, bytes, isRead) => {
  const set = await keySet()
  let left = bytes
  const url = await keyServer((_request, response) => {
    const keys = JSON.stringify({ keys: [set.jwk] })
    response.write(keys)
    left -= keys.length
    const blank = Buffer.alloc(64 * 1024, ' ')
    const more = () => {
      if (left <= 0) return void response.end()
      const size = Math.min(left, blank.length)
      left -= size
      response.write(blank.subarray(0, size), more)
    }
    response.on('error', () => {})
    more()
  })
  const identify = byKeySet(url)
  const good = await set.bearer()
  if (isRead) expect(await identify(good)).toEqual(ADA)
  else await expect(identify(good)).rejects.toMatchObject({ code: 'unavailable' })
})

test('keeps users signed in with the last known keys while the key server is down, also once it has given others', async () => {
  const [set, next] = [await keySet(), await keySet()]
  let keys: JWK[] | undefined = [set.jwk]
  const url = await keyServer((_, response) => {
    if (keys) response.end(JSON.stringify({ keys }))
    else response.writeHead(500).end()
  })
  const heard: boolean[] = []
  const tell = (available: boolean) => void heard.push(available)
  const identify = jwtIdentify(clock, { kind: 'jwks', url }, {}, 0, tell)
  const [first, second] = [await set.bearer(), await next.bearer()]
  const named = async () => [await identify(first), await identify(second)]
  expect(await named()).toEqual([ADA, undefined])
  keys = undefined
  expect(await named()).toEqual([ADA, undefined])
  keys = [next.jwk]
  expect(await named()).toEqual([undefined, ADA])
  keys = undefined
  expect(await named()).toEqual([undefined, ADA])
  // They were there all the time.
  expect(heard).toEqual(Array(8).fill(true))
})

test('a token of a key that the server adds is taken half a minute after the last fetch', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  onTestFinished(() => void vi.useRealTimers())
  const [set, next] = [await keySet(), await keySet()]
  const keys = [set.jwk]
  const identify = byKeySet(await keyServer((_, response) => response.end(JSON.stringify({ keys }))))
  expect(await identify(await set.bearer())).toEqual(ADA)
  keys.push({ ...next.jwk, kid: 'second' })
  const signed = await next.bearer(next.sign('ES256', 'second'))
  expect(await identify(signed)).toBeUndefined()
  vi.setSystemTime(NOW + 30_000)
  expect(await identify(signed)).toEqual(ADA)
})

test('identifies nobody if accounts are not configured', async () => {
  expect(await jwtIdentify(clock, undefined)(ask(`Bearer ${await token()}`))).toBeUndefined()
})

test('validates an identity given by the host like one from a token', () => {
  expect(parseIdentity(ADA)).toEqual(ADA)
  expect(parseIdentity({ kind: 'service' })).toEqual({ kind: 'service' })
  expect(parseIdentity({ ...ADA, email: ' ada@example.com ' })).toEqual(ADA)
  expect(parseIdentity({ ...ADA, email: 'ada' })).toBeUndefined()
  expect(parseIdentity({ ...ADA, subject: '' })).toBeUndefined()
  // A host in JavaScript may leave a field out, or look the identity up where there is none.
  for (const untyped of [null, { ...ADA, subject: undefined }, { ...ADA, email: 7 }, {}])
    expect(parseIdentity(untyped as unknown as Identity), JSON.stringify(untyped)).toBeUndefined()
})

test('accepts tokens signed with either of two secrets, reports an expired one of the older as expired, and rejects a third', async () => {
  const both = jwtIdentify(clock, {
    kind: 'secret',
    secret: pairOf(`a-new-secret-of-32-bytes-at-least,${JWT_SECRET}`),
  })
  expect(await read({}, JWT_SECRET, both)).toEqual(ADA)
  expect(await read({}, 'a-new-secret-of-32-bytes-at-least', both)).toEqual(ADA)
  expect(await read({ exp: NOW / 1000 - 60 }, JWT_SECRET, both)).toBeUndefined()
  expect(await read({}, 'a-third-secret-of-32-bytes-at-all', both)).toBeUndefined()
})

test.each<[string, object, Record<string, unknown>, Record<string, unknown>]>([
  ['audience', { audience: 'platform' }, { aud: 'platform' }, { aud: 'another' }],
  ['audience', { audience: 'platform' }, { aud: ['x', 'platform'] }, {}],
  ['issuer', { issuer: 'https://a.example' }, { iss: 'https://a.example' }, { iss: 'https://a.example/' }],
  ['issuer', { issuer: 'https://a.example' }, { iss: 'https://a.example' }, {}],
])('with an %s configured a token must name it, the service’s too', async (_, claims, good, bad) => {
  const { url, sign, bearer } = await keySet()
  const signed = async (more: object) => byKeySet(url, claims)(await bearer(sign('ES256', 'first', more)))
  expect([await signed(good), await signed(bad)]).toEqual([ADA, undefined])
  const strict = jwtIdentify(clock, { kind: 'secret', secret: pairOf(JWT_SECRET) }, claims)
  const byToken = (more: Record<string, unknown>) => read(more, JWT_SECRET, strict)
  expect([await byToken(good), await byToken(bad)]).toEqual([ADA, undefined])
  expect(await byToken({ ...bad, role: 'service_role' })).toBeUndefined()
  expect(await byToken({ ...good, role: 'service_role' })).toEqual({ kind: 'service' })
})
