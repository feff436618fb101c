import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { FIRST_COURSE, NOTICES } from '../../../../src/core/course/definition.ts'
import { suppressionHash } from '../../../../src/core/course/links.ts'
import type { FeedbackEvent } from '../../../../src/core/mail/feedback/event.ts'
import {
  type MailboxChange,
  releaseChange,
  suppressionChange,
} from '../../../../src/core/mail/feedback/store.ts'
import type { Store } from '../../../../src/core/store/store.ts'
import { eventOf as anyEvent, hear } from '../../../support/feedback.ts'
import { begin, nextAfter } from '../../../support/learning.ts'
import { addressOf, openTestStore, STORES } from '../../../support/stores.ts'
import { asked, erasureOf, outcomeOf } from '../../../support/subscribers.ts'

const NOW = Date.parse('2026-11-22T08:00:00Z')
const HOUR = 60 * 60 * 1000
const DAY = 24 * HOUR
const KEY = 'a key for erased addresses in tests only'
const erasureHashes = (identity: string) => [suppressionHash(KEY, identity)]

const ENDED = { state: 'unsubscribed', problem: { kind: 'suppressed' } }

const eventOf = (kind: FeedbackEvent['kind'], about: Parameters<typeof anyEvent>[2] = {}) =>
  anyEvent(kind, NOW, about)
const apply = async (store: Store, feedback: readonly FeedbackEvent[], now = NOW) =>
  (await hear(store, feedback, { now, erasureHashes })).counts

const subscribe = (
  store: Store,
  name: string,
  { now = NOW - DAY, token = `token-${name}`, course = FIRST_COURSE, id = `id-${name}` } = {},
) => store.course.requestConfirmation(asked(name, now, { course, id, tokenHash: token }))

async function confirmed(store: Store, name = 'ada') {
  await subscribe(store, name)
  await store.course.confirm({ begin, tokenHash: `token-${name}`, now: NOW - DAY })
}

/** What an operator decides about Ada’s lesson. */
const retry = (store: Store, now: number) =>
  store.course.resolve({ id: 'id-ada', as: 'retry', now, next: nextAfter })

let calls = 0
function due(store: Store, now = NOW) {
  calls += 1
  return store.course.claimDue({ now, limit: 10, retries: 10, leaseMs: 90_000, call: `call-${calls}` })
}

describe.each(STORES)('on the store %s', (kind) => {
  const open = async () => openTestStore(await addressOf(kind))

  test('a hard bounce suppresses the address and ends its subscription, once however often it is delivered', async () => {
    const store = await open()
    await confirmed(store)
    await confirmed(store, 'grace')
    const bounce = eventOf('hard-bounce')
    expect(await apply(store, [bounce, bounce])).toMatchObject({ changed: 1, repeated: 1 })
    // What comes with one that is known takes effect all the same.
    const later = eventOf('soft-bounce', { name: 'grace' })
    expect(await apply(store, [bounce, later], NOW + HOUR)).toMatchObject({ changed: 1, repeated: 1 })
    expect((await store.course.history('id-grace')).at(-1)).toMatchObject({ kind: 'soft-bounce', at: NOW })
    expect((await due(store)).map(({ id }) => id)).toEqual(['id-grace'])
    expect(await store.course.findById('id-ada')).toMatchObject({
      state: 'unsubscribed',
      problem: { kind: 'bounced', reason: 'a hard-bounce in a test' },
    })
    expect(await store.feedback.listSuppressed(10)).toEqual([
      {
        identity: 'ada@example.com',
        cause: 'hard-bounce',
        at: NOW,
        source: 'postmark',
        reason: 'a hard-bounce in a test',
      },
    ])
    expect((await store.course.history('id-ada')).at(-1)).toMatchObject({
      at: NOW,
      kind: 'hard-bounce',
      source: 'postmark',
      reason: 'a hard-bounce in a test',
      messageId: 'm-1@example.com',
    })
    // Later reports are in the history too, at the time of the event, whether they change anything or not, except deliveries.
    for (const kind of ['unsubscribed', 'complaint', 'delivered'] as const)
      await apply(store, [eventOf(kind, { at: NOW + 1 })], NOW + HOUR)
    const past = await store.course.history('id-ada')
    expect(past.slice(-2).map(({ at }) => at)).toEqual([NOW + 1, NOW + 1])
    const kinds = past.map(({ kind }) => kind)
    expect(kinds.toSorted()).toEqual(['complaint', 'confirmed', 'hard-bounce', 'unsubscribed'])
  })

  test('an event about a recipient with a display name, as a provider may repeat it, is about the address', async () => {
    const store = await open()
    await confirmed(store)
    const event = { ...eventOf('hard-bounce'), address: '"Lovelace, Ada" <Ada@Example.com>' }
    expect(await apply(store, [event])).toMatchObject({ changed: 1 })
    expect(await store.feedback.listSuppressed(10)).toMatchObject([{ identity: 'ada@example.com' }])
  })

  test('a token that came without an event is taken, for its provider alone', async () => {
    const store = await open()
    await confirmed(store)
    const heard = (source: string, events: readonly FeedbackEvent[]) =>
      hear(store, events, { now: NOW, source, token: 'signed-once' })
    const complaint = eventOf('complaint', { id: 'signed-once' })
    await heard('mailgun', [])
    expect((await heard('mailgun', [complaint])).counts).toMatchObject({ changed: 0, repeated: 1 })
    expect(await store.feedback.find('ada@example.com')).toBeUndefined()
    expect((await heard('postmark', [complaint])).counts).toMatchObject({ changed: 1, repeated: 0 })
  })

  test('five soft bounces over three days count as hard, and a delivery between them starts the count anew', async () => {
    const store = await open()
    for (const name of ['ada', 'grace']) await confirmed(store, name)
    const soft = (name: string, day: number) => eventOf('soft-bounce', { name, at: NOW + day * DAY })
    for (const day of [0, 1, 2]) await apply(store, [soft('ada', day), soft('grace', day)], NOW + day * DAY)
    await apply(store, [eventOf('delivered', { name: 'grace', at: NOW + 2.5 * DAY })])
    for (const day of [3, 3.5]) await apply(store, [soft('ada', day), soft('grace', day)], NOW + day * DAY)
    expect(await store.feedback.find('ada@example.com')).toMatchObject({
      suppression: { cause: 'hard-bounce' },
    })
    expect(await store.feedback.find('grace@example.com')).toMatchObject({
      softBounces: 2,
      suppression: undefined,
    })
    expect((await due(store, NOW + 4 * DAY)).map(({ id }) => id)).toEqual(['id-grace'])
  })

  test('after a complaint neither undoing, an old link nor the operator’s resolve starts mail again', async () => {
    const store = await open()
    await confirmed(store)
    await subscribe(store, 'grace')
    await apply(store, [eventOf('complaint'), eventOf('complaint', { name: 'grace' })])
    await store.course.undoUnsubscribe({ id: 'id-ada', now: NOW + 1 })
    expect(await retry(store, NOW + 2)).toBe(false)
    expect(await store.course.confirm({ begin, tokenHash: 'token-grace', now: NOW + 3 })).toBe('confirmed')
    expect(await due(store, NOW + 2 * DAY)).toEqual([])
    for (const id of ['id-ada', 'id-grace']) expect(await store.course.findById(id)).toMatchObject(ENDED)
  })

  test.each(['complaint', 'hard-bounce'] as const)(
    'a %s about somebody who had left bars the undo',
    async (kind) => {
      const store = await open()
      await confirmed(store)
      await store.course.unsubscribe({ id: 'id-ada', now: NOW - HOUR })
      await apply(store, [eventOf(kind)])
      await store.course.undoUnsubscribe({ id: 'id-ada', now: NOW + 1 })
      expect(await due(store, NOW + 2 * DAY)).toEqual([])
    },
  )

  test('a complaint ends every course of its address, and a bounce of any of them proves whose it is', async () => {
    const store = await open()
    await confirmed(store)
    for (const course of [NOTICES, 'other']) {
      const now = NOW - DAY / 2
      await subscribe(store, 'ada', { token: course, course, id: `id-${course}`, now })
      // With the lessons of the first: which they are does not matter here.
      const first: typeof begin = (enrolment) => begin({ ...enrolment, course: FIRST_COURSE })
      await store.course.confirm({ begin: first, tokenHash: course, now })
    }
    await store.course.remember('id-other', {
      at: NOW,
      kind: 'attempt',
      enrolment: 1,
      day: 1,
      outcome: 'sent',
      messageId: 'of-the-second@example.com',
    })
    const sent = { identity: 'ada@example.com', recipients: [], messageId: 'of-the-second@example.com' }
    expect(await store.feedback.wasSent(sent)).toBe(true)
    expect(await store.feedback.wasSent({ ...sent, identity: 'grace@example.com' })).toBe(false)
    await apply(store, [eventOf('complaint')])
    for (const id of ['id-ada', 'id-other', `id-${NOTICES}`]) {
      expect(await store.course.findById(id)).toMatchObject(ENDED)
      expect((await store.course.history(id)).map(({ kind }) => kind)).toContain('complaint')
    }
    expect(await due(store)).toEqual([])
  })

  test('an address taken off the list can subscribe anew, and its old course does not go on by itself', async () => {
    const store = await open()
    await confirmed(store)
    await apply(store, [eventOf('complaint')])
    expect(await subscribe(store, 'ada', { token: 'too-early' })).toMatchObject({ mail: false })
    const release = { at: NOW + HOUR, reason: 'they asked us by phone', source: 'operator' }
    expect(await store.feedback.apply([releaseChange('ada@example.com', release)], NOW + HOUR)).toEqual([
      'changed',
    ])
    expect(await store.feedback.listSuppressed(10)).toEqual([])
    expect(await due(store, NOW + 2 * HOUR)).toEqual([])
    expect(await subscribe(store, 'ada', { token: 'anew', now: NOW + 2 * HOUR })).toMatchObject({
      mail: true,
    })
    expect(await store.course.confirm({ begin, tokenHash: 'anew', now: NOW + 3 * HOUR })).toBe('confirmed')
    expect(await due(store, NOW + 4 * HOUR)).toMatchObject([{ day: 1, enrolment: 2 }])
    expect((await store.course.history('id-ada')).map(({ kind }) => kind)).toEqual([
      'confirmed',
      'complaint',
      'released',
      'confirmed',
    ])
    await apply(store, [eventOf('complaint', { at: NOW + 5 * HOUR })], NOW + 5 * HOUR)
    const again = { kind: 'complaint', enrolment: 2 }
    expect((await store.course.history('id-ada')).at(-1)).toMatchObject(again)
  })

  test('resolving a bounced lesson takes its address off the list', async () => {
    const store = await open()
    await confirmed(store)
    await apply(store, [eventOf('hard-bounce')])
    expect(await retry(store, NOW + HOUR)).toBe(true)
    expect(await store.feedback.listSuppressed(10)).toEqual([])
    expect(await due(store, NOW + 2 * HOUR)).toHaveLength(1)
  })

  test('who unsubscribes at the provider after a bounce is brought back by no operator', async () => {
    const store = await open()
    await confirmed(store)
    await apply(store, [eventOf('hard-bounce'), eventOf('unsubscribed', { at: NOW + HOUR })], NOW + HOUR)
    expect(await retry(store, NOW + 2 * HOUR)).toBe(false)
    expect(await due(store, NOW + 2 * HOUR)).toEqual([])
  })

  test('who bounced out of two courses and was brought back to one can subscribe to the other anew', async () => {
    const store = await open()
    const inFirst = (one: Parameters<typeof begin>[0]) => begin({ ...one, course: FIRST_COURSE })
    const other = { course: 'second', id: 'id-other' }
    await confirmed(store)
    await subscribe(store, 'ada', { ...other, token: 'other', now: NOW - 2 * DAY })
    await store.course.confirm({ begin: inFirst, tokenHash: 'other', now: NOW - 2 * DAY })
    await apply(store, [eventOf('hard-bounce')])
    expect(await retry(store, NOW + HOUR)).toBe(true)
    // Refused, but not as suppressed: the address is off the list.
    const who = { ...asked('ada', NOW + HOUR, other), mailboxKey: 'ada@example.com' }
    const gone = { enrolled: false, reason: 'unsubscribed' }
    expect(await store.course.enrol({ ...who, begin: inFirst })).toEqual(gone)
    const goes = { sent: 0, lastSentAt: undefined, progress: undefined, confirmedAt: NOW }
    const how = { consent: { at: NOW, how: 'form' }, start: { lessons: 7, dueAt: NOW } }
    const arrivals = [{ ...who, ...goes, ...how }]
    expect(await store.course.admit({ arrivals, now: NOW + HOUR, dryRun: false })).toEqual(['unsubscribed'])
    const anew = { ...other, token: 'anew', now: NOW + 2 * HOUR }
    expect(await subscribe(store, 'ada', anew)).toMatchObject({ mail: true })
    await store.course.confirm({ begin: inFirst, tokenHash: 'anew', now: NOW + 3 * HOUR })
    expect(await store.course.findById('id-other')).toMatchObject({ state: 'confirmed', enrolment: 2 })
  })

  test('an unsubscribe at the provider ends the course, unless the subscriber has confirmed again since', async () => {
    const store = await open()
    for (const name of ['ada', 'grace']) await confirmed(store, name)
    await apply(store, [
      eventOf('unsubscribed'),
      eventOf('unsubscribed', { name: 'grace', at: NOW - 2 * DAY }),
    ])
    expect((await due(store)).map(({ id }) => id)).toEqual(['id-grace'])
    expect(await store.feedback.listSuppressed(10)).toEqual([])
  })

  test.each([
    ['of which a server whose clock is ten minutes ahead has the confirmation', 10 * 60_000, 45_000, 60_000],
    ['of which a server whose clock is two minutes ahead hears late', 2 * 60_000, 60_000, DAY],
    ['that a server hears whose clock is ten minutes behind', 0, -10 * 60_000, -10 * 60_000],
  ])('an unsubscribe at the provider %s ends the course', async (_, ahead, age, heard) => {
    const store = await open()
    await subscribe(store, 'ada')
    await store.course.confirm({ begin, tokenHash: 'token-ada', now: NOW + ahead })
    await apply(store, [eventOf('unsubscribed', { at: NOW + age })], NOW + heard)
    expect(await store.course.findById('id-ada')).toMatchObject({ state: 'unsubscribed' })
    expect(await due(store, NOW + 2 * DAY)).toEqual([])
  })

  test('who confirms over five minutes after an unsubscribe at the provider is enrolled, however late it is heard', async () => {
    const store = await open()
    for (const name of ['ada', 'grace']) await confirmed(store, name)
    const at = NOW - DAY - 5 * 60_000
    await apply(store, [
      eventOf('unsubscribed', { at }),
      eventOf('unsubscribed', { name: 'grace', at: at - 1 }),
    ])
    expect((await due(store)).map(({ id }) => id)).toEqual(['id-grace'])
  })

  test.each([false, true])(
    'who unsubscribed at the provider before any course began is in none until they subscribe themselves (asked: %s)',
    async (wasAsked) => {
      const store = await open()
      await store.getOrCreate('address_key', () => KEY)
      if (wasAsked) await subscribe(store, 'ada')
      await apply(store, [
        eventOf('unsubscribed'),
        eventOf('unsubscribed', { at: NOW - 1 }),
        eventOf('delivered', { name: 'grace' }),
      ])
      const about = (name: string, course: string) => {
        const who = asked(name, NOW, { course, id: `new-${name}-${course}` })
        return { ...who, mailboxKey: who.identity, erasureHashes: erasureHashes(who.identity) }
      }
      const goes = { sent: 0, lastSentAt: undefined, progress: undefined, confirmedAt: NOW }
      const how = { consent: { at: NOW, how: 'form' }, start: { lessons: 7, dueAt: NOW }, ...goes }
      const arrivals = [about('ada', FIRST_COURSE), about('ada', 'second'), about('grace', FIRST_COURSE)]
      expect(
        await store.course.admit({
          arrivals: arrivals.map((one) => ({ ...one, ...how })),
          now: NOW,
          dryRun: false,
        }),
      ).toEqual(['unsubscribed', 'unsubscribed', 'imported'])
      for (const course of [FIRST_COURSE, 'second'])
        expect(await store.course.enrol({ ...about('ada', course), begin })).toEqual({
          enrolled: false,
          reason: 'unsubscribed',
        })
      expect((await due(store)).map(({ address }) => address)).toEqual(['grace@example.com'])
      const later = { now: NOW + 2 * HOUR, token: 'own' }
      expect(await subscribe(store, 'ada', later)).toMatchObject({ mail: true })
      expect(await store.course.confirm({ begin, tokenHash: 'own', now: later.now })).toBe('confirmed')
      expect((await due(store, NOW + 3 * HOUR)).map(({ id }) => id)).toEqual(['id-ada'])
    },
  )

  test('a message in flight when its address complained counts as sent and triggers nothing', async () => {
    const store = await open()
    await confirmed(store)
    const [claim] = await due(store)
    if (claim === undefined) throw new Error('a lesson is due')
    await apply(store, [eventOf('complaint')])
    expect(await store.course.stillHolds(claim)).toBe(false)
    await store.course.settle([outcomeOf(claim, NOW + 1, { nextAttemptAt: NOW + DAY })])
    expect(await store.course.findById('id-ada')).toMatchObject({ ...ENDED, sentDays: [1] })
    await store.course.undoUnsubscribe({ id: 'id-ada', now: NOW + 2 })
    expect(await due(store, NOW + 3 * DAY)).toEqual([])
  })

  test('an erasure removes all feedback about a person but that mail is unwanted or bounces, also as later reports say', async () => {
    const store = await open()
    await confirmed(store)
    const identity = 'ada@example.com'
    const hash = suppressionHash(KEY, identity)
    const erase = () => store.course.erase(erasureOf('ada', hash, NOW))
    const kept = async () => {
      expect(await store.feedback.find(identity)).toBeUndefined()
      expect(await store.feedback.listSuppressed(10)).toEqual([])
      const found = await store.feedback.find(identity, erasureHashes(identity))
      expect(JSON.stringify(found ?? {})).not.toMatch(/ada|example/)
      return found && { soft: found.softBounces, ...found.suppression }
    }
    const asked = { at: NOW + 5, source: 'operator', reason: 'asked by Ada' } as const
    const change = async (one: MailboxChange) => (await store.feedback.apply([one], NOW + 5))[0]

    await apply(store, [eventOf('soft-bounce')])
    await erase()
    expect(await kept()).toBeUndefined()
    // What says nothing for good is not kept, and leaves no row.
    expect(await apply(store, [eventOf('soft-bounce'), eventOf('delivered')])).toMatchObject({ erased: 2 })
    expect(await kept()).toBeUndefined()

    const because = { source: 'postmark', reason: 'the address was erased' }
    expect(await apply(store, [eventOf('complaint')])).toMatchObject({ erased: 1 })
    expect(await kept()).toEqual({ soft: 0, cause: 'complaint', at: NOW, ...because })
    expect(await apply(store, [eventOf('hard-bounce'), eventOf('complaint')])).toMatchObject({ erased: 2 })
    await erase()
    expect(await kept()).toEqual({ soft: 0, cause: 'hard-bounce', at: NOW, ...because })

    expect(await change(releaseChange(identity, asked, erasureHashes(identity)))).toBe('changed')
    expect(await kept()).toEqual({ soft: 0 })
    const manual = { cause: 'manual', ...asked } as const
    expect(await change(suppressionChange(identity, manual, erasureHashes))).toBe('erased')
    expect(await kept()).toEqual({ soft: 0, ...manual, reason: because.reason })
  })

  test('a suppression that was kept under an earlier key is taken off the list, too', async () => {
    const store = await open()
    const identity = 'ada@example.com'
    const hashes = [suppressionHash(KEY, identity), suppressionHash('an earlier key', identity)] as const
    const change = async (one: MailboxChange) => (await store.feedback.apply([one], NOW))[0]
    const why = { cause: 'complaint', at: NOW, source: 'operator', reason: 'asked' } as const
    await store.course.erase(erasureOf('ada', hashes[1], NOW))
    await change(suppressionChange(identity, why, () => hashes))
    await store.course.erase(erasureOf('ada', hashes[0], NOW))
    expect(await change(releaseChange(identity, why, hashes))).toBe('changed')
    expect((await store.feedback.find(identity, hashes))?.suppression).toBeUndefined()
  })

  test('an erasure keeps that an address is suppressed, under its hash and without a text about it', async () => {
    const store = await open()
    await confirmed(store)
    const identity = 'ada@example.com'
    await apply(store, [eventOf('complaint')])
    const hash = suppressionHash('an earlier key', identity)
    await store.course.erase(erasureOf('ada', hash, NOW + 1))
    expect(await store.feedback.find(identity)).toBeUndefined()
    expect(await store.feedback.listSuppressed(10)).toEqual([])
    const found = async () => (await store.feedback.find(identity, [hash]))?.suppression
    const kept = { cause: 'complaint', at: NOW, source: 'postmark', reason: 'the address was erased' }
    expect(await found()).toEqual(kept)
    // Also beside a row of a process that has another key.
    await hear(store, [eventOf('soft-bounce')], { now: NOW })
    expect(await found()).toEqual(kept)
  })

  test('feedback that two processes take at the same moment takes effect once, and none is lost', async () => {
    const address = await addressOf(kind)
    const stores =
      kind === 'memory'
        ? [await openTestStore(address)]
        : await Promise.all([1, 2, 3].map(() => openTestStore(address)))
    const [first] = stores
    if (first === undefined) throw new Error('there is a store')
    await confirmed(first)
    const softs = Array.from({ length: 12 }, (_, n) => eventOf('soft-bounce', { at: NOW + n * HOUR }))
    const counts = await Promise.all(
      [...softs, ...softs].map((soft, n) => apply(stores[n % stores.length] ?? first, [soft])),
    )
    expect(counts.reduce((sum, { repeated }) => sum + repeated, 0)).toBe(12)
    expect(await first.feedback.find('ada@example.com')).toMatchObject({ softBounces: 12 })
  })

  test('the list is read in pages', async () => {
    const store = await open()
    const names = Array.from({ length: 5 }, (_, n) => `p${n}@example.com`)
    await store.feedback.apply(
      names.map((identity) =>
        suppressionChange(identity, { cause: 'manual', at: NOW, source: 'import', reason: 'r' }, () => []),
      ),
      NOW,
    )
    const first = await store.feedback.listSuppressed(3)
    const last = first.at(-1)
    const second = await store.feedback.listSuppressed(3, last)
    expect([...first, ...second].map(({ identity }) => identity)).toEqual(names)
  })

  test('keys of events are forgotten after their time', async () => {
    const store = await open()
    const old = eventOf('soft-bounce')
    await apply(store, [old])
    await store.feedback.prune(NOW)
    expect(await apply(store, [old])).toMatchObject({ repeated: 1 })
    await store.feedback.prune(NOW + 1)
    expect(await apply(store, [old])).toMatchObject({ repeated: 0 })
  })
})

test('a webhook of 100 events is recorded in one commit of the file', async () => {
  const address = await addressOf('sqlite')
  if (address?.kind !== 'sqlite') throw new Error('the store is a file')
  const store = await openTestStore(address)
  const names = Array.from({ length: 100 }, (_, n) => `p${n}`)
  for (const name of names) await confirmed(store, name)
  const before = commitsIn(`${address.file}-wal`)
  await apply(
    store,
    names.map((name, n) => eventOf(n % 2 === 0 ? 'complaint' : 'hard-bounce', { name })),
  )
  expect(commitsIn(`${address.file}-wal`) - before).toBe(1)
  expect(await store.feedback.listSuppressed(1000)).toHaveLength(100)
  expect(await due(store)).toEqual([])
})

/** Frames of a write-ahead log that end a commit: those that name the size of the database. */
function commitsIn(file: string): number {
  const wal = readFileSync(file)
  const frame = wal.readUInt32BE(8) + 24
  let commits = 0
  for (let at = 32; at + frame <= wal.length; at += frame)
    // Frames of before the log was started over have another salt.
    if (wal.readUInt32BE(at + 4) > 0 && wal.readUInt32BE(at + 8) === wal.readUInt32BE(16)) commits += 1
  return commits
}
