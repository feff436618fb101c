import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemRandom } from '../../../../src/core/host.ts'
import { createBounceAddresses } from '../../../../src/core/mail/feedback/bounce-address.ts'
import { bounceKind, enhancedCode, reasonFor } from '../../../../src/core/mail/feedback/event.ts'
import { matchReports, type ReportedMessage } from '../../../../src/core/mail/feedback/message.ts'
import { createPacer, createTally } from '../../../../src/core/mail/feedback/pacer.ts'
import {
  type CountedKind,
  countedDomain,
  dailyMail,
  firstOfDays,
  type MailCount,
  type MailDayCount,
  sumCounts,
} from '../../../../src/core/mail/feedback/sending.ts'
import {
  importSuppressions,
  releaseAddress,
  suppressAddress,
  suppressedAddresses,
} from '../../../../src/core/mail/feedback/suppressions.ts'
import { virtualTime } from '../../../simulation/virtual-time.ts'
import { openTestStore } from '../../../support/stores.ts'
import { erasureOf, subscribe } from '../../../support/subscribers.ts'
import { during } from '../../../support/virtual-work.ts'

const NOW = Date.parse('2026-11-22T08:00:30Z')
const DAY = 24 * 60 * 60 * 1000

async function opened() {
  const store = await openTestStore(undefined)
  const list = {
    store: store.feedback,
    sending: store.sending,
    erasureHashes: (identity: string) => [`hash of ${identity.split('@')[0]}`],
    bounceAddresses: undefined,
    wasSent: async () => false,
  }
  const by = { operator: { name: 'op', place: 'here' }, clock: { now: () => NOW }, random: systemRandom }
  return { store, list, by }
}

test('an operator’s word puts an address on the list and takes it off, each with a line of the audit', async () => {
  const { store, list, by } = await opened()
  const ada = { identity: 'ada@example.com', ...by }
  const suppress = () => suppressAddress(list, { ...ada, cause: 'manual', reason: 'asked to' })
  expect([await suppress(), await suppress()]).toEqual(['added', 'known'])
  expect(await releaseAddress(list, { ...ada, reason: 'asked back' })).toBe('removed')
  expect(await releaseAddress(list, { ...ada, reason: 'asked back' })).toBeUndefined()
  expect(await releaseAddress(list, { ...ada, identity: 'nobody@example.com', reason: 'r' })).toBeUndefined()
  const lines = (await store.audit.list(9)).map(({ id: _, ...line }) => line)
  const line = { at: NOW, who: 'op', place: 'here', subject: 'hash of ada' }
  expect(lines).toHaveLength(3)
  expect(lines).toContainEqual({ ...line, action: 'unsuppress', details: 'asked back' })
  expect(lines).toContainEqual({ ...line, action: 'suppress', details: 'manual: asked to' })
})

test('no address in a reason is kept in the history of a course', async () => {
  const { store, list, by } = await opened()
  await subscribe(store, 'ada', NOW)
  const ada = { identity: 'ada@example.com', ...by, reason: 'max@example.com asked' }
  await suppressAddress(list, { ...ada, cause: 'manual' })
  await releaseAddress(list, ada)
  const reasons = (await store.course.history('ada')).flatMap(({ reason }) => reason ?? [])
  expect(reasons).toEqual(['[address] asked', '[address] asked'])
})

test('an export is imported in commits of 500 with one line of the audit, dated no later than now, and twice changes nothing', async () => {
  const { store, list, by } = await opened()
  const row = (address: string, at?: number) => ({ address, cause: 'complaint', at, reason: 'r' }) as const
  const rows = [
    row('no address'),
    row('late@example.com', NOW + DAY),
    row('undated@example.com'),
    ...Array.from({ length: 1000 }, (_, n) => row(`p${n}@example.com`, NOW - DAY)),
  ]
  const commits: number[] = []
  const counting = {
    ...list,
    store: {
      ...store.feedback,
      apply: (...args: Parameters<typeof store.feedback.apply>) => {
        commits.push(args[0].length)
        return store.feedback.apply(...args)
      },
    },
  }
  const load = () => importSuppressions(counting, { rows, file: 'export.csv', ...by })
  expect(await load()).toEqual({ added: 1002, known: 0, skipped: 1 })
  expect(commits).toEqual([500, 500, 2])
  expect(await store.audit.list(9)).toMatchObject([
    { action: 'suppress', subject: undefined, details: 'import of 1002 addresses from export.csv' },
  ])
  expect(await load()).toEqual({ added: 0, known: 1002, skipped: 1 })
  for (const name of ['late', 'undated'])
    expect((await store.feedback.find(`${name}@example.com`))?.suppression).toMatchObject({
      at: NOW,
      source: 'import',
    })
  await store.course.erase(erasureOf('late', 'hash of late', NOW))
  expect(await load()).toEqual({ added: 0, known: 1001, skipped: 2 })
  const listed = []
  for await (const { identity } of suppressedAddresses(store.feedback)) listed.push(identity)
  expect([listed.length, new Set(listed).size]).toEqual([1001, 1001])
})

const reported = (parts: Partial<ReportedMessage> = {}): ReportedMessage => ({
  kind: 'hard-bounce',
  address: 'Ada@example.com',
  messageId: 'm-1',
  reason: 'r',
  ...parts,
})

test('a report is believed only of a recipient that its envelope sender or its Message-ID proves', async () => {
  const asked: unknown[] = []
  const match = (reports: ReportedMessage[], { raw = 'raw', recipients = [] as string[], sent = '' } = {}) =>
    matchReports({ kind: 'report', reports, recipients } as never, raw, {
      bounceAddresses: createBounceAddresses('bounce@example.com', 'key'),
      wasSent: async (input) => {
        asked.push(input)
        return input.identity === sent
      },
      now: NOW,
    })
  const event = {
    id: 'm-1/ada@example.com/hard-bounce',
    kind: 'hard-bounce',
    address: 'ada@example.com',
    messageId: 'm-1',
    at: NOW,
    reason: 'r',
  }
  expect(await match([reported()])).toEqual({ events: [], unmatched: [reported()] })
  expect(await match([reported()], { sent: 'ada@example.com' })).toEqual({ events: [event], unmatched: [] })
  const sender = createBounceAddresses('bounce@example.com', 'key').senderFor('ada@example.com')
  const spelled = createBounceAddresses('bounce@example.com', 'key').senderFor('Ada@EXAMPLE.com')
  expect(spelled).toBe(sender)
  // Servers between us and the receiver may know no other letters in a domain.
  const abroad = createBounceAddresses('bounce@bücher.example', 'key').senderFor('ada@example.com')
  expect(abroad).toMatch(/^bounce\+[a-z2-7]{26}@xn--bcher-kva\.example$/)
  // As it was set; servers may answer to it in lower case.
  const capital = createBounceAddresses('Bounce@Example.com', 'key')
  expect(capital.namedIn(`To: ${sender}`)('ada@example.com')).toBe(true)
  // What a team’s mailbox sorts its mail by stays.
  const tagged = createBounceAddresses('team+bounces@example.com', 'key').senderFor('ada@example.com')
  expect(tagged).toMatch(/^team\+bounces\+[a-z2-7]{26}@/)
  asked.length = 0
  // Several of our bounces may be in one message.
  const other = createBounceAddresses('bounce@example.com', 'key').senderFor('bob@example.com')
  const named = { raw: `To: ${other}, ${sender.toUpperCase()}` }
  expect((await match([reported()], named)).events).toEqual([event])
  // The envelope sender proves it: nobody is asked.
  expect(asked).toEqual([])
  const digest = createHash('sha256').update(named.raw).digest('base64url')
  expect((await match([reported({ messageId: undefined })], named)).events).toMatchObject([
    { id: `${digest}/ada@example.com/hard-bounce`, messageId: undefined },
  ])
  expect((await match([reported({ messageId: undefined })])).unmatched).toHaveLength(1)
  expect(asked).toEqual([])
  // Where one report names nobody, or who it was forwarded to, the returned message says it; not where there are several.
  const elsewhere = { recipients: ['ada@example.com'], sent: 'ada@example.com' }
  expect((await match([reported({ address: undefined })], elsewhere)).events).toEqual([event])
  expect((await match([reported({ address: 'x@other.example' })], elsewhere)).events).toEqual([event])
  const two = [reported({ address: undefined }), reported({ address: 'not an address' })]
  expect(await match(two, elsewhere)).toEqual({ events: [], unmatched: two })
})

test('of several texts the first precise status code counts, and a vague one only without it', () => {
  expect(enhancedCode('550', '5.0.0', '550 5.1.1 no such user', '5.2.2')).toBe('5.1.1')
  expect(enhancedCode(undefined, '5.0.0', 550, 'none')).toBe('5.0.0')
  expect(enhancedCode()).toBeUndefined()
  expect(enhancedCode('No such user, 550 5.1.1.')).toBe('5.1.1')
})

test.each([
  ['550 5.1.1 no such user', '5.1.1'],
  ['4.02.010', '4.2.10'],
  ['15.1.1', undefined],
  ['5.1.1.1', undefined],
  ['3.1.1', undefined],
  ['5.1.1234', undefined],
  ['2.0.0 ok, then 5.1.1', '2.0.0'],
  ['none', undefined],
])('the status code in %j is %s', (text, code) => {
  expect(enhancedCode(text)).toBe(code)
})

test('only a mailbox or domain that does not exist is a hard bounce, and the reason is a sentence of ours', () => {
  const hard = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.1.4', '5.1.11', '4.1.1', '5.2.1', undefined]
  expect(hard.map((code) => bounceKind(code) === 'hard-bounce')).toEqual([
    ...Array(5).fill(true),
    ...Array(5).fill(false),
  ])
  expect(
    ['5.1.1', '5.1.8', '5.2.2', '4.3.0', '5.4.1', '5.5.0', '5.6.0', '5.7.1', '5.9.1'].map((one) =>
      reasonFor(bounceKind(one), one),
    ),
  ).toEqual([
    'the address does not exist (5.1.1)',
    'the address was refused (5.1.8)',
    'the mailbox does not accept mail (5.2.2)',
    'the receiving mail system could not take the message (4.3.0)',
    'the message could not be routed or timed out (5.4.1)',
    'the mail servers did not understand each other (5.5.0)',
    'the content could not be converted (5.6.0)',
    'a policy of the receiver refused the message (5.7.1)',
    'the message was returned (5.9.1)',
  ])
  expect([reasonFor('soft-bounce', undefined), reasonFor('hard-bounce', undefined)]).toEqual([
    'the message was returned',
    'the address does not exist',
  ])
})

const count = (kind: CountedKind, parts: Partial<MailCount> = {}): MailCount => ({
  at: NOW,
  kind,
  source: 'ses',
  domain: 'gmail.com',
  count: 1,
  ...parts,
})

test('counts are summed by minute for what the breaker looks at and by day for everything, in one order', () => {
  const minute = Math.floor(NOW / 60_000)
  const rows = sumCounts([
    count('sent', { count: 2 }),
    count('soft-bounce'),
    count('sent', { at: NOW + 29_999, count: 3 }),
    count('sent', { at: NOW + 30_000 }),
    count('complaint'),
    count('hard-bounce', { domain: 'other', source: 'pipe' }),
    count('delivered'),
  ])
  expect(rows.minutes).toEqual([
    { minute, kind: 'complaint', count: 1 },
    { minute, kind: 'hard-bounce by mail', count: 1 },
    { minute, kind: 'sent', count: 5 },
    { minute: minute + 1, kind: 'sent', count: 1 },
  ])
  const day = { day: '2026-11-22', source: 'ses', domain: 'gmail.com' }
  expect(rows.days).toEqual([
    { ...day, source: 'pipe', domain: 'other', kind: 'hard-bounce', count: 1 },
    { ...day, kind: 'complaint', count: 1 },
    { ...day, kind: 'delivered', count: 1 },
    { ...day, kind: 'sent', count: 6 },
    { ...day, kind: 'soft-bounce', count: 1 },
  ])
  expect(['a@gmail.com', '"x@gmail.com"@small.example', 'a@qq.com'].map(countedDomain)).toEqual([
    'gmail.com',
    'other',
    'qq.com',
  ])
})

test('the days of mail are all there, oldest first, summed over sources and recipients', () => {
  const of = (day: string, kind: MailDayCount['kind'], number: number, source = 'ses'): MailDayCount => ({
    day,
    kind,
    source,
    domain: 'other',
    count: number,
  })
  const counts = [
    of('2026-11-22', 'sent', 2),
    of('2026-11-22', 'sent', 3, 'pipe'),
    of('2026-11-20', 'hard-bounce', 1),
    of('2026-11-20', 'soft-bounce', 4),
    of('2026-11-20', 'complaint', 5),
    of('2026-11-19', 'sent', 9),
  ]
  const none = { sent: 0, hardBounces: 0, softBounces: 0, complaints: 0 }
  expect(dailyMail(counts, { days: 3, now: NOW })).toEqual([
    { day: '2026-11-20', ...none, hardBounces: 1, softBounces: 4, complaints: 5 },
    { day: '2026-11-21', ...none },
    { day: '2026-11-22', ...none, sent: 5 },
  ])
  expect(firstOfDays(1, NOW)).toBe(NOW)
})

test('a tally is written after a second, and what could not be written is not written twice', async () => {
  const written: number[] = []
  let now = 0
  let fails = false
  const tally = createTally(
    async () => ({
      count: async (counts: readonly MailCount[]) => {
        if (fails) throw new Error('the store is away')
        written.push(counts.reduce((sum, one) => sum + one.count, 0))
      },
    }),
    { monotonic: () => now },
  )
  now = 999
  await tally.add(count('sent'))
  expect(written).toEqual([])
  now = 1000
  await tally.add(count('sent'))
  expect(written).toEqual([2])
  now = 1999
  await tally.add(count('sent'))
  await tally.flush()
  await tally.flush()
  expect(written).toEqual([2, 1])
  fails = true
  now = 9999
  await expect(tally.add(count('sent'))).rejects.toThrow('the store is away')
  fails = false
  await tally.flush()
  expect(written).toEqual([2, 1])
})

test('places are reserved for half a second together, wait for the first, and those not used go to the next', async () => {
  let now = 0
  let fails = false
  const reserved: unknown[] = []
  const slept: number[] = []
  const pacer = createPacer({
    perSecond: 4,
    store: async () => ({
      reserve: async (asked: unknown) => {
        if (fails) throw new Error('the store is away')
        reserved.push(asked)
        return 30_000
      },
    }),
    timer: {
      monotonic: () => now,
      async sleep(ms) {
        slept.push(ms)
        now += ms
      },
    },
  })
  const { signal } = new AbortController()
  expect(await pacer.places(9, signal)).toEqual([30, 280])
  expect(await pacer.places(1, signal)).toEqual([60])
  expect(reserved).toEqual([
    { messages: 2, intervalUs: 250_000 },
    { messages: 1, intervalUs: 250_000 },
  ])
  expect(slept.splice(0)).toEqual([30, 30])
  // The next caller waits for what was returned, and then needs no wait; half a second after its time it is lost.
  pacer.giveBack([280, 60])
  expect(await pacer.places(1, signal)).toEqual([60])
  expect(slept).toEqual([])
  now = 780
  expect(await pacer.places(1, signal)).toEqual([280])
  pacer.giveBack([280])
  now = 781
  fails = true
  await expect(pacer.places(1, signal)).rejects.toThrow('the store is away')
  fails = false
  await expect(pacer.places(1, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped')
  // A mail that somebody waits for takes a place without waiting.
  await pacer.passed()
  expect(slept).toEqual([])
  expect(reserved.at(-1)).toEqual({ messages: 1, intervalUs: 250_000 })
})

test('who waits for a place gets an earlier one that is returned, and leaves its own to the next', async () => {
  const time = virtualTime(0)
  let next = 0
  const pacer = createPacer({
    perSecond: 0.2,
    store: async () => ({
      async reserve({ intervalUs }) {
        next += intervalUs
        return next - time.elapsed() * 1000
      },
    }),
    timer: time.clock,
  })
  const { signal } = new AbortController()
  const waiting = pacer.places(1, signal)
  time.after(1000, () => pacer.giveBack([1000]))
  expect(await during(time, waiting)).toEqual([1000])
  const stop = new AbortController()
  const stopped = pacer.places(1, stop.signal)
  stop.abort(new Error('stopped'))
  await expect(stopped).rejects.toThrow('stopped')
  expect(await during(time, pacer.places(1, signal))).toEqual([5000])
})
