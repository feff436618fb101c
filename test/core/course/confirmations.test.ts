import { rm } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { UNCONFIRMED_KEPT_MS } from '../../../src/core/course/due.ts'
import type { CourseOptions } from '../../../src/core/course/open.ts'
import type { CourseStore } from '../../../src/core/course/store.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { systemClock } from '../../../src/core/host.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import type { Hold } from '../../../src/core/mail/holds.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'
import { copyStore, openMaintenance } from '../../../src/core/store/open.ts'
import { byHand } from '../../support/by-hand.ts'
import { ADA, courseNamed, courseWith, tokenIn } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { addressOf, KEPT, openTestStore, type StoreKind } from '../../support/stores.ts'

const NEVER = new Promise<never>(() => {})
const LEASE_MS = 90_000
/** In the history, what an older build noted. */
const BY_OLDER = { kind: 'confirmation', enrolment: 0, day: 0 } as const

/** Processes on one store, and time that only the test lets pass. */
async function world(kind: StoreKind) {
  const it = await courseWith(0, { kind, leaseClock: 'standing' })
  const timer = { monotonic: it.now, sleep: () => NEVER }
  const process = (faults: Partial<CourseStore> = {}, more: Partial<CourseOptions> = {}) =>
    it.open({ ...it.store.course, ...faults }, { timer, more })
  const other = process()
  return {
    ...it,
    other,
    process,
    ask: (course = other, more = {}) => it.subscribe({ ...ADA, ...more }, course),
    history: async () =>
      (await other.history((await other.find(ADA.identity))?.id ?? '')).map(({ kind, outcome }) =>
        outcome === undefined ? kind : `${kind} ${outcome}`,
      ),
  }
}

test.each(['memory', 'sqlite'] as const)(
  'a subscription on the store %s is answered while the provider is silent',
  async (kind) => {
    const it = await courseWith(0, { kind })
    it.answer(() => NEVER)
    const course = it.open(it.store.course, { more: { persistent: kind !== 'memory' } })
    expect(await course.subscribe(ADA)).toEqual({ status: 'pending', sent: true })
  },
)

describe.each(KEPT)('confirmations on %s', (kind) => {
  test('a confirmation whose process is killed before the handover is mailed by another, and asking again mails no second', async () => {
    const it = await world(kind)
    const killed = it.process({ checkToken: () => NEVER })
    expect(await killed.subscribe(ADA)).toEqual({ status: 'pending', sent: true })
    expect(await it.other.deliverMessages()).toBe(0)
    expect(await it.ask()).toEqual({ status: 'pending', sent: true })
    expect(it.messages).toEqual([])
    it.pass(LEASE_MS)
    expect(await it.other.deliverMessages()).toBe(1)
    expect(await it.other.deliverMessages()).toBe(0)
    expect(await it.history()).toEqual(['confirmation sent'])
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('one whose process is killed after the handover is repeated under its key, with the same link', async () => {
    const it = await world(kind)
    await it.process({ settleMessages: () => NEVER }).subscribe(ADA)
    await expect.poll(() => it.messages.length).toBe(1)
    for (const table of ['message', 'confirmation', 'subscription'])
      expect(JSON.stringify(await byHand(it.address, `SELECT * FROM ${table}`))).not.toContain(it.token())
    it.pass(LEASE_MS)
    expect(await it.other.deliverMessages()).toBe(1)
    const [first, second] = it.messages
    expect(second).toMatchObject({ key: first?.key, messageId: first?.messageId, text: first?.text })
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('one whose outcome nobody knows is repeated with the same bytes, whatever was edited since', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'unknown', reason: 'the connection broke' }))
    await it.ask()
    it.pass(10 * MINUTE_MS)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    // An attempt that our own fault kept from being made says nothing of the one before it.
    await it.process({ checkToken: () => Promise.reject(new TypeError('ours')) }).deliverMessages()
    expect(it.messages).toHaveLength(1)
    it.pass(10 * MINUTE_MS)
    const edited = async () => {
      const mails = await compiledMails()
      const mail = mails['subscription-confirmation']
      if (mail === undefined) throw new Error('the mail is missing')
      return { ...mails, 'subscription-confirmation': { ...mail, subject: ['Edited'] } }
    }
    expect(await it.process({}, { mailer: it.mailer(edited) }).deliverMessages()).toBe(1)
    const [first, second] = it.messages
    expect(second).toEqual(first)
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('a provider that says no for days delays a confirmation, with pauses of 5 to 60 minutes', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'refused' }))
    await it.ask()
    const tries: number[] = []
    for (let minute = 0; minute < 5 * 60; minute += 5) {
      it.pass(5 * MINUTE_MS)
      const before = it.messages.length
      await it.other.deliverMessages()
      if (it.messages.length > before) tries.push(minute)
    }
    const pauses = tries.map((at, index) => at - (tries[index - 1] ?? 0)).slice(1)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(5)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(65)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.pass(2 * DAY_MS)
    expect(await it.other.deliverMessages()).toBe(1)
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test.each([3 * DAY_MS, 9 * HOUR_MS])(
    'one that was asked for while the clock was %i ms ahead waits out its pauses all the same',
    async (aheadMs) => {
      const it = await world(kind)
      it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
      await it.ask(it.process({}, { clock: { ...systemClock, now: () => it.now() + aheadMs } }))
      for (let minute = 0; minute < 60; minute += 1) {
        it.pass(MINUTE_MS)
        await it.other.deliverMessages()
      }
      expect(it.messages.length).toBeGreaterThan(3)
      expect(it.messages.length).toBeLessThan(8)
    },
  )

  test('a link that an older build mailed since works, and the one that waits for its mail holds up no other', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await it.ask()
    it.pass(2 * HOUR_MS)
    const tokenHash = 'the hash of the token that it mailed itself'
    const who = { course: 'quantum', identity: ADA.identity, address: ADA.spelling, id: 'other' }
    await it.store.course.requestConfirmation({ ...who, tokenHash, now: it.now() })
    await it.ask(it.other, { spelling: 'grace@example.com', identity: 'grace@example.com' })
    it.pass(HOUR_MS)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    expect(await it.other.deliverMessages()).toBe(1)
    expect(await it.store.course.checkToken({ tokenHash, now: it.now() })).toBe('use')
  })

  test('a link that an older build mailed by its own retry stays the one that works', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await it.ask()
    const { id } = (await it.store.course.find(ADA.identity)) ?? { id: '' }
    it.pass(HOUR_MS)
    const tokenHash = 'the hash of the token that it mailed itself'
    await it.store.course.renewConfirmation({ id, tokenHash, now: it.now() })
    await it.store.course.remember(id, { ...BY_OLDER, at: it.now(), outcome: 'sent' })
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.pass(HOUR_MS)
    expect([await it.other.deliverMessages(), it.messages.length]).toEqual([0, 1])
    expect(await it.store.course.checkToken({ tokenHash, now: it.now() })).toBe('use')
  })

  test('what an older build beside could not mail before it ended is mailed, once, and not while it may try again', async () => {
    const it = await world(kind)
    const { course } = it.store
    const who = { course: 'quantum', identity: ADA.identity, address: ADA.spelling, id: 'older-build' }
    // Its request before was given up by this build, and is still listed.
    it.answer(() => ({ kind: 'permanent', hardBounce: false, reason: 'no' }))
    await it.ask()
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    it.messages.length = 0
    it.pass(2 * HOUR_MS)
    const { id } = (await course.find(ADA.identity)) ?? { id: '' }
    await course.requestConfirmation({ ...who, tokenHash: 'lost', language: 'de', now: it.now() })
    await course.remember(id, { ...BY_OLDER, at: it.now(), outcome: 'transient' })
    const mailed: number[] = []
    for (let hour = 0; hour < 5; hour += 1) {
      await course.pruneUnconfirmed(it.now() - UNCONFIRMED_KEPT_MS)
      mailed.push(await it.other.deliverMessages())
      it.pass(HOUR_MS)
    }
    expect(mailed).toEqual([0, 0, 1, 0, 0])
    expect(it.messages.map(({ to }) => to.address)).toEqual([ADA.spelling])
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('a confirmation of this build that a restore brought back as not delivered is not mailed again', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await it.ask()
    if (it.address === undefined) throw new TypeError('this store has an address')
    // As `takeTold` leaves it: what waited has left meanwhile, as the replaced store knew.
    const table = kind === 'postgres' ? 'platformctl.message' : 'message'
    await byHand(it.address, `DELETE FROM ${table}`)
    it.pass(3 * HOUR_MS)
    await it.store.course.pruneUnconfirmed(it.now() - UNCONFIRMED_KEPT_MS)
    expect(await it.other.deliverMessages()).toBe(0)
  })

  test('a confirmation that cannot be mailed while its link is of use is given up, and its history says so', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'busy' }))
    await it.ask()
    it.pass(6 * DAY_MS)
    expect(await it.other.deliverMessages()).toBe(0)
    expect(await it.history()).toEqual(['confirmation transient', 'confirmation permanent'])
    expect(it.messages).toHaveLength(1)
  })

  test('a held confirmation is neither sent nor an attempt: it leaves when it is resumed, or is recorded when it expired', async () => {
    const it = await world(kind)
    let hold: Hold | undefined = { stream: 'confirmation', at: 0, reason: 'wrong prices' }
    const catalog = createCatalog(['quantum', 'pottery', 'chess'].map((id) => courseNamed(id)))
    const held = async (stream: string) => (stream === hold?.stream ? hold : undefined)
    const course = it.process({}, { held, catalog })
    expect(await it.ask(course)).toEqual({ status: 'pending', sent: true })
    it.pass(DAY_MS)
    expect(await course.deliverMessages()).toBe(0)
    expect(await it.ask(course, { course: 'pottery' })).toEqual({ status: 'pending', sent: true })
    expect([it.messages, await it.history()]).toEqual([[], []])
    hold = undefined
    expect(await course.deliverMessages()).toBe(2)
    // Two mails leave at once, in either order; the first course is not named.
    const first = it.messages.find(({ text }) => !text.includes('pottery'))
    expect(await it.other.confirm(tokenIn(first))).toBe('confirmed')
    hold = { stream: 'confirmation', at: 0, reason: 'wrong prices' }
    await it.ask(course, { course: 'chess' })
    it.pass(2 * HOUR_MS)
    expect(await course.confirmAgain(ADA.identity, { wait: true })).toEqual({
      kind: 'not_sent',
      reason: expect.stringContaining('wrong prices'),
    })
    it.pass(7 * DAY_MS)
    hold = undefined
    expect(await course.deliverMessages()).toBe(0)
    expect(it.messages).toHaveLength(2)
    const chess = (await it.other.findPerson(ADA.identity)).find((one) => one.course === 'chess')
    expect(await it.other.history(chess?.id ?? '')).toMatchObject([
      { kind: 'confirmation', outcome: 'permanent', reason: expect.stringContaining('expire') },
    ])
  })

  test('a second course within the hour gets its own confirmation, the same course none, and a day has three', async () => {
    const it = await world(kind)
    const ask = async (course: string) => {
      expect(await it.ask(it.other, { course })).toEqual({ status: 'pending', sent: true })
      return it.messages.length
    }
    expect([await ask('quantum'), await ask('pottery'), await ask('quantum')]).toEqual([1, 2, 2])
    expect([await ask('chess'), await ask('drawing')]).toEqual([3, 3])
  })

  test('while one waits, asking again after an hour replaces it: one mail, and its link works', async () => {
    const it = await world(kind)
    await it.process({ checkToken: () => NEVER }).subscribe({ ...ADA, language: 'de' })
    it.pass(HOUR_MS)
    await it.ask()
    expect(await it.other.deliverMessages()).toBe(0)
    expect(it.messages).toHaveLength(1)
    // In the language that was asked for first.
    expect(it.messages[0]?.text).toContain('language=de')
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('a used link always answers the same, and one that a program’s enrolment overtook says confirmed while that lasts, and changes nothing', async () => {
    const it = await world(kind)
    await it.ask()
    const used = it.token()
    expect(await it.other.confirm(used)).toBe('confirmed')
    const consent = { at: it.now(), how: 'link of the confirmation mail' }
    expect(await it.other.find(ADA.identity)).toMatchObject({ confirmedAt: it.now(), consent })
    await it.other.cancel(ADA)
    it.pass(8 * DAY_MS)
    await it.ask()
    expect(it.token()).not.toBe(used)
    expect(await it.other.confirm(used)).toBe('confirmed')
    const bob = { spelling: 'bob@example.com', identity: 'bob@example.com' }
    await it.ask(it.other, bob)
    const overtaken = it.token()
    await it.other.enrol(bob)
    const enrolled = await it.other.find(bob.identity)
    it.pass(DAY_MS)
    expect(await it.other.confirm(overtaken)).toBe('confirmed')
    expect(await it.other.find(bob.identity)).toEqual(enrolled)
    await it.other.cancel(bob)
    expect(await it.other.confirm(overtaken)).toBe('invalid')
    expect(await it.other.find(bob.identity)).toMatchObject({ state: 'unsubscribed' })
  })

  test('a link for a course that is out of the definition works once the course is back', async () => {
    const it = await world(kind)
    await it.ask()
    const without = it.process({}, { catalog: createCatalog([courseNamed('pottery')]) })
    await expect(without.confirm(it.token())).rejects.toMatchObject({ code: 'conflict' })
    const reason = 'the platform has no course quantum'
    expect(await without.confirmAgain(ADA.identity)).toEqual({ kind: 'not_sent', reason })
    expect(await it.other.confirm(it.token())).toBe('confirmed')
    expect(await it.other.find(ADA.identity)).toMatchObject({ state: 'confirmed' })
  })

  test('who left while the clock was days ahead is mailed a confirmation once it is right', async () => {
    const it = await world(kind)
    await it.other.enrol(ADA)
    await it.process({}, { clock: { ...systemClock, now: () => it.now() + 9 * DAY_MS } }).cancel(ADA)
    await it.ask()
    expect(await it.other.confirm(it.token())).toBe('confirmed')
  })

  test('nothing is mailed to somebody who was erased or enrolled meanwhile', async () => {
    for (const change of ['erase', 'enrol'] as const) {
      const it = await world(kind)
      await it.process({ checkToken: () => NEVER }).subscribe(ADA)
      if (change === 'erase') await it.other.erase(ADA.identity)
      else await it.other.enrol(ADA)
      it.pass(LEASE_MS)
      expect(await it.other.deliverMessages()).toBe(0)
      expect(it.messages).toEqual([])
    }
  })

  test('somebody who is on the suppression list and in no course is answered as all are, and nothing is queued', async () => {
    const it = await world(kind)
    const at = it.now()
    const suppression = { cause: 'manual', at, source: 'import', reason: 'another provider said so' } as const
    await it.ask(it.other, { course: 'status' })
    await it.store.feedback.apply([suppressionChange(ADA.identity, suppression, () => [])], at)
    expect(await it.ask()).toEqual({ status: 'pending', sent: true })
    expect((await it.other.findPerson(ADA.identity)).map(({ course }) => course)).toEqual(['status'])
    expect(await it.other.confirmAgain(ADA.identity)).toEqual({
      kind: 'not_sent',
      reason: 'the address is suppressed',
    })
    expect(await it.store.sending.queue(at)).toEqual([])
    expect(it.messages).toHaveLength(1)
  })

  test('a changed key of links gets a link that works, also where the key before is known', async () => {
    for (const oldLinkKeys of [[], [secret('a key for links in tests only')]]) {
      const it = await world(kind)
      await it.process({ checkToken: () => NEVER }).subscribe(ADA)
      it.pass(LEASE_MS)
      const rotated = it.process({}, { linkKey: secret('another key'), oldLinkKeys })
      expect(await rotated.deliverMessages()).toBe(1)
      expect(await rotated.confirm(it.token())).toBe('confirmed')
    }
  })

  test('a link that may have been mailed goes on working when its repeat leaves after a rotation', async () => {
    const it = await world(kind)
    it.answer(() => ({ kind: 'unknown', reason: 'the connection broke' }))
    await it.ask()
    const mailed = it.token()
    it.pass(10 * MINUTE_MS)
    it.answer(({ key }) => ({ kind: 'sent', id: key }))
    const oldLinkKeys = [secret('a key for links in tests only')]
    const rotated = it.process({}, { linkKey: secret('another key'), oldLinkKeys })
    expect(await rotated.deliverMessages()).toBe(1)
    expect(it.token()).toBe(mailed)
    expect(await rotated.confirm(mailed)).toBe('confirmed')
  })

  test('without mail the subscription is kept and no mail is counted, so that asking again once it is configured mails at once', async () => {
    const it = await world(kind)
    const mailer = openMailer({ mail: undefined, compiled: compiledMails })
    expect(await it.ask(it.process({}, { mailer }))).toMatchObject({ sent: false })
    expect((await it.store.course.find('ada@example.com'))?.state).toBe('unconfirmed')
    await it.ask()
    expect(it.messages).toHaveLength(1)
  })

  test('a copy of the store mails what had not left, and both stores verify', async () => {
    const it = await world(kind)
    await it.process({ checkToken: () => NEVER }).subscribe(ADA)
    const to = await addressOf(kind === 'sqlite' ? 'postgres' : 'sqlite')
    // A copy is made beside no other file.
    if (to?.kind === 'sqlite') await rm(to.file)
    if (it.address === undefined || to === undefined) throw new TypeError('a store in memory')
    await it.store.close()
    await copyStore(it.address, to, it.now())
    const copy = await openTestStore(to, () => 5_000_000)
    expect(await it.open(copy.course).deliverMessages()).toBe(1)
    expect(await it.open(copy.course).confirm(it.token())).toBe('confirmed')
    for (const address of [it.address, to]) {
      const maintenance = await openMaintenance(address)
      expect(await maintenance.verify(it.now())).toMatchObject({ ok: true })
      await maintenance.close()
    }
  })
})
