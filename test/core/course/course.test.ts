import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { MOST_ENTRIES } from '../../../src/core/course/history.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { seeded } from '../../simulation/seeded.ts'
import { ADA, courseWith, linkOf, START } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { STORES, type StoreKind } from '../../support/stores.ts'
import { outcomeOf } from '../../support/subscribers.ts'

const HOUR_MS = 60 * 60 * 1000
const person = (n: number) => ({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
const course = (kind: StoreKind, people = 0) => courseWith(people, { kind, leaseClock: 'standing' })
type Opened = Awaited<ReturnType<typeof course>>
/** What a call of another dispatcher claims. */
const claimed = ({ store, now }: Opened, call: string, { at = now(), limit = 10, retries = 10 } = {}) =>
  store.course.claimDue({ now: at, limit, retries, leaseMs: 90_000, call })

describe.each(STORES)('on the store %s', (kind) => {
  test('the seven lessons go out one a day, lowest first, each once', async () => {
    const it = await (await course(kind)).confirmed()
    for (let day = 1; day <= 7; day += 1) {
      expect(await it.course.dispatch({})).toMatchObject({
        processed: 1,
        sent: 1,
        results: [{ day, sent: true }],
      })
      expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
      it.pass(DAY_MS - 1)
      expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
      it.pass(1)
    }
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
    expect(new Set(it.messages.map(({ key }) => key)).size).toBe(8)
    expect(it.messages.at(-1)?.text).toMatch(/\/lessons\/7$/m)
  })

  test('records a reason with characters that no database can hold in readable form, and repeats no other mail of its group', async () => {
    const it = await course(kind, 5)
    it.answer((message) =>
      message.to.address === 'p2@example.com'
        ? { kind: 'permanent', hardBounce: false, reason: 'half \ud83d and \0 nothing' }
        : { kind: 'sent', id: 'id \0 \ud83d' },
    )
    expect(await it.course.dispatch({})).toMatchObject({ sent: 4, failed: 1 })
    expect((await it.course.find('p2@example.com'))?.problem?.reason).toBe('half \ufffd and \ufffd nothing')
    it.pass(HOUR_MS)
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
    expect(it.messages).toHaveLength(5)
  })

  test('an impossible id or address finds no subscription, and is not a store fault', async () => {
    const it = await course(kind)
    expect(await it.store.course.findById('a \0 b')).toBeUndefined()
    expect(await it.store.course.find('\ud83d')).toBeUndefined()
  })

  test('an address is mailed at most one confirmation an hour and three a day, and answered alike each time', async () => {
    const it = await course(kind)
    const answers = new Set<string>()
    const mailed: number[] = []
    for (let third = 0; third < 10; third += 1) {
      answers.add(JSON.stringify(await it.subscribe()))
      mailed.push(it.messages.length)
      it.pass(HOUR_MS / 3)
    }
    // The first of them counts for a whole day.
    for (const ms of [DAY_MS - (10 * HOUR_MS) / 3 - 1, 1]) {
      it.pass(ms)
      answers.add(JSON.stringify(await it.subscribe()))
      mailed.push(it.messages.length)
    }
    expect(mailed).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4])
    expect([...answers]).toEqual(['{"status":"pending","sent":true}'])
  })

  test('a new token replaces the one before, an old one expires, a used one says the same again', async () => {
    const it = await course(kind)
    await it.subscribe()
    const first = it.token()
    it.pass(2 * HOUR_MS)
    await it.subscribe()
    const second = it.token()
    expect(await it.course.confirm(first)).toBe('invalid')
    it.pass(7 * DAY_MS - 1)
    expect(await it.course.checkToken(second)).toBe('use')
    it.pass(1)
    expect(await it.course.confirm(second)).toBe('expired')
    await it.subscribe()
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    expect(await it.course.confirm('forged-token-that-matches-nothing')).toBe('invalid')
  })

  test('unsubscribing ends it, a forged link changes nothing, undoing goes on where it stopped', async () => {
    const it = await (await course(kind)).confirmed()
    await it.course.dispatch({})
    const link = it.link()
    await it.course.unsubscribe({ ...link, t: `${link.t.slice(0, -1)}${link.t.endsWith('A') ? 'B' : 'A'}` })
    expect((await it.course.find(ADA.identity))?.state).toBe('confirmed')
    await it.course.unsubscribe(link)
    it.pass(DAY_MS)
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
    await it.course.undoUnsubscribe(link)
    expect(await it.course.dispatch({})).toMatchObject({ results: [{ day: 2, sent: true }] })
  })

  test('after unsubscribing, subscribing and confirming anew starts over under a new enrolment, which the old link ends as well', async () => {
    const it = await (await course(kind)).confirmed()
    await it.course.dispatch({})
    const old = it.link()
    await it.course.unsubscribe(old)
    it.pass(2 * HOUR_MS)
    await it.confirmed()
    expect(await it.course.dispatch({})).toMatchObject({ results: [{ day: 1, sent: true }] })
    await it.course.unsubscribe(old)
    expect(await it.course.find(ADA.identity)).toMatchObject({ state: 'unsubscribed', enrolment: 2 })
    await it.course.undoUnsubscribe(old)
    expect(await it.course.find(ADA.identity)).toMatchObject({ state: 'confirmed', enrolment: 2 })
    expect(new Set(it.messages.map(({ key }) => key)).size).toBe(4)
    // Of an enrolment that a restored store does not know.
    const s = it.link().s.replace(/\d+$/, '3')
    const t = createHmac('sha256', 'a key for links in tests only')
      .update(`unsubscribe:${s}`)
      .digest('base64url')
    await it.course.unsubscribe({ s, t })
    expect(await it.course.find(ADA.identity)).toMatchObject({ state: 'unsubscribed', enrolment: 2 })
  })

  test('a transient failure waits at least five minutes and comes back with the same bytes', async () => {
    const it = await (await course(kind)).confirmed()
    it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'greylisted' }))
    const failed = await it.course.dispatch({})
    expect(failed).toMatchObject({
      ...{ sent: 0, failed: 1, waiting: 1 },
      results: [{ day: 1, sent: false, reason: 'greylisted' }],
    })
    it.pass(5 * 60 * 1000 - 1)
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
    it.answer((message) => ({ kind: 'sent', id: message.key }))
    it.pass(Date.parse(failed.nextTryAt ?? '') - it.now())
    expect(await it.course.dispatch({})).toMatchObject({ sent: 1 })
    expect(it.messages.at(-1)).toEqual(it.messages.at(-2))
  })

  test.each([
    ['unknown', { kind: 'unknown', reason: 'the line broke' }],
    ['never recorded', { kind: 'transient', scope: 'message', reason: 'greylisted' }],
  ] as const)(
    'an attempt whose outcome is %s is retried under the same key until the provider forgets it, then waits for an operator',
    async (what, later) => {
      const it = await (await course(kind)).confirmed()
      it.answer(() => later)
      const lost = it.open({ ...it.store.course, settle: () => new Promise<never>(() => {}) })
      if (what === 'unknown') await it.course.dispatch({})
      else void lost.dispatch({ limit: 1 })
      await expect.poll(() => it.messages.length).toBe(2)
      for (let attempt = 0; attempt < 24; attempt += 1) {
        it.pass(HOUR_MS)
        await it.course.dispatch({})
      }
      const lessons = it.messages.slice(1)
      expect(new Set(lessons.map(({ key }) => key)).size).toBe(1)
      const found = await it.course.find(ADA.identity)
      expect(found).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'unknown', since: START } })
      expect(await it.course.resolve(found?.id ?? '', 'sent')).toBe(true)
      it.answer((message) => ({ kind: 'sent', id: message.key }))
      expect(await it.course.dispatch({})).toMatchObject({ results: [{ day: 2, sent: true }] })
    },
  )

  test('a dead address ends the subscription; any other permanent refusal parks the lesson', async () => {
    const it = await (await course(kind)).confirmed()
    it.answer(() => ({ kind: 'permanent', hardBounce: false, reason: 'refused' }))
    await it.course.dispatch({})
    const parked = await it.course.find(ADA.identity)
    expect(parked).toMatchObject({ state: 'confirmed', problem: { kind: 'parked' } })
    await it.course.resolve(parked?.id ?? '', 'retry')
    it.answer(() => ({ kind: 'permanent', hardBounce: true, reason: 'no such address' }))
    await it.course.dispatch({})
    expect(await it.course.find(ADA.identity)).toMatchObject({
      state: 'unsubscribed',
      problem: { kind: 'bounced' },
    })
    // Who leaves after that is not brought back.
    expect(await it.course.cancel(ADA)).toBe(true)
    expect(await it.course.cancel(ADA)).toBe(false)
    expect(await it.course.resolve(parked?.id ?? '', 'retry')).toBe(false)
  })

  test('an acknowledged unsubscribe wins over a claim whose message is not handed over yet', async () => {
    const it = await course(kind, 60)
    await it.course.dispatch({ limit: 60 })
    it.pass(DAY_MS)
    const links = it.messages.slice(-60).map((message) => linkOf(message))
    const before = it.messages.length
    const handedOver = () => new Set(it.messages.slice(before).map((message) => linkOf(message).s))
    const gate = Promise.withResolvers<void>()
    it.answer(async (message) => {
      // Fifty slots send at once; the other ten are claimed by now and wait for one.
      if (handedOver().size === 50 && it.messages.length === before + 50) {
        await it.course.unsubscribe(links.find(({ s }) => !handedOver().has(s)) ?? { s: '', t: '' })
        gate.resolve()
      }
      await gate.promise
      return { kind: 'sent', id: message.key }
    })
    expect(await it.course.dispatch({ limit: 60 })).toMatchObject({ processed: 59, sent: 59 })
    expect((await it.course.counts()).byState).toMatchObject({ confirmed: 59, unsubscribed: 1 })
  })

  test('two dispatchers on one store send each lesson once', async () => {
    const it = await course(kind, 30)
    const other = it.open((kind === 'memory' ? it.store : await it.anotherStore()).course)
    const both = await Promise.all([it.course.dispatch({ limit: 30 }), other.dispatch({ limit: 30 })])
    expect(both[0].sent + both[1].sent).toBe(30)
    expect(new Set(it.messages.map(({ key }) => key)).size).toBe(30)
  })

  test('a fault of the connection stops the call, burns no attempt and gives back what was not tried', async () => {
    const it = await course(kind, 60)
    it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'come back later' }))
    const result = await it.course.dispatch({ limit: 60 })
    expect(result.processed).toBeLessThanOrEqual(50)
    expect(result).toMatchObject({ sent: 0, reason: 'come back later', remaining: 60 - result.processed })
  })

  test('an erased address is gone, and subscribing it again mails nothing', async () => {
    const it = await (await course(kind)).confirmed()
    expect(await it.course.erase(ADA.identity)).toMatchObject({ existed: true, bytesGone: true })
    expect(await it.course.find(ADA.identity)).toBeUndefined()
    const before = it.messages.length
    it.pass(DAY_MS)
    expect(await it.subscribe()).toEqual({ status: 'pending', sent: true })
    expect(it.messages).toHaveLength(before)
  })

  test('whose address was suppressed between asking and confirming gets no lesson', async () => {
    const it = await course(kind)
    await it.subscribe()
    const why = { cause: 'complaint', at: it.now(), source: 'operator', reason: 'asked by phone' } as const
    await it.store.feedback.apply([suppressionChange(ADA.identity, why, () => [])], it.now())
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0, remaining: 0 })
  })

  test('a lesson sent while its subscription ended counts as sent, and undoing does not repeat it', async () => {
    const it = await (await course(kind)).confirmed()
    await it.course.dispatch({})
    const link = it.link()
    it.pass(DAY_MS)
    it.answer(async (message) => {
      await it.course.unsubscribe(link)
      return { kind: 'sent', id: message.key }
    })
    expect(await it.course.dispatch({})).toMatchObject({ sent: 1 })
    expect(await it.course.find(ADA.identity)).toMatchObject({ state: 'unsubscribed', sentDays: [1, 2] })
    await it.course.undoUnsubscribe(link)
    expect(await it.course.dispatch({})).toMatchObject({ processed: 0 })
  })

  test('an expired lease is taken over, and late results of its first holder are dropped', async () => {
    const it = await (await course(kind)).confirmed()
    const claim = async () =>
      (await claimed(it, String(it.now()), { at: it.now() + 2 * HOUR_MS, retries: 1 }))[0]
    const slow = await claim()
    expect(await claim()).toBeUndefined()
    it.pass(90_000)
    const taker = await claim()
    expect([slow?.day, taker?.day]).toEqual([1, 1])
    if (slow === undefined || taker === undefined) throw new Error('both claims exist by now')
    expect([await it.store.course.stillHolds(slow), await it.store.course.stillHolds(taker)]).toEqual([
      false,
      true,
    ])
    const problem = { kind: 'parked', reason: 'refused', since: START } as const
    const failed = { sent: false, failures: 1, problem }
    await it.store.course.settle([outcomeOf(slow, START, failed)])
    expect(await it.course.find(ADA.identity)).toMatchObject({ failures: 0, problem: { kind: 'unknown' } })
    // But a message that is out is out, whoever holds the claim.
    await it.store.course.settle([outcomeOf(slow, START)])
    await it.store.course.settle([outcomeOf(taker, START, failed)])
    expect(await it.course.find(ADA.identity)).toMatchObject({ sentDays: [1], problem: undefined })
  })

  test.each([
    ['sent', true],
    ['failed', false],
  ])(
    'one call takes a subscription once, also when its lesson was %s and another is due',
    async (_, sent) => {
      const it = await (await course(kind)).confirmed()
      it.pass(3 * DAY_MS)
      const now = it.now()
      const [claim] = await claimed(it, 'one')
      if (claim === undefined) throw new Error('a lesson is due')
      const failures = sent ? 0 : 1
      await it.store.course.settle([outcomeOf(claim, now, { sent, nextAttemptAt: now, failures })])
      expect(await claimed(it, 'one')).toEqual([])
      expect(await claimed(it, 'another')).toMatchObject([{ day: sent ? 2 : 1 }])
    },
  )

  test('one call sends a subscription one lesson, also when another has claimed the next and given it back', async () => {
    const it = await (await course(kind)).confirmed()
    it.pass(3 * DAY_MS)
    const { course: store } = it.store
    const sent = Promise.withResolvers<void>()
    let calls = 0
    const between: typeof store = {
      ...store,
      async claimDue(asked) {
        calls += 1
        if (calls === 2) {
          await sent.promise
          const back = { sent: false, untried: true, nextAttemptAt: it.now() }
          await store.settle((await claimed(it, 'another')).map((one) => outcomeOf(one, it.now(), back)))
        }
        return store.claimDue(asked)
      },
      settle: (settlements) => store.settle(settlements).then(sent.resolve),
    }
    expect(await it.open(between).dispatch({})).toMatchObject({ sent: 1, remaining: 1 })
  })

  test('one call sends a lesson once, also when its record is lost and another has given it back', async () => {
    const it = await (await course(kind)).confirmed()
    const { course: store } = it.store
    const back = { sent: false, untried: true, nextAttemptAt: it.now() }
    const lost = Promise.withResolvers<void>()
    let calls = 0
    let isLost = true
    const losing: typeof store = {
      ...store,
      async claimDue(asked) {
        calls += 1
        if (calls === 2) await lost.promise
        return store.claimDue(asked)
      },
      async settle(settlements) {
        if (!isLost) return store.settle(settlements)
        isLost = false
        await store.settle(settlements.map(({ claim }) => outcomeOf(claim, it.now(), back)))
        await store.settle((await claimed(it, 'another')).map((one) => outcomeOf(one, it.now(), back)))
        lost.resolve()
      },
    }
    const before = it.messages.length
    await it.open(losing).dispatch({})
    expect(it.messages.length - before).toBe(1)
  })

  test('a lesson that was claimed while the clock was ahead leaves when it is due', async () => {
    const it = await course(kind)
    await it.join('a@example.com', { at: it.now() + HOUR_MS })
    const { course: store } = it.store
    let aheadMs = 2 * HOUR_MS
    const ahead: typeof store = {
      ...store,
      claimDue(asked) {
        const now = asked.now + aheadMs
        // It is right from then on.
        aheadMs = 0
        return store.claimDue({ ...asked, now })
      },
    }
    expect(await it.open(ahead).dispatch({})).toMatchObject({ processed: 0 })
    it.pass(HOUR_MS)
    expect(await it.course.dispatch({})).toMatchObject({ sent: 1 })
  })

  test('lessons claimed by a dispatcher that died go out before those that have waited longer', async () => {
    const it = await course(kind, 8)
    it.pass(HOUR_MS)
    const claim = async (call: string, limit: number) =>
      (await claimed(it, call, { limit, retries: 1 })).map(({ address }) => address)
    const died = await claim('died', 3)
    expect(died).toHaveLength(3)
    // Its lease holds: the next one takes others.
    const lived = await claim('lived', 2)
    expect(died.filter((address) => lived.includes(address))).toEqual([])
    it.pass(90_000)
    expect((await claim('next', 5)).sort()).toEqual([...died, ...lived].sort())
    expect(await claim('next', 8)).toHaveLength(3)
    // It dies too, and so does the one after it: what was tried first stays first.
    it.pass(90_000)
    expect((await claim('third', 5)).sort()).toEqual([...died, ...lived].sort())
  })

  test('a retry after unsubscribing and undoing has the same bytes as the attempt before', async () => {
    const it = await (await course(kind)).confirmed()
    await it.course.dispatch({})
    const link = it.link()
    it.pass(DAY_MS)
    it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
    await it.course.dispatch({})
    const first = it.messages.at(-1)
    await it.course.unsubscribe(link)
    it.pass(HOUR_MS)
    await it.course.undoUnsubscribe(link)
    await it.course.dispatch({})
    expect(it.messages.at(-1)).toEqual(first)
  })

  test('answers 503 and records nothing false if the store cannot be written while a message is in flight', async () => {
    const it = await (await course(kind)).confirmed()
    const broken = { ...it.store.course, settle: () => Promise.reject(new Error('disk full')) }
    const failing = it.open(broken)
    await expect(failing.dispatch({ limit: 10 })).rejects.toThrow('disk full')
    expect(await it.course.find(ADA.identity)).toMatchObject({ sentDays: [], problem: undefined })
    it.pass(90_000)
    expect(await it.course.dispatch({})).toMatchObject({ sent: 1 })
    expect(it.messages.at(-1)).toEqual(it.messages.at(-2))
  })

  test('each thing that happens to a person is in the history, with its evidence', async () => {
    const it = await course(kind)
    await it.subscribe()
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    it.answer(() => ({ kind: 'unknown', reason: 'the connection broke' }))
    it.pass(1000)
    await it.course.dispatch({})
    it.answer((message) => ({ kind: 'sent', id: `provider-${message.key.length}` }))
    it.pass(HOUR_MS)
    await it.course.dispatch({})
    const link = it.link()
    it.pass(1000)
    await it.course.unsubscribe(link)
    await it.course.unsubscribe(link)
    it.pass(1000)
    await it.course.undoUnsubscribe(link)
    const found = await it.course.find(ADA.identity)
    const history = await it.course.history(found?.id ?? '')
    expect(history).toMatchObject([
      { kind: 'confirmation', at: START, outcome: 'sent', messageId: it.messages[0]?.messageId },
      { kind: 'confirmed', at: START, enrolment: 1 },
      {
        kind: 'attempt',
        day: 1,
        attempt: 1,
        outcome: 'unknown',
        reason: 'the connection broke',
        messageId: it.messages[1]?.messageId,
      },
      {
        kind: 'attempt',
        at: START + HOUR_MS + 1000,
        day: 1,
        attempt: 2,
        outcome: 'sent',
        messageId: it.messages[1]?.messageId,
        providerId: expect.stringMatching(/^provider-/),
      },
      { kind: 'unsubscribed', at: START + HOUR_MS + 2000 },
      { kind: 'undone', at: START + HOUR_MS + 3000 },
    ])
    expect(it.messages[2]?.messageId).toBe(it.messages[1]?.messageId)
    await it.course.erase(ADA.identity)
    expect(await it.course.history(found?.id ?? '')).toEqual([])
  })

  test('retries a failed confirmation also for a returning subscriber, but not for one who has left', async () => {
    const it = await (await course(kind)).confirmed()
    await it.course.dispatch({})
    await it.course.unsubscribe(it.link())
    const fails = () =>
      it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'refused' }) as const)
    const works = () => it.answer((message) => ({ kind: 'sent', id: message.key }))
    it.pass(2 * HOUR_MS)
    fails()
    await it.subscribe()
    it.pass(HOUR_MS)
    works()
    expect(await it.course.deliverMessages()).toBe(1)
    expect(await it.course.confirm(it.token())).toBe('confirmed')
    await it.course.dispatch({})
    const link = it.link()
    await it.course.unsubscribe(link)

    it.pass(DAY_MS)
    fails()
    await it.subscribe()
    it.pass(HOUR_MS)
    works()
    await it.course.undoUnsubscribe(link)
    await it.course.unsubscribe(link)
    expect(await it.course.deliverMessages()).toBe(0)
  })

  test.each([
    ['refused for now', { kind: 'transient', scope: 'message', reason: 'busy' }, 'transient'],
    ['lost from sight', { kind: 'unknown', reason: 'the connection broke' }, 'unknown'],
  ] as const)(
    'an attempt that was %s after its subscriber left is not reported as lost when they return',
    async (_, outcome, told) => {
      const it = await (await course(kind)).confirmed()
      it.answer(async (message) => {
        await it.course.unsubscribe(linkOf(message))
        it.pass(1000)
        return outcome
      })
      await it.course.dispatch({})
      expect(await it.course.backlog()).toMatchObject({ due: 0, waiting: 0, oldestDueAt: undefined })
      await it.course.undoUnsubscribe(it.link())
      it.answer((message) => ({ kind: 'sent', id: message.key }))
      it.pass(HOUR_MS)
      expect(await it.course.dispatch({})).toMatchObject({ sent: 1 })
      const { id = '' } = (await it.course.find(ADA.identity)) ?? {}
      const attempts = (await it.course.history(id)).filter((one) => one.kind === 'attempt')
      expect(attempts.map((one) => one.outcome)).toEqual([told, 'sent'])
    },
  )

  test('a history is bounded: the newest entries stay', async () => {
    const it = await (await course(kind)).confirmed()
    const { id = '' } = (await it.course.find(ADA.identity)) ?? {}
    const remember = (at: number, kind: 'confirmation' | 'attempt', day: number) =>
      it.store.course.remember(id, { at, kind, enrolment: 0, day, outcome: 'unknown' })
    for (let at = 1; at <= MOST_ENTRIES + 5; at += 1) await remember(at, 'confirmation', 0)
    const history = await it.course.history(id)
    expect(history).toHaveLength(MOST_ENTRIES)
    expect(history.at(-1)).toMatchObject({ kind: 'confirmed' })
    // A subscriber of incidents is sent hundreds, and nothing else ever happens.
    for (let day = 1; day <= 20; day += 1) await remember(START + day, 'attempt', day)
    const newer = await it.course.history(id)
    expect(newer).toHaveLength(MOST_ENTRIES)
    expect(newer.at(-1)).toMatchObject({ day: 20 })
  })

  test.each([
    ['the provider is not reached', { kind: 'transient', scope: 'connection', reason: 'refused' }],
    ['each message is refused for now', { kind: 'transient', scope: 'message', reason: 'greylisted' }],
    ['no outcome is known', { kind: 'unknown', reason: 'the connection broke' }],
  ] as const)('in an outage the oldest lesson counts from when it was due: %s', async (_, outcome) => {
    const it = await course(kind)
    for (const n of [1, 2, 3]) await it.join(`p${n}@example.com`)
    it.answer(() => outcome)
    for (let tried = 0; tried < 6; tried += 1) {
      expect((await it.course.backlog()).oldestDueAt).toBe(START)
      await it.course.dispatch({ limit: 2 })
      it.pass(HOUR_MS)
    }
    const { due, waiting, nextTryAt, oldestDueAt } = await it.course.backlog()
    expect({ lessons: due + waiting, oldestDueAt }).toEqual({ lessons: 3, oldestDueAt: START })
    if (waiting > 0) expect(nextTryAt).toBeGreaterThan(it.now())
  })

  test('a lesson under a lease is due for operators, whether its process lives or not, and for no dispatcher', async () => {
    const it = await (await course(kind)).confirmed()
    const looked: unknown[] = []
    it.answer(async (message) => {
      const { dueNow, waiting } = await it.course.counts()
      const [queued] = await it.store.sending.queue(START)
      looked.push({ dueNow, waiting, queued, due: (await it.course.backlog()).due })
      return { kind: 'sent', id: message.key }
    })
    await it.course.dispatch({})
    const queued = expect.objectContaining({ stream: 'course', due: 1, waiting: 0, oldestAt: START })
    expect(looked).toEqual([{ dueNow: 1, waiting: 0, queued, due: 0 }])
  })

  test('counts say states, lessons, what is due by hour, and what waits for a decision', async () => {
    const it = await course(kind)
    await it.subscribe(person(0))
    for (const n of [1, 2, 3]) await it.confirmed(person(n))
    it.answer((message) =>
      message.to.address.startsWith('p3')
        ? { kind: 'permanent', hardBounce: false, reason: 'refused' }
        : { kind: 'sent', id: message.key },
    )
    await it.course.dispatch({})
    await it.confirmed(person(4))
    expect(await it.course.counts()).toMatchObject({
      byState: { unconfirmed: 1, confirmed: 4, unsubscribed: 0 },
      byLessons: [2, 2, 0, 0, 0, 0, 0, 0],
      dueNow: 1,
      oldestDueAt: START,
      parked: 1,
      unknown: 0,
    })
    it.pass(HOUR_MS * 2.5)
    expect(
      (await it.course.counts()).dueByHour.flatMap((count, hour) => (count > 0 ? [[hour, count]] : [])),
    ).toEqual([[21, 2]])
    expect((await it.course.problems(10)).map(({ problem }) => problem?.kind)).toEqual(['parked'])
    expect((await it.course.due({ limit: 10 })).map(({ address }) => address)).toEqual(['p4@example.com'])
  })

  test('a clock that steps back neither revives an older token nor mails more often', async () => {
    const it = await course(kind)
    await it.subscribe()
    const first = it.token()
    it.pass(2 * HOUR_MS)
    await it.subscribe()
    const second = it.token()
    it.pass(-3 * HOUR_MS)
    await it.subscribe()
    expect(it.messages).toHaveLength(2)
    expect(await it.course.confirm(first)).toBe('invalid')
    expect(await it.course.confirm(second)).toBe('confirmed')
  })

  test('hours are claimed once, the last is known, and a value is made once', async () => {
    const { store } = await course(kind)
    expect(await store.lastHour()).toBeUndefined()
    const claim = { hour: '2026-11-21T04', now: START, leaseMs: 60_000 }
    expect(await Promise.all([store.claimHour(claim), store.claimHour(claim)])).toEqual(
      expect.arrayContaining(['claimed', 'busy']),
    )
    await store.keepHour(claim)
    expect(await store.claimHour(claim)).toBe('busy')
    await store.endHour(claim.hour, false)
    expect(await store.claimHour(claim)).toBe('claimed')
    await store.endHour(claim.hour, true)
    expect(await store.claimHour(claim)).toBe('handled')
    expect(await store.lastHour()).toBe('2026-11-21T04')
    expect(await store.getOrCreate('link_key', () => 'first')).toBe('first')
    expect(await store.getOrCreate('link_key', () => 'second')).toBe('first')
    await store.ping()
    expect(await store.status()).toMatchObject({ kind, version: (await store.status()).latest })
  })
})

test('on the in-memory fallback dispatch is refused, and without mail nothing is processed or recorded', async () => {
  const it = await course('memory')
  const fallback = it.open(it.store.course, { more: { persistent: false } })
  const refused = { code: 'store_not_persistent', status: 503 }
  await expect(fallback.dispatch({})).rejects.toMatchObject(refused)
  const mailer = openMailer({ mail: undefined, compiled: compiledMails })
  const unconfigured = it.open(it.store.course, { more: { mailer } })
  const reason = 'mail is not configured'
  expect(await it.subscribe(ADA, unconfigured)).toEqual({ status: 'pending', sent: false, reason })
  expect(await unconfigured.dispatch({})).toMatchObject({ processed: 0, reason })
})

test('300 rows that keep failing do not hold up 100 good ones: all are sent within 11 calls of 10', async () => {
  // Half the calls of ten take a failed row before the good ones: one run in 2,048 of real chance takes eleven.
  const it = await course('memory')
  const { dispatch } = it.open(it.store.course, { more: { random: seeded(1) } })
  for (let n = 0; n < 300; n += 1) await it.join(`poisoned-${n}@example.com`)
  it.answer((message) =>
    message.to.address.startsWith('poisoned')
      ? { kind: 'transient', scope: 'message', reason: 'try again' }
      : { kind: 'sent', id: message.key },
  )
  await dispatch({ limit: 300 })
  // A day later every one of them is due again, and so stands before the new ones.
  it.pass(DAY_MS)
  for (let n = 0; n < 100; n += 1) await it.join(`good-${n}@example.com`, { at: START })
  for (let call = 0; call < 11; call += 1) await dispatch({ limit: 10 })
  const reached = it.messages.flatMap(({ to }) => (to.address.startsWith('good') ? to.address : []))
  expect(new Set(reached).size).toBe(100)
  expect(it.messages.filter(({ to }) => to.address.startsWith('poisoned')).length).toBeGreaterThan(300)
})
