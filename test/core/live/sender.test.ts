import { expect, test } from 'vitest'
import { openNetwork } from '../../../src/core/live/network.ts'
import { senderSteps } from '../../../src/core/live/sender.ts'
import { nameServer } from '../../support/outside.ts'

const SOUND = {
  'example.com': ['unrelated=1', 'v=spf1 include:_spf.provider.example -all'],
  '_spf.provider.example': 'v=spf1 ip4:192.0.2.0/24 ~all',
  's1._domainkey.example.com': `v=DKIM1; k=rsa; p=${'A'.repeat(400)}`,
  '_dmarc.example.com': 'v=DMARC1; p=reject; rua=mailto:reports@example.com',
}

async function look(
  records: Parameters<typeof nameServer>[0],
  { address = 'course@example.com', dkimSelectors = [] as string[] } = {},
) {
  const network = openNetwork({ nameServers: [await nameServer(records)] })
  const { signal } = new AbortController()
  const results = await Promise.all(
    senderSteps({ network, dkimSelectors }, address).map(
      async (step) => [step.check, await step.run(signal)] as const,
    ),
  )
  return Object.fromEntries(results.map(([check, { state, detail }]) => [check, `${state}: ${detail}`]))
}

test('a domain with all three records passes, its key read from several strings', async () => {
  expect(await look(SOUND)).toEqual({
    SPF: 'passed: published, 1 of 10 look-ups',
    DKIM: 'passed: 1 key found',
    DMARC: 'passed: policy reject',
  })
})

test('a domain that is unknown lacks all three', async () => {
  expect(await look({})).toEqual({
    SPF: 'warning: has no SPF record',
    DKIM: 'warning: has no DKIM key',
    DMARC: 'warning: has no DMARC record',
  })
})

test.each([
  [['v=spf1 -all', 'v=spf1 ~all'], 'warning: has several SPF records, which counts as none'],
  ['v=spf1 +all', 'warning: has an SPF record that lets anybody send'],
  ['v=spf1 a all', 'warning: has an SPF record that lets anybody send'],
  ['v=spf10 -all', 'warning: has no SPF record'],
  ['v=spf1 a mx/24 exists:%{i}.x.example ptr redirect=other.example', 'passed: published, 5 of 10 look-ups'],
  ['v=spf1 ip4:192.0.2.1 -all', 'passed: published, 0 of 10 look-ups'],
])('the SPF record %j is told as: %s', async (record, told) => {
  expect((await look({ 'example.com': record })).SPF).toBe(told)
})

test('look-ups of included records count, and an endless chain of them ends', async () => {
  const { SPF } = await look({ 'example.com': 'v=spf1 include:example.com -all' })
  expect(SPF).toMatch(/^warning: .*more than 10 look-ups/)
})

test.each([
  [{ 'brand7._domainkey.example.com': 'v=DKIM1; p=AAAA' }, [], /^skipped: .*--dkim-selector/],
  [{ 'brand7._domainkey.example.com': 'v=DKIM1; p=AAAA' }, ['brand7'], /^passed: 1 key found/],
  [{ 's1._domainkey.example.com': 'v=DKIM1; p=AAAA' }, ['brand7'], /^warning: lacks/],
  [{ 's1._domainkey.example.com': 'v=DKIM1; k=rsa; p=' }, [], /^warning: .*revoked/],
] as const)('DKIM keys %j, selectors %j: %s', async (records, dkimSelectors, told) => {
  expect((await look(records, { dkimSelectors: [...dkimSelectors] })).DKIM).toMatch(told)
})

test.each([
  [{ '_dmarc.example.com': 'v=DMARC1; p=none' }, 'passed: policy none: reports only'],
  [
    { '_dmarc.example.com': 'v=DMARC1; rua=mailto:a@example.com' },
    'warning: has a DMARC record without a policy',
  ],
  [
    { '_dmarc.example.com': ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] },
    'warning: has several DMARC records, which counts as none',
  ],
] as const)('the DMARC record %j is told as: %s', async (records, told) => {
  expect((await look(records)).DMARC).toBe(told)
})

test('a sub-domain follows the DMARC record above it, and an internationalised domain is asked in ASCII', async () => {
  const below = await look(
    { '_dmarc.example.com': 'v=DMARC1; p=quarantine' },
    { address: 'a@mail.example.com' },
  )
  expect(below.DMARC).toBe('passed: policy quarantine')
  const other = await look(
    { '_dmarc.xn--bcher-kva.example': 'v=DMARC1; p=reject' },
    { address: 'a@bücher.example' },
  )
  expect(other.DMARC).toBe('passed: policy reject')
})
