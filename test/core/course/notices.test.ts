import { rm } from 'node:fs/promises'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { NOTICES } from '../../../src/core/course/definition.ts'
import type { CourseOptions } from '../../../src/core/course/open.ts'
import type { StoreAddress } from '../../../src/core/env/settings.ts'
import { silentLog } from '../../../src/core/host.ts'
import type { Message, Outcome } from '../../../src/core/mail/mailer.ts'
import { copyStore, openMaintenance, restoreStore } from '../../../src/core/store/open.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { visitorsHear } from '../../../src/daemon/alerts.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { testContext } from '../../support/context.ts'
import { courseWith, linkOf } from '../../support/course.ts'
import { emptyFolder } from '../../support/folder.ts'
import { closeIncident, incidentWith, openIncident } from '../../support/incidents.ts'
import { addressOf, KEPT, openTestStore, type StoreKind } from '../../support/stores.ts'
import { audited } from '../../support/subscribers.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** One cause of each kind that the default platform shows to visitors. */
const CAUSES = ['mail', 'store', 'datastore', 'payments', 'models'] as const

type Answer = (message: Message) => Outcome | Promise<Outcome>
const SENT: Answer = (message) => ({ kind: 'sent', id: message.key })
const LATER: Answer = () => ({ kind: 'transient', scope: 'message', reason: 'try later' })
/** This outcome for Ada; everybody else's notice is taken. */
const forAda =
  (outcome: Outcome): Answer =>
  (message) =>
    message.to.address.startsWith('ada') ? outcome : SENT(message)
const NEVER = new Promise<never>(() => {})

type World = Awaited<ReturnType<typeof world>>

/** A platform on a store of its own, with as many processes as are asked for and time that only the test lets pass. */
async function world(kind: StoreKind, ...subscribers: string[]) {
  const it = await courseWith(0, { kind, leaseClock: 'standing' })
  // Short sleeps pass; a lease ends only when the test advances the clock.
  const sleep = (ms: number) => (ms < 1000 ? new Promise<void>((resolve) => setImmediate(resolve)) : NEVER)
  const { messages, now } = it
  const logged: string[] = []
  let count = 0
  /** Whether a notice is composed and not yet handed over, and what happens then. */
  let isComposed = false
  let meanwhile: () => Promise<unknown> = async () => {}

  /** A process: what one daemon has open. */
  function processOn(store: Store) {
    const notices: CourseOptions['notices'] = {
      isSilent: async () => {
        if (isComposed) await meanwhile()
        return (await store.incidents.silenceAt(now())) !== undefined
      },
      slots: ({ kind, subject, facts: { translations, isGone } }, language = 'none') => {
        isComposed = true
        const statusUrl = 'https://a.example/'
        const text = translations?.[language] ?? `in language ${language}`
        return { title: `${isGone ? 'gone' : kind} ${subject}`, text, when: 'when', statusUrl }
      },
    }
    const log = { ...silentLog, warn: (code: string) => void logged.push(code) }
    const course = it.open(store.course, { timer: { monotonic: now, sleep }, more: { notices, log } })
    return {
      store,
      course,
      /** Does the daemon's work after a round of checks, as often as is asked for. */
      async round(times = 1) {
        for (let done = 0; done < times; done += 1) {
          const heard = { now: now(), channels: [], visitorsHear: visitorsHear(learning) }
          await store.incidents.follow({ ...heard, decide: () => ({}) })
          await course.deliverMessages()
        }
      },
    }
  }
  const first = processOn(it.store)
  const { incidents } = it.store
  const subscribe = (address: string, language?: string) =>
    first.course.enrol({ spelling: address, identity: address, course: NOTICES, language })
  for (const name of subscribers) await subscribe(`${name}@example.com`)
  return {
    ...first,
    address: it.address,
    another: async () => processOn(await it.anotherStore()),
    openOn: async (address: typeof it.address) => processOn(await openTestStore(address, now)),
    messages,
    logged,
    now,
    answer: it.answer,
    pass: it.pass,
    beforeItsTurn: (happens: () => Promise<unknown>) => {
      isComposed = false
      meanwhile = happens
    },
    subscribe,
    async opens(cause: string, on = incidents) {
      count += 1
      const id = `${cause}-${count}`
      const reason = 'connection refused 10.0.0.7'
      await openIncident(on, incidentWith({ id, cause, reason, service: 'api', openedAt: now() }))
      return id
    },
    closes: (cause: string) => closeIncident(incidents, cause, now()),
    announces: (id: string, forMs?: number) => {
      const until = forMs === undefined ? undefined : now() + forMs
      const said = { text: 'Maintenance', translations: { de: 'Wartung' } }
      return incidents.announce({ id, ...said, from: now(), until, by: 'ops' }, now())
    },
    withdraws: (id: string) => incidents.withdraw({ id, now: now() }),
    silences: (ms: number) =>
      incidents.silence({ from: now(), until: now() + ms, reason: 'deploy', by: 'ci' }),
    updates: (id: string, subject: string) =>
      incidents.update({ id, subject, at: now(), text: 'Seen', state: undefined, by: 'ops' }),
    says: () => messages.map(({ to, subject }) => `${to.address.split('@')[0]} ${subject}`),
  }
}

describe.each(KEPT)('notices on %s', (kind) => {
  test('a subscriber gets one mail when an incident opens and one when it closes, with one-click unsubscribe', async () => {
    const { opens, closes, round, says, messages, course } = await world(kind, 'ada')
    await opens('mail')
    await round(3)
    expect(says()).toEqual(['ada opened mail-1'])
    expect(messages[0]?.headers).toMatchObject({
      'List-Unsubscribe': expect.stringMatching(/^<https:\/\/www\.example\.com\/api\/email\/unsubscribe\?/),
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      // Apart from the course: its complaints, and a filter for its list.
      'List-Id': '<notice.example.com>',
      'Feedback-ID': expect.stringMatching(/^status-notice:notice:mail:[0-9a-f]{12}$/),
    })
    await closes('mail')
    await round(3)
    expect(says()).toEqual(['ada opened mail-1', 'ada closed mail-1'])
    // A stream has no end: its subscriber is still in it.
    expect(await course.find('ada@example.com', NOTICES)).toMatchObject({
      state: 'confirmed',
      nextAttemptAt: undefined,
    })
  })

  test('subscribers hear about incidents that begin afterwards, and the one-click link ends these mails but no course', async () => {
    const { subscribe, opens, closes, round, says, messages, course } = await world(kind)
    await opens('mail')
    await round()
    await subscribe('ada@example.com')
    await course.enrol({ spelling: 'ada@example.com', identity: 'ada@example.com' })
    await round()
    await closes('mail')
    await opens('store')
    await round()
    expect(says()).toEqual(['ada closed mail-1', 'ada opened store-2'])
    await course.unsubscribe(linkOf(messages[0]))
    await closes('store')
    await round()
    expect(says()).toHaveLength(2)
    const states = (await course.findPerson('ada@example.com')).map((one) => [one.course, one.state])
    expect(states).toEqual([
      ['quantum', 'confirmed'],
      [NOTICES, 'unsubscribed'],
    ])
  })

  test('incidents for operators are mailed to no visitor, and an announcement is mailed once, however old its notice grows', async () => {
    const { opens, round, says, pass, store, now, announces, course } = await world(kind, 'ada')
    for (const cause of ['certificate_expiring', 'disk_nearly_full', 'errortrack', 'lessons_late'])
      await opens(cause)
    await announces('a1')
    await round(2)
    await opens('mail')
    await round()
    pass(HOUR)
    await store.incidents.prune({ before: now(), keep: 10 })
    await round()
    expect(says()).toEqual(['ada announced a1', 'ada opened mail-5'])
    // The end of a mailed incident is mailed also when its probe has left the definition, but not as working again.
    const heard = { now: now(), channels: [], visitorsHear: () => false }
    const end = { cause: 'mail', at: now(), unseenSince: now(), resolvedReason: 'is no longer checked' }
    await store.incidents.follow({ ...heard, decide: () => ({ closes: [end] }) })
    await course.deliverMessages()
    expect(says().slice(2)).toEqual(['ada gone mail-5'])
    // An operator who resolves an incident says that it is over.
    const id = await opens('store')
    await round()
    const audit = audited('resolve-incident', now(), id)
    await store.incidents.resolve({ id, now: now(), by: 'bob', reason: 'a test', audit })
    await round()
    expect(says().slice(3)).toEqual([`ada opened ${id}`, `ada closed ${id}`])
  })

  test('an update is mailed once, unless its announcement was withdrawn or its incident ended before; one written after the end is', async () => {
    const it = await world(kind, 'ada')
    await it.announces('a1')
    const incident = await it.opens('mail')
    await it.round()
    const begun = it.says().length
    await it.updates('u1', 'a1')
    await it.updates('u2', incident)
    await it.round(3)
    expect(it.says().slice(begun).sort()).toEqual(['ada announced u1', 'ada announced u2'])
    await it.updates('u3', 'a1')
    await it.updates('u4', incident)
    await it.withdraws('a1')
    await it.closes('mail')
    await it.round(3)
    expect(it.says().slice(begun + 2)).toEqual([`ada closed ${incident}`])
    it.pass(MINUTE)
    await it.updates('u5', incident)
    await it.round(2)
    expect(it.says().slice(begun + 3)).toEqual(['ada announced u5'])
  })

  test('a withdrawn announcement is mailed to nobody it has not reached, from either process, and later notices are', async () => {
    const it = await world(kind, 'ada', 'bob', 'eve')
    const other = await it.another()
    await it.announces('a1', HOUR)
    it.answer(async (message) => {
      // The operator's clock is behind, which must not matter.
      await it.store.incidents.withdraw({ id: 'a1', now: it.now() - MINUTE })
      return message.to.address.startsWith('ada') ? SENT(message) : LATER(message)
    })
    await it.round()
    const begun = it.says().length
    expect(begun).toBeGreaterThan(0)
    it.answer(SENT)
    for (let look = 0; look < 4; look += 1) {
      it.pass(10 * MINUTE)
      await other.round()
      await it.round()
    }
    expect(it.says()).toHaveLength(begun)
    await it.opens('mail')
    await it.round()
    const opened = ['ada', 'bob', 'eve'].map((name) => `${name} opened mail-1`)
    expect(it.says().slice(begun).sort()).toEqual(opened)
  })

  test.each<[string, (it: World) => Promise<unknown>, (it: World) => Promise<unknown>, afterwards: string[]]>(
    [
      ['an announcement is withdrawn', (it) => it.announces('a1'), (it) => it.withdraws('a1'), []],
      [
        'a silence begins',
        (it) => it.opens('mail'),
        (it) => it.silences(HOUR),
        // It waits, and is still news afterwards.
        ['ada opened mail-1'],
      ],
      [
        'about an end, a silence begins',
        async (it) => {
          await it.opens('mail')
          await it.round()
          it.messages.length = 0
          await it.closes('mail')
        },
        (it) => it.silences(HOUR),
        ['ada closed mail-1'],
      ],
    ],
  )(
    'while a composed mail waits for its turn, %s: it is not mailed',
    async (_, begins, happens, afterwards) => {
      const it = await world(kind, 'ada')
      await begins(it)
      it.beforeItsTurn(() => happens(it))
      await it.round()
      expect(it.says()).toEqual([])
      it.beforeItsTurn(async () => {})
      it.pass(HOUR)
      await it.round()
      expect(it.says()).toEqual(afterwards)
    },
  )

  test.each<[string, (it: World) => Promise<unknown>, (it: World) => unknown, afterwards: string[]]>([
    ['news of three days ago', (it) => it.opens('mail'), (it) => it.pass(72 * HOUR - 10 * MINUTE), []],
    ['an announcement that has ended', (it) => it.announces('a1', 5 * MINUTE), () => {}, []],
    [
      'a notice of somebody who has left',
      (it) => it.opens('mail'),
      (it) => it.course.cancel({ identity: 'ada@example.com', course: NOTICES }),
      [],
    ],
    ['a notice that is no news any more', (it) => it.opens('mail'), (it) => it.pass(72 * HOUR), []],
    // Its end alone is news.
    [
      'the beginning of an incident that has ended',
      (it) => it.opens('mail'),
      (it) => it.closes('mail'),
      ['ada closed mail-1'],
    ],
  ])(
    '%s while its mail waited for the next attempt is not mailed any more',
    async (_, begins, ends, afterwards) => {
      const it = await world(kind, 'ada')
      await begins(it)
      it.answer(LATER)
      await it.round()
      expect(it.says()).toHaveLength(1)
      await ends(it)
      it.answer(SENT)
      it.pass(10 * MINUTE)
      await it.round()
      expect(it.says().slice(1)).toEqual(afterwards)
    },
  )

  // Each step, and what is mailed after how many minutes.
  test.each([
    [
      'of failures that last, and of nothing before',
      ['silence 10', 'open mail', 'open store', 'round', 'close mail', 'round', 'pass 11', 'round'],
      ['11: opened store-2'],
    ],
    [
      'first of what ended during it, then of what began again',
      ['open mail', 'round', 'silence 10', 'pass 1', 'close mail', 'pass 1', 'open mail', 'round', 'pass 10'],
      ['0: opened mail-1', '12: closed mail-1', '12: opened mail-2'],
    ],
    [
      'of the end of an incident that an operator told them of meanwhile',
      ['silence 60', 'open mail', 'round', 'pass 1', 'tell mail-1', 'round', 'close mail', 'pass 60'],
      ['1: announced u1', '61: closed mail-1'],
    ],
    [
      'only what an operator tells them of an incident that began and ended during it',
      ['silence 60', 'open mail', 'round', 'pass 1', 'close mail', 'round', 'pass 60', 'tell mail-1'],
      ['61: announced u1'],
    ],
    [
      'of what still fails, also when an operator has acknowledged it meanwhile',
      ['silence 10', 'open mail', 'acknowledge mail-1', 'round', 'pass 11', 'round', 'round', 'close mail'],
      ['11: opened mail-1', '11: closed mail-1'],
    ],
  ])('after a silence, visitors hear %s', async (_, steps, heard) => {
    const it = await world(kind, 'ada')
    const begin = it.now()
    const mailed: string[] = []
    const doing: Record<string, (what: string) => unknown> = {
      silence: (minutes) => it.silences(Number(minutes) * MINUTE),
      open: (cause) => it.opens(cause),
      close: (cause) => it.closes(cause),
      tell: (incident) => it.updates('u1', incident),
      acknowledge: (id) => it.store.incidents.acknowledge({ id, now: it.now(), by: 'eve' }),
      pass: (minutes) => it.pass(Number(minutes) * MINUTE),
      round: () => it.round(),
    }
    for (const step of [...steps, 'round', 'round']) {
      const [verb = '', what = ''] = step.split(' ')
      await doing[verb]?.(what)
      const minutes = (it.now() - begin) / MINUTE
      for (const { subject } of it.messages.splice(0)) mailed.push(`${minutes}: ${subject}`)
    }
    expect(mailed).toEqual(heard)
  })

  test('a notice published before a silence waits for its end, in every dispatching process', async () => {
    const { opens, round, says, pass, silences, answer, course } = await world(kind, 'ada')
    await opens('mail')
    answer(LATER)
    await round()
    answer(SENT)
    pass(6 * MINUTE)
    await silences(HOUR)
    await course.dispatch({ limit: 10 })
    await round()
    expect(says()).toHaveLength(1)
    pass(HOUR)
    await round()
    expect(says().slice(1)).toEqual(['ada opened mail-1'])
  })

  test('what operators say during a silence is mailed at once, also to those for whom another notice waits', async () => {
    const it = await world(kind, 'ada', 'bob')
    const incident = await it.opens('mail')
    it.answer(forAda({ kind: 'transient', scope: 'message', reason: 'try later' }))
    await it.round()
    const begun = it.says().length
    it.answer(SENT)
    await it.silences(HOUR)
    await it.announces('a1', HOUR)
    await it.round(2)
    it.pass(6 * MINUTE)
    await it.updates('u1', incident)
    await it.round(2)
    const everybody = (what: string) => ['ada', 'bob'].map((name) => `${name} ${what}`)
    expect(it.says().slice(begun).toSorted()).toEqual(
      [...everybody('announced a1'), ...everybody('announced u1')].toSorted(),
    )
    it.pass(HOUR)
    await it.round()
    expect(it.says().slice(begun + 4)).toEqual([`ada opened ${incident}`])
  })

  test('the end of an incident waits while its beginning is being sent', async () => {
    const { opens, closes, round, says, answer, another } = await world(kind, 'ada')
    await opens('mail')
    const slow = Promise.withResolvers<Outcome>()
    const out = Promise.withResolvers<void>()
    answer(() => {
      out.resolve()
      return slow.promise
    })
    const sending = round()
    await out.promise
    answer(SENT)
    await closes('mail')
    const other = await another()
    await other.round()
    expect(says()).toHaveLength(1)
    slow.resolve({ kind: 'sent', id: 'one' })
    await sending
    await other.round()
    expect(says()).toEqual(['ada opened mail-1', 'ada closed mail-1'])
  })

  test('a notice whose first outcome is unknown is tried ever more rarely through an outage, and mailed after it', async () => {
    const { opens, round, says, pass, answer } = await world(kind, 'ada')
    await opens('mail')
    let attempts = 0
    answer(() => {
      attempts += 1
      return attempts === 1
        ? { kind: 'unknown', reason: 'the connection broke' }
        : { kind: 'transient', scope: 'connection', reason: 'the server is away' }
    })
    for (let hour = 0; hour < 30; hour += 1) {
      pass(HOUR)
      await round()
    }
    expect(attempts).toBeLessThan(35)
    answer(SENT)
    pass(2 * HOUR)
    await round()
    expect(says().slice(attempts)).toEqual(['ada opened mail-1'])
  })

  test('a notice that is refused, and nobody knows whether for its own sake, is tried again every ten minutes', async () => {
    const { opens, round, says, pass, answer, logged } = await world(kind, 'ada')
    await opens('mail')
    answer(() => ({ kind: 'transient', scope: 'sender', reason: 'a policy refused it' }))
    for (let minute = 0; minute < 30; minute += 1) {
      await round()
      pass(MINUTE)
    }
    expect(says()).toHaveLength(3)
    expect(logged).toEqual(Array(3).fill('notice_not_sent'))
    answer(SENT)
    await round()
    expect(says()).toHaveLength(4)
  })

  test('a dozen notices of one moment reach a subscriber in the order of their causes', async () => {
    const { round, says, announces } = await world(kind, 'ada')
    const ids = Array.from({ length: 12 }, (_, n) => `work-${n + 1}`)
    for (const id of ids) await announces(id)
    await round()
    expect(says()).toEqual(ids.map((id) => `ada announced ${id}`))
  })

  test('a permanently refused notice does not block later ones, and waiting lessons do not block notices', async () => {
    const { opens, closes, round, says, answer, course, messages } = await world(kind, 'ada', 'bob')
    for (let n = 0; n < 20; n += 1)
      await course.enrol({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
    await opens('mail')
    answer(forAda({ kind: 'permanent', hardBounce: false, reason: 'no' }))
    await round()
    expect(says()).toContain('bob opened mail-1')
    answer(SENT)
    messages.length = 0
    await closes('mail')
    await round()
    expect(says().sort()).toEqual(['ada closed mail-1', 'bob closed mail-1'])
  })

  test('a hard bounce ends the subscription, and asking again mails no second confirmation to who is subscribed', async () => {
    const { subscribe, opens, closes, round, says, answer, course, messages } = await world(
      kind,
      'ada',
      'bob',
    )
    expect(await subscribe('bob@example.com')).toEqual({ enrolled: false, reason: 'already_enrolled' })
    const again = { spelling: 'bob@example.com', identity: 'bob@example.com', course: NOTICES }
    expect(await course.subscribe(again)).toEqual({ status: 'pending', sent: true })
    await new Promise((resolve) => setImmediate(resolve))
    await course.close()
    expect(says()).toEqual([])
    await opens('mail')
    answer(forAda({ kind: 'permanent', hardBounce: true, reason: 'no such mailbox' }))
    await round()
    messages.length = 0
    await closes('mail')
    await round()
    expect(says()).toEqual(['bob closed mail-1'])
    expect(await course.find('ada@example.com', NOTICES)).toMatchObject({ state: 'unsubscribed' })
  })
})

type Step =
  | { readonly do: 'open' | 'close'; readonly cause: (typeof CAUSES)[number] }
  | { readonly do: 'subscribe'; readonly who: number }
  | { readonly do: 'pass'; readonly minutes: number }
  | { readonly do: 'round'; readonly process: number }
  /** The process is killed after it hands over this many more messages, before it records the last. */
  | { readonly do: 'kill'; readonly process: number; readonly after: number }

const cause = fc.constantFrom(...CAUSES)
const process = fc.nat({ max: 1 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('open', 'close'), cause }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('subscribe'), who: fc.nat({ max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('pass'), minutes: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('round'), process }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('kill'), process, after: fc.integer({ min: 1, max: 4 }) }),
  },
)

test.each(KEPT)(
  'on %s, processes killed between sending and recording lose no notice, and send none twice or out of order',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const { another, messages, answer, pass, subscribe, opens, closes, store, now } = await world(kind)
        const processes = [await another(), await another()]
        const killed = new Set<string>()
        const base = new Map<string, number>()
        for (const one of steps) {
          pass(1)
          switch (one.do) {
            case 'open':
              await opens(one.cause)
              break
            case 'close':
              await closes(one.cause)
              break
            case 'subscribe': {
              const who = `p${one.who}@example.com`
              if ((await subscribe(who)).enrolled) base.set(who, now())
              break
            }
            case 'pass':
              pass(one.minutes * MINUTE)
              break
            case 'round':
              await processes[one.process]?.round()
              break
            case 'kill': {
              let left = one.after
              const handed: string[] = []
              const dead = new Promise<void>((resolve) =>
                answer((message) => {
                  left -= 1
                  handed.push(message.key)
                  if (left > 0) return SENT(message)
                  // Taken by the receiver, and nobody records it, nor surely those whose record would share its commit.
                  for (const key of handed) killed.add(key)
                  resolve()
                  return NEVER
                }),
              )
              await Promise.race([dead, processes[one.process]?.round()])
              answer(SENT)
              if (left <= 0) processes[one.process] = await another()
            }
          }
        }
        for (let look = 0; look < 12; look += 1) {
          pass(2 * MINUTE)
          await processes[0]?.round()
        }
        const ids = (await store.incidents.list(1000)).map(({ id }) => id)
        const notices = (await store.incidents.messages(ids)).map(({ incident: subject, kind, at }) => ({
          ...{ subject, kind, at },
          says: `${kind} ${subject}`,
        }))
        const ended = new Set(notices.flatMap(({ kind, subject }) => (kind === 'closed' ? subject : [])))
        for (const [who, since] of base) {
          const own = messages.filter(({ to }) => to.address === who)
          // A key again only where its record was lost, and never two keys for one notice.
          const keys = Map.groupBy(own, ({ key }) => key)
          for (const [key, times] of keys) expect(times.length === 1 || killed.has(key)).toBe(true)
          const heard = [...keys.values()].flatMap(([first]) => first?.subject ?? [])
          expect(new Set(heard).size).toBe(heard.length)
          const expected = notices.filter(({ at }) => at >= since)
          const times = heard.map((says) => expected.find((one) => one.says === says)?.at)
          expect(times).toEqual(times.toSorted((a = 0, b = 0) => a - b))
          // Only the beginning of what has ended since may be left out.
          const missing = expected.filter(({ says }) => !heard.includes(says))
          expect(missing.filter(({ kind, subject }) => kind !== 'opened' || !ended.has(subject))).toEqual([])
        }
      }),
      { numRuns: kind === 'sqlite' ? 15 : 4 },
    )
  },
  60_000,
)

describe.each(KEPT)('the row of a subscriber to incidents on %s', (kind) => {
  test('is checked by verify, exported with its history, and gone after an erasure', async () => {
    const { address, opens, round, says, now } = await world(kind, 'ada', 'bob')
    if (address === undefined) throw new Error('this store has no address')
    await opens('mail')
    await round()
    const verify = async () => {
      const maintenance = await openMaintenance(address)
      const { ok, checked, faults } = await maintenance.verify(now())
      await maintenance.close()
      return { ok, checked, faults }
    }
    const STORE_URL = address.kind === 'sqlite' ? `sqlite:${address.file}` : address.url.reveal()
    const command = async (...args: string[]) => {
      const { context, stdout } = testContext({ cwd: await emptyFolder(), env: { STORE_URL } })
      return { code: await runProgram(['course', ...args], context), stdout: stdout() }
    }
    const setDays = (days: string) =>
      byHand(address, `UPDATE subscription SET sent_days = '${days}' WHERE address = 'bob@example.com'`)
    expect(await verify()).toEqual({ ok: true, checked: 2, faults: [] })
    await setDays('[2]')
    expect(await verify()).toMatchObject({ ok: false, faults: [expect.stringContaining('days sent')] })
    await setDays('[1]')
    const exported = await command('show', 'ada@example.com', '--format', 'json')
    expect(JSON.parse(exported.stdout).enrolments).toMatchObject([
      {
        course: NOTICES,
        state: 'confirmed',
        history: expect.arrayContaining([expect.objectContaining({ kind: 'notice', outcome: 'sent' })]),
      },
    ])
    expect(await command('erase', 'ada@example.com', '--yes')).toMatchObject({ code: 0 })
    expect(await command('show', 'ada@example.com')).toMatchObject({ code: 1 })
    await opens('store')
    await round()
    expect(says().slice(2)).toEqual(['bob opened store-2'])
    expect(await verify()).toEqual({ ok: true, checked: 1, faults: [] })
  })
})

/** Backs a store up; gives the file. */
async function backup(address: StoreAddress, now: number): Promise<string> {
  const file = path.join(await emptyFolder(), 'platform.sqlite.zst')
  const maintenance = await openMaintenance(address)
  await maintenance.backup(file, now)
  await maintenance.close()
  return file
}

test('a restored backup keeps subscribers to incidents; who left since it stays out, and nothing mailed since is repeated', async () => {
  const it = await world('sqlite', 'ada', 'bob', 'eve')
  if (it.address === undefined) throw new Error('this store has no address')
  await it.opens('mail')
  await it.round()
  const from = await backup(it.address, it.now())
  await it.announces('move')
  await it.round()
  await it.course.unsubscribe(linkOf(it.messages.find(({ to }) => to.address.startsWith('bob'))))
  await it.course.erase('eve@example.com', { name: 'ops', place: 'box-1' })
  await it.store.close()
  await restoreStore(it.address, { from, force: true, now: it.now() })
  const restored = await it.another()
  expect((await restored.course.findPerson('bob@example.com'))[0]).toMatchObject({ state: 'unsubscribed' })
  expect(await restored.course.findPerson('eve@example.com')).toEqual([])
  await it.opens('store', restored.store.incidents)
  await restored.round()
  expect(it.says().slice(6)).toEqual(['ada opened store-2'])
})

test('a notice and the link that ends it speak the language of their subscriber', async () => {
  const it = await world('sqlite')
  await it.subscribe('ada@example.com', 'de')
  await it.subscribe('bob@example.com')
  await it.opens('mail')
  await it.round()
  const spoken = it.messages.map(({ to, text, headers }) => [
    to.address,
    /in language (\w+)/.exec(text)?.[1],
    headers['List-Unsubscribe']?.includes('language=de'),
  ])
  expect(spoken.toSorted()).toEqual([
    ['ada@example.com', 'de', true],
    ['bob@example.com', 'none', false],
  ])
  await it.announces('a1')
  await it.round()
  const translated = it.messages.filter(({ text }) => text.includes('Wartung'))
  expect(translated.map(({ to }) => to.address)).toEqual(['ada@example.com'])
})

test('after a restore no notice has the key of another that was mailed since the backup', async () => {
  const it = await world('sqlite', 'ada')
  if (it.address?.kind !== 'sqlite') throw new Error('this store has no file')
  const from = await backup(it.address, it.now())
  await it.opens('mail')
  await it.round()
  await it.store.close()
  // The disk is lost, and of the store only its journal is left.
  await rm(it.address.file)
  await restoreStore(it.address, { from, force: true, now: it.now() })
  const restored = await it.another()
  await it.opens('store', restored.store.incidents)
  await restored.round()
  expect(it.says()).toEqual(['ada opened mail-1', 'ada opened store-2'])
  expect(new Set(it.messages.map(({ key }) => key)).size).toBe(2)
})

test('a store copied into PostgreSQL and back keeps its subscribers to incidents, and repeats no notice', async () => {
  const it = await world('sqlite', 'ada')
  const database = await addressOf('postgres')
  const file = { kind: 'sqlite', file: path.join(await emptyFolder(), 'back.sqlite') } as const
  if (it.address === undefined || database === undefined) throw new Error('these stores have addresses')
  await it.opens('mail')
  await it.round()
  await it.store.close()
  for (const [from, to, cause] of [
    [it.address, database, 'store'],
    [database, file, 'payments'],
  ] as const) {
    await copyStore(from, to, it.now())
    const moved = await it.openOn(to)
    await moved.round()
    await it.opens(cause, moved.store.incidents)
    await moved.round()
    await moved.store.close()
  }
  expect(it.says()).toEqual(['ada opened mail-1', 'ada opened store-2', 'ada opened payments-3'])
})
