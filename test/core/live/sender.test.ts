import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { MailSettings } from '../../../src/core/env/settings.ts'
import { openNetwork } from '../../../src/core/live/network.ts'
import { senderSteps } from '../../../src/core/live/sender.ts'
import { secret } from '../../../src/core/secret.ts'
import { nameServer } from '../../support/outside.ts'

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .publicKey.export({ type: 'spki', format: 'der' })
  .toString('base64')
const ED25519 = Buffer.from(
  generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }).x ?? '',
  'base64url',
).toString('base64')

const SMTP = { kind: 'smtp', url: secret('smtp://mail.example.com') } as const

const SOUND = {
  'example.com': ['unrelated=1', 'v=spf1 include:_spf.provider.example -all'],
  '_spf.provider.example': 'v=spf1 ip4:192.0.2.0/24 ~all',
  's1._domainkey.example.com': `v=DKIM1; k=rsa; p=${KEY}`,
  '_dmarc.example.com': 'v=DMARC1; p=reject; rua=mailto:reports@example.com',
}

async function look(
  records: Parameters<typeof nameServer>[0],
  {
    dkimSelectors = [] as string[],
    address = 'course@example.com',
    route = SMTP,
    ...sent
  }: Partial<Pick<MailSettings, 'bounceAddress' | 'dkim' | 'route'>> & {
    readonly dkimSelectors?: string[]
    readonly address?: string
  } = {},
) {
  const network = openNetwork({ nameServers: [await nameServer(records)] })
  const { signal } = new AbortController()
  const results = await Promise.all(
    senderSteps({ network, dkimSelectors }, { ...sent, from: { name: undefined, address }, route }).map(
      async (step) => [step.check, await step.run(signal)] as const,
    ),
  )
  for (const [check, outcome] of results) {
    const isFault = outcome.state === 'failed' || outcome.state === 'warning'
    expect('id' in outcome ? outcome.id : undefined).toBe(isFault ? IDS.get(check) : undefined)
  }
  return Object.fromEntries(results.map(([check, { state, detail }]) => [check, `${state}: ${detail}`]))
}

/** The finding that a fault of each check is. */
const IDS: ReadonlyMap<string, string> = new Map([
  ['domain', 'live-name'],
  ['SPF', 'sender-spf'],
  ['DKIM', 'sender-dkim'],
  ['DMARC', 'sender-dmarc'],
])

test('a domain with all three records passes, its key read from several strings', async () => {
  expect(await look(SOUND)).toEqual({
    domain: 'passed: exists',
    SPF: 'passed: published, 1 of 10 look-ups',
    DKIM: 'passed: 1 key found',
    DMARC: 'passed: policy reject',
  })
})

test('reports a domain that does not exist', async () => {
  expect((await look({})).domain).toBe('failed: does not exist in DNS')
})

test('a domain without records lacks all three', async () => {
  expect(await look({ 'example.com': 'unrelated=1' })).toEqual({
    domain: 'passed: exists',
    SPF: 'warning: has no SPF record',
    DKIM: 'warning: has no DKIM key',
    DMARC: 'warning: has no DMARC record',
  })
})

test.each([
  [['v=spf1 -all', 'v=spf1 ~all'], 'failed: has several SPF records, which counts as none'],
  ['v=spf1 +all', 'warning: has an SPF record that lets anybody send'],
  ['v=spf1 a all', 'warning: has an SPF record that lets anybody send'],
  [
    'v=spf1 a mx/24 exists:%{i}.x.example ptr redirect=_spf.provider.example',
    'passed: published, 5 of 10 look-ups',
  ],
  // Longer than one string of a TXT record may be.
  [`v=spf1 ${'ip4:192.0.2.1 '.repeat(30)}-all`, 'passed: published, 0 of 10 look-ups'],
  ['v=spf1 ~all redirect=missing.example', 'passed: published, 0 of 10 look-ups'],
  ['v=spf1 -all include:missing.example', 'passed: published, 0 of 10 look-ups'],
  ['v=spf1 include:%{d}.x.example unknown=1 -all', 'passed: published, 1 of 10 look-ups'],
  [
    'v=spf1 include:missing.example -all',
    'failed: has an SPF record whose include leads to a name without an SPF record, which counts as an error',
  ],
  [
    'v=spf1 redirect=missing.example',
    'failed: has an SPF record whose redirect leads to a name without an SPF record, which counts as an error',
  ],
  ...['ipv4:192.0.2.1', 'include:', 'all:x', '-'].map((term) => [
    `v=spf1 ${term} -all`,
    'failed: has an SPF record with a term that no receiver knows, which counts as an error',
  ]),
] as [string | string[], string][])('reports the SPF record %j as: %s', async (record, told) => {
  expect(
    (await look({ '_spf.provider.example': SOUND['_spf.provider.example'], 'example.com': record })).SPF,
  ).toBe(told)
})

test('look-ups of included records count, and an endless chain of them ends', async () => {
  const endless = { 'example.com': 'v=spf1 include:example.com -all' }
  const five = 'v=spf1 a a a a a -all'
  const both = { 'example.com': 'v=spf1 include:a.example.com include:b.example.com -all' }
  for (const records of [endless, { ...both, 'a.example.com': five, 'b.example.com': five }])
    expect((await look(records)).SPF).toMatch(/^failed: .*more than 10 look-ups/)
  const several = { ...both, 'a.example.com': 'v=spf1 -all', 'b.example.com': ['v=spf1 -all', 'v=spf1 ~all'] }
  expect((await look(several)).SPF).toMatch(/^failed: .*include leads to a name with several SPF records/)
})

test.each([
  [{ 'brand7._domainkey.example.com': `v=DKIM1; p=${KEY}` }, [], /^skipped: .*--dkim-selector/],
  [{ 'brand7._domainkey.example.com': `v=DKIM1; p=${KEY}` }, ['brand7'], /^passed: 1 key found/],
  [{ 's1._domainkey.example.com': `v=DKIM1; k=ed25519; p=${ED25519}` }, [], /^passed: 1 key found/],
  [
    { 's1._domainkey.example.com': `v=DKIM1; k=rsa; p=${ED25519}` },
    [],
    /^failed: .*under s1: its key .* cannot be read/,
  ],
  [{ 's1._domainkey.example.com': `v=DKIM1; p=${KEY}` }, ['brand7'], /^warning: lacks/],
  [{ 's1._domainkey.example.com': 'v=DKIM1; k=rsa; p=' }, [], /^warning: .*revoked/],
] as const)('DKIM keys %j, selectors %j: %s', async (records, dkimSelectors, told) => {
  expect((await look(records, { dkimSelectors: [...dkimSelectors] })).DKIM).toMatch(told)
})

test.each([
  [{ '_dmarc.example.com': 'v=DMARC1; p=none' }, 'passed: policy none: reports only'],
  [
    { '_dmarc.example.com': 'v=DMARC1; rua=mailto:a@example.com' },
    'failed: has a DMARC record without a policy',
  ],
  [
    { '_dmarc.example.com': ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] },
    'failed: has several DMARC records, which counts as none',
  ],
] as const)('reports the DMARC record %j as: %s', async (records, told) => {
  expect((await look(records)).DMARC).toBe(told)
})

test('a sub-domain follows the DMARC record above it, and an internationalised domain is asked in ASCII', async () => {
  const below = await look(
    { '_dmarc.example.com': 'v=DMARC1; p=quarantine' },
    { address: 'a@mail.example.com' },
  )
  expect(below.DMARC).toBe('passed: policy quarantine')
  // A record may say another policy for what is below it (RFC 7489 §6.3, sp).
  const apart = { '_dmarc.example.com': 'v=DMARC1; p=reject; sp=None' }
  expect((await look(apart)).DMARC).toBe('passed: policy reject')
  expect((await look(apart, { address: 'a@mail.example.com' })).DMARC).toBe(
    'passed: policy none: reports only',
  )
  const other = await look(
    { '_dmarc.xn--bcher-kva.example': 'v=DMARC1; p=reject' },
    { address: 'a@bücher.example' },
  )
  expect(other.DMARC).toBe('passed: policy reject')
})

const pair = (modulusLength: number) => {
  const { publicKey: published, privateKey } = generateKeyPairSync('rsa', { modulusLength })
  return {
    record: `v=DKIM1; k=rsa; p=${published.export({ type: 'spki', format: 'der' }).toString('base64')}`,
    key: secret(String(privateKey.export({ type: 'pkcs8', format: 'pem' }))),
  }
}
const OURS = pair(2048)
const SHORT = pair(1024)

test.each([
  [
    'the same key',
    OURS.record,
    OURS.key,
    'example.com',
    /^passed: s7\._domainkey\.example\.com publishes the key/,
  ],
  ['another key', SHORT.record, OURS.key, 'example.com', /^failed: publishes another key/],
  ['no key', undefined, OURS.key, 'example.com', /^failed: has no DKIM key at s7/],
  ['a revoked key', 'v=DKIM1; p=', OURS.key, 'example.com', /^failed: has a revoked/],
  [
    'a key of 1024 bits',
    SHORT.record,
    SHORT.key,
    'example.com',
    /^warning: signs with an RSA key of 1024 bits/,
  ],
  [
    'a domain that is not the sender’s',
    OURS.record,
    OURS.key,
    'other.example',
    /^warning: has no part in other/,
  ],
] as const)('the key that signs our mail is compared with DNS: %s', async (_, record, key, domain, told) => {
  const records = { ...SOUND, ...(record && { [`s7._domainkey.${domain}`]: record }) }
  const { DKIM } = await look(records, { dkim: { domain, selector: 's7', key } })
  expect(DKIM).toMatch(told)
})

test('SPF is looked up at the domain of the envelope, which DMARC must be able to count', async () => {
  const records = { ...SOUND, 'bounces.example.com': 'v=spf1 -all' }
  expect((await look(records, { bounceAddress: 'b@bounces.example.com' })).SPF).toMatch(
    /^passed: published, 0/,
  )
  expect((await look(records, { bounceAddress: 'b@other.example' })).SPF).toMatch(
    /^warning: has no part in other/,
  )
})

test('an API signs and takes bounces itself: only the domain of the sender is looked at', async () => {
  const ours = { domain: 'example.com', selector: 's7', key: OURS.key }
  const sent = {
    bounceAddress: 'b@other.example',
    dkim: ours,
    route: { kind: 'api', url: 'https://a.example' },
  }
  expect(await look(SOUND, sent as Parameters<typeof look>[1])).toMatchObject({
    SPF: 'passed: published, 1 of 10 look-ups',
    DKIM: 'passed: 1 key found',
  })
})

test.each([
  ['b@bounces.example.com', 'course@example.com', true],
  ['b@example.com', 'course@mail.example.com', true],
  ['b@notexample.com', 'course@example.com', false],
  ['b@example.com', 'course@notexample.com', false],
  ['b@example.com.evil.example', 'course@example.com', false],
])('bounces to %s count for mail from %s: %s', async (bounceAddress, address, counts) => {
  const { SPF } = await look(SOUND, { bounceAddress, address })
  expect(SPF?.includes('DMARC does not count its SPF')).toBe(!counts)
})

test('the domain of an address is behind its last @', async () => {
  expect((await look(SOUND, { address: '"a@b"@example.com' })).domain).toBe('passed: exists')
})

test('a top-level domain is never asked for DMARC, and every level below it is', async () => {
  const of = async (name: string) =>
    (await look({ [name]: 'v=DMARC1; p=reject' }, { address: 'a@x.mail.example.com' })).DMARC
  expect(await of('_dmarc.com')).toBe('warning: has no DMARC record')
  for (const name of ['_dmarc.example.com', '_dmarc.mail.example.com', '_dmarc.x.mail.example.com'])
    expect(await of(name)).toBe('passed: policy reject')
})

test('every selector that was named needs a key, and keys are counted', async () => {
  const records = {
    's1._domainkey.example.com': `v=DKIM1; p=${KEY}`,
    's2._domainkey.example.com': ['unrelated', `v=DKIM1; p=${KEY}`],
    's3._domainkey.example.com': 'v=DKIM1; p=',
  }
  expect((await look(records)).DKIM).toBe('passed: 2 keys found')
  expect((await look(records, { dkimSelectors: ['s1', 's2'] })).DKIM).toBe('passed: 2 keys found')
  for (const more of ['s3', 's4'])
    expect((await look(records, { dkimSelectors: ['s1', more] })).DKIM).toMatch(/^warning: lacks/)
})

test('a key of ours that is published as something else fails', async () => {
  const dkim = { domain: 'bücher.example', selector: 's7', key: OURS.key }
  const at = 's7._domainkey.xn--bcher-kva.example'
  const of = async (record: string) =>
    (await look({ [at]: record }, { address: 'a@bücher.example', dkim })).DKIM
  expect(await of('v=DKIM1; k=dsa; p=AAAA')).toBe(
    `failed: has an unusable DKIM key at ${at}: its kind of key (k=) is unknown`,
  )
  expect(await of(OURS.record)).toBe(`passed: ${at} publishes the key of MAILER_DKIM_KEY`)
})
