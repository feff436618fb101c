import { rm } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { createCatalog } from '../../../src/core/course/catalog.ts'
import { NOTICES } from '../../../src/core/course/definition.ts'
import { openCourse } from '../../../src/core/course/open.ts'
import { silentLog, systemRandom } from '../../../src/core/host.ts'
import type { Message, Outcome } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'
import { copyStore, openMaintenance, openStore, restoreStore } from '../../../src/core/store/open.ts'
import { visitorsHear } from '../../../src/daemon/alerts.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'
import { closeIncident, openIncident } from '../../support/incidents.ts'
import { compiledMails } from '../../support/learning.ts'
import { addressOf, KEPT, postgresServer, type StoreKind } from '../../support/stores.ts'
import { testTransport } from '../../support/test-transport.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** One cause of each kind that the default platform shows to visitors. */
const CAUSES = ['mail', 'store', 'datastore', 'payments', 'models'] as const

interface Arrived {
  readonly to: string
  readonly key: string
  readonly says: string
}

type Answer = (message: Message) => Outcome | Promise<Outcome>
const SENT: Answer = (message) => ({ kind: 'sent', id: message.key })
const NEVER = new Promise<never>(() => {})

/** A platform on a store of its own, with as many processes as are asked for and time that only the test lets pass. */
async function world(kind: StoreKind) {
  const address = await addressOf(kind)
  let now = Date.UTC(2026, 10, 22, 9)
  const clock = {
    now: () => now,
    monotonic: () => now,
    // Short sleeps pass; a lease ends only when the test advances the clock.
    sleep: (ms: number) => (ms < 1000 ? new Promise<void>((resolve) => setImmediate(resolve)) : NEVER),
  }
  const arrived: Arrived[] = []
  const messages: Message[] = []
  const logged: string[] = []
  let answer: Answer = SENT
  let count = 0
  /** Whether a notice is composed and not yet handed over, and what happens then. */
  let isComposed = false
  let meanwhile: () => Promise<unknown> = async () => {}

  /** A process: what one daemon has open. */
  async function open(at = address) {
    const store = await openStore(at, { leaseClock: () => now })
    onTestFinished(() => store.close())
    const course = openCourse({
      catalog: createCatalog(learning.courses),
      store: store.course,
      persistent: true,
      limit: 100,
      mailer: openMailer({
        compiled: compiledMails,
        mail: undefined,
        from: { name: undefined, address: 'status@example.com' },
        transport: testTransport(async (message) => {
          const outcome = await answer(message)
          messages.push(message)
          arrived.push({ to: message.to.address, key: message.key, says: message.subject })
          return outcome
        }),
      }),
      clock,
      timer: clock,
      random: systemRandom,
      log: { ...silentLog, warn: (code) => void logged.push(code) },
      siteUrl: 'https://www.example.com',
      linkKey: secret('a key for links in tests only'),
      notices: {
        isSilent: async () => {
          if (isComposed) await meanwhile()
          return (await store.incidents.silenceAt(now)) !== undefined
        },
        slots: ({ kind, subject }) => {
          isComposed = true
          return {
            title: `${kind} ${subject}`,
            text: 'text',
            when: 'when',
            statusUrl: 'https://www.example.com/',
          }
        },
      },
    })
    return {
      store,
      course,
      /** Does the daemon's work after a round of checks. */
      async round() {
        await store.incidents.follow({
          ...{ now, channels: [], visitorsHear: visitorsHear(learning) },
          decide: () => ({}),
        })
        await course.deliverMessages()
      },
    }
  }
  const first = await open()
  return {
    ...first,
    address,
    open,
    arrived,
    messages,
    logged,
    clock,
    answer: (next: Answer) => {
      answer = next
    },
    beforeItsTurn: (happens: () => Promise<unknown>) => {
      meanwhile = happens
    },
    pass: (ms: number) => {
      now += ms
    },
    async subscribe(address: string) {
      const person = { spelling: address, identity: address, course: NOTICES }
      return first.course.enrol(person)
    },
    async opens(cause: string, store = first.store) {
      count += 1
      const id = `${cause}-${count}`
      const times = { openedAt: now, seenAt: now, closedAt: undefined }
      const rest = { reason: 'connection refused 10.0.0.7', affected: ['web'], service: 'api' }
      await openIncident(store.incidents, {
        id,
        cause,
        ...rest,
        ...times,
        acknowledgedAt: undefined,
        acknowledgedBy: undefined,
      })
      return id
    },
    closes: (cause: string) => closeIncident(first.store.incidents, cause, now),
    says: () => arrived.map(({ to, says }) => `${to} ${says}`),
  }
}

describe.each(KEPT)('notices on %s', (kind) => {
  test('a subscriber gets one mail when an incident opens and one when it closes, with one-click unsubscribe', async () => {
    const { subscribe, opens, closes, round, says, messages, course } = await world(kind)
    await subscribe('ada@example.com')
    await opens('mail')
    for (let look = 0; look < 3; look += 1) await round()
    expect(says()).toEqual(['ada@example.com opened mail-1'])
    expect(messages[0]?.headers).toMatchObject({
      'List-Unsubscribe': expect.stringMatching(/^<https:\/\/www\.example\.com\/api\/email\/unsubscribe\?/),
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      // Apart from the course: its complaints, and a filter for its list.
      'List-Id': '<notice.example.com>',
      'Feedback-ID': expect.stringMatching(/^status-notice:notice:mail:[0-9a-f]{12}$/),
    })
    await closes('mail')
    for (let look = 0; look < 3; look += 1) await round()
    expect(says()).toEqual(['ada@example.com opened mail-1', 'ada@example.com closed mail-1'])
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
    expect(says()).toEqual(['ada@example.com closed mail-1', 'ada@example.com opened store-2'])
    const url = new URL(/<(.*)>/.exec(messages[0]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
    await course.unsubscribe({ s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' })
    await closes('store')
    await round()
    expect(says()).toHaveLength(2)
    const states = (await course.findPerson('ada@example.com')).map((one) => [one.course, one.state])
    expect(states).toEqual([
      ['quantum', 'confirmed'],
      [NOTICES, 'unsubscribed'],
    ])
  })

  test('incidents for operators are mailed to no visitor, and an announcement is mailed once', async () => {
    const { subscribe, opens, round, says, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    for (const cause of ['certificate_expiring', 'disk_nearly_full', 'errortrack', 'lessons_late'])
      await opens(cause)
    const announcement = { id: 'a1', text: 'Maintenance', from: clock.now(), until: clock.now() + HOUR }
    await store.incidents.announce({ ...announcement, by: 'ops' }, clock.now())
    for (let look = 0; look < 2; look += 1) await round()
    expect(says()).toEqual(['ada@example.com announced a1'])
  })

  test('an update is mailed once, unless its announcement was withdrawn or its incident ended before; one written after the end is', async () => {
    const { subscribe, opens, closes, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const announcement = { id: 'a1', text: 'Maintenance', from: clock.now(), until: undefined, by: 'ops' }
    await store.incidents.announce(announcement, clock.now())
    const incident = await opens('mail')
    await round()
    const begun = says().length
    const update = (id: string, subject: string) =>
      store.incidents.update({ id, subject, at: clock.now(), text: 'Seen', state: undefined, by: 'ops' })
    await update('u1', 'a1')
    await update('u2', incident)
    for (let look = 0; look < 3; look += 1) await round()
    expect(says().slice(begun).sort()).toEqual(['u1', 'u2'].map((id) => `ada@example.com announced ${id}`))
    await update('u3', 'a1')
    await update('u4', incident)
    await store.incidents.withdraw({ id: 'a1', now: clock.now() })
    await closes('mail')
    for (let look = 0; look < 3; look += 1) await round()
    expect(says().slice(begun + 2)).toEqual([`ada@example.com closed ${incident}`])
    pass(MINUTE)
    await update('u5', incident)
    for (let look = 0; look < 2; look += 1) await round()
    expect(says().slice(begun + 3)).toEqual(['ada@example.com announced u5'])
  })

  test('a withdrawn announcement is mailed to nobody it has not reached, from either process, and later notices are', async () => {
    const { subscribe, opens, round, says, pass, store, clock, answer, open } = await world(kind)
    const other = await open()
    for (const name of ['ada', 'bob', 'eve']) await subscribe(`${name}@example.com`)
    const announcement = { id: 'a1', text: 'Maintenance', from: clock.now(), until: clock.now() + HOUR }
    await store.incidents.announce({ ...announcement, by: 'ops' }, clock.now())
    answer(async (message) => {
      // The operator's clock is behind, which must not matter.
      await store.incidents.withdraw({ id: 'a1', now: clock.now() - MINUTE })
      return message.to.address.startsWith('ada')
        ? { kind: 'sent', id: message.key }
        : { kind: 'transient', scope: 'message', reason: 'try later' }
    })
    await round()
    const begun = says().length
    expect(begun).toBeGreaterThan(0)
    answer(SENT)
    for (let look = 0; look < 4; look += 1) {
      pass(10 * MINUTE)
      await other.round()
      await round()
    }
    expect(says()).toHaveLength(begun)
    await opens('mail')
    await round()
    const opened = ['ada', 'bob', 'eve'].map((name) => `${name}@example.com opened mail-1`)
    expect(says().slice(begun).sort()).toEqual(opened)
  })

  test('an announcement that is withdrawn while its composed mail waits for its turn is not mailed', async () => {
    const { subscribe, round, says, store, clock, beforeItsTurn } = await world(kind)
    await subscribe('ada@example.com')
    await store.incidents.announce(
      { id: 'a1', text: 'Maintenance', from: clock.now(), until: undefined, by: 'ops' },
      clock.now(),
    )
    beforeItsTurn(() => store.incidents.withdraw({ id: 'a1', now: clock.now() }))
    await round()
    expect(says()).toEqual([])
    beforeItsTurn(async () => {})
    await round()
    expect(says()).toEqual([])
  })

  test('an announcement that ends while its mail waits for the next attempt is not mailed any more', async () => {
    const { subscribe, round, says, pass, answer, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const announcement = { id: 'a1', text: 'Maintenance', from: clock.now(), until: clock.now() + 5 * MINUTE }
    await store.incidents.announce({ ...announcement, by: 'ops' }, clock.now())
    answer(() => ({ kind: 'transient', scope: 'message', reason: 'try later' }))
    await round()
    expect(says()).toHaveLength(1)
    answer(SENT)
    pass(10 * MINUTE)
    await round()
    expect(says()).toHaveLength(1)
  })

  test('who leaves while a notice waits for its next attempt does not get it', async () => {
    const { subscribe, opens, round, says, pass, answer, course } = await world(kind)
    await subscribe('ada@example.com')
    await opens('mail')
    answer(() => ({ kind: 'transient', scope: 'message', reason: 'try later' }))
    await round()
    expect(says()).toHaveLength(1)
    await course.cancel({ identity: 'ada@example.com', course: NOTICES })
    answer(SENT)
    pass(10 * MINUTE)
    await round()
    expect(says()).toHaveLength(1)
  })

  test('mails no notices during a silence, and afterwards only those of failures that last', async () => {
    const { subscribe, opens, closes, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const silence = (ms: number) =>
      store.incidents.silence({ from: clock.now(), until: clock.now() + ms, reason: 'deploy', by: 'ci' })
    await silence(10 * MINUTE)
    await opens('mail')
    await opens('store')
    await round()
    await closes('mail')
    await round()
    expect(says()).toEqual([])
    pass(11 * MINUTE)
    await round()
    expect(says()).toEqual(['ada@example.com opened store-2'])
  })

  test('a notice published before a silence waits for its end, in every dispatching process', async () => {
    const { subscribe, opens, round, says, pass, store, clock, answer, course } = await world(kind)
    await subscribe('ada@example.com')
    await opens('mail')
    answer(() => ({ kind: 'transient', scope: 'message', reason: 'try later' }))
    await round()
    answer(SENT)
    pass(6 * MINUTE)
    await store.incidents.silence({
      from: clock.now(),
      until: clock.now() + HOUR,
      reason: 'deploy',
      by: 'ci',
    })
    await course.dispatch({ limit: 10 })
    await round()
    expect(says()).toHaveLength(1)
    pass(HOUR)
    await round()
    expect(says().slice(1)).toEqual(['ada@example.com opened mail-1'])
  })

  test('what operators say during a silence is mailed at once, also to those for whom another notice waits', async () => {
    const { subscribe, opens, round, says, pass, store, clock, answer } = await world(kind)
    for (const name of ['ada', 'bob']) await subscribe(`${name}@example.com`)
    const incident = await opens('mail')
    answer((message) =>
      message.to.address.startsWith('ada')
        ? { kind: 'transient', scope: 'message', reason: 'try later' }
        : SENT(message),
    )
    await round()
    const begun = says().length
    answer(SENT)
    const [from, until] = [clock.now(), clock.now() + HOUR]
    await store.incidents.silence({ from, until, reason: 'deploy', by: 'ci' })
    await store.incidents.announce({ id: 'a1', text: 'Maintenance', from, until, by: 'ops' }, from)
    for (let look = 0; look < 2; look += 1) await round()
    pass(6 * MINUTE)
    await store.incidents.update({
      ...{ id: 'u1', subject: incident, at: clock.now() },
      ...{ text: 'Seen', state: 'identified', by: 'ops' },
    })
    for (let look = 0; look < 2; look += 1) await round()
    const everybody = (what: string) => ['ada', 'bob'].map((name) => `${name}@example.com ${what}`)
    expect(says().slice(begun).toSorted()).toEqual(
      [...everybody('announced a1'), ...everybody('announced u1')].toSorted(),
    )
    pass(HOUR)
    await round()
    expect(says().slice(begun + 4)).toEqual([`ada@example.com opened ${incident}`])
  })

  test('a silence that begins while notices are being sent holds back the rest, and nothing else', async () => {
    const { subscribe, opens, round, says, pass, store, clock, beforeItsTurn } = await world(kind)
    await subscribe('ada@example.com')
    const incident = await opens('mail')
    const silence = { from: clock.now(), until: clock.now() + HOUR, reason: 'deploy', by: 'ci' }
    beforeItsTurn(() => store.incidents.silence(silence))
    await round()
    expect(says()).toEqual([])
    pass(HOUR)
    await round()
    expect(says()).toEqual([`ada@example.com opened ${incident}`])
  })

  test('when an incident ends before its beginning could be mailed, its end alone is mailed', async () => {
    const { subscribe, opens, closes, round, says, pass, answer, arrived } = await world(kind)
    await subscribe('ada@example.com')
    await opens('mail')
    answer(() => ({ kind: 'transient', scope: 'message', reason: 'try later' }))
    await round()
    await closes('mail')
    answer(SENT)
    arrived.length = 0
    pass(10 * MINUTE)
    await round()
    expect(says()).toEqual(['ada@example.com closed mail-1'])
  })

  test('the end of an incident waits while its beginning is being sent', async () => {
    const { subscribe, opens, closes, round, says, answer, open } = await world(kind)
    await subscribe('ada@example.com')
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
    const other = await open()
    await other.round()
    expect(says()).toEqual([])
    slow.resolve({ kind: 'sent', id: 'one' })
    await sending
    await other.round()
    expect(says()).toEqual(['ada@example.com opened mail-1', 'ada@example.com closed mail-1'])
  })

  test('a notice whose first outcome is unknown is tried ever more rarely through an outage, and mailed after it', async () => {
    const { subscribe, opens, round, says, pass, answer } = await world(kind)
    await subscribe('ada@example.com')
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
    expect(says().slice(attempts)).toEqual(['ada@example.com opened mail-1'])
  })

  test('a notice that is refused, and nobody knows whether for its own sake, is tried again every ten minutes', async () => {
    const { subscribe, opens, round, says, pass, answer, logged } = await world(kind)
    await subscribe('ada@example.com')
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

  test('after a silence, subscribers hear first of what ended during it, then of what began again', async () => {
    const { subscribe, opens, closes, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    await opens('mail')
    await round()
    const from = clock.now()
    await store.incidents.silence({ from, until: from + 10 * MINUTE, reason: 'deploy', by: 'ci' })
    pass(MINUTE)
    await closes('mail')
    pass(MINUTE)
    await opens('mail')
    await round()
    pass(10 * MINUTE)
    for (let look = 0; look < 2; look += 1) await round()
    expect(says()).toEqual(
      ['opened mail-1', 'closed mail-1', 'opened mail-2'].map((one) => `ada@example.com ${one}`),
    )
  })

  test('a dozen notices of one moment reach a subscriber in the order of their causes', async () => {
    const { subscribe, round, says, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const ids = Array.from({ length: 12 }, (_, n) => `work-${n + 1}`)
    const now = clock.now()
    for (const id of ids)
      await store.incidents.announce({ id, text: 'Work', from: now, until: undefined, by: 'eve' }, now)
    await round()
    expect(says()).toEqual(ids.map((id) => `ada@example.com announced ${id}`))
  })

  test('visitors whom an operator told of an incident during a silence hear of its end', async () => {
    const { subscribe, opens, closes, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const from = clock.now()
    await store.incidents.silence({ from, until: from + HOUR, reason: 'deploy', by: 'ci' })
    const incident = await opens('mail')
    await round()
    pass(MINUTE)
    const update = { id: 'u1', subject: incident, at: clock.now(), by: 'ops' }
    await store.incidents.update({ ...update, text: 'We are working on it', state: 'identified' })
    await round()
    pass(MINUTE)
    await closes('mail')
    pass(HOUR)
    for (let look = 0; look < 2; look += 1) await round()
    expect(says()).toEqual(['announced u1', `closed ${incident}`].map((one) => `ada@example.com ${one}`))
  })

  test('visitors hear of what still fails after a silence, also when an operator has acknowledged it meanwhile', async () => {
    const { subscribe, opens, closes, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const now = clock.now()
    await store.incidents.silence({ from: now, until: now + 10 * MINUTE, reason: 'deploy', by: 'ci' })
    const id = await opens('mail')
    await store.incidents.acknowledge({ id, now, by: 'eve' })
    await round()
    expect(says()).toEqual([])
    pass(11 * MINUTE)
    for (let look = 0; look < 2; look += 1) await round()
    expect(says()).toEqual(['ada@example.com opened mail-1'])
    await closes('mail')
    await round()
    expect(says()).toEqual(['ada@example.com opened mail-1', 'ada@example.com closed mail-1'])
  })

  test('a permanently refused notice does not block later ones, and waiting lessons do not block notices', async () => {
    const { subscribe, opens, closes, round, says, answer, course, arrived } = await world(kind)
    await subscribe('ada@example.com')
    await subscribe('bob@example.com')
    for (let n = 0; n < 20; n += 1)
      await course.enrol({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
    await opens('mail')
    answer((message) =>
      message.to.address.startsWith('ada')
        ? { kind: 'permanent', hardBounce: false, reason: 'no' }
        : SENT(message),
    )
    await round()
    expect(says()).toContain('bob@example.com opened mail-1')
    answer(SENT)
    arrived.length = 0
    await closes('mail')
    await round()
    expect(says().sort()).toEqual(['ada@example.com closed mail-1', 'bob@example.com closed mail-1'])
  })

  test('a hard bounce ends the subscription, and asking again mails no second confirmation to who is subscribed', async () => {
    const { subscribe, opens, closes, round, says, answer, course, arrived } = await world(kind)
    await subscribe('ada@example.com')
    await subscribe('bob@example.com')
    expect(await subscribe('bob@example.com')).toEqual({ enrolled: false, reason: 'already_enrolled' })
    const again = { spelling: 'bob@example.com', identity: 'bob@example.com', course: NOTICES }
    expect(await course.subscribe(again)).toEqual({ status: 'pending', sent: true })
    await new Promise((resolve) => setImmediate(resolve))
    await course.close()
    expect(says()).toEqual([])
    await opens('mail')
    answer((message) =>
      message.to.address.startsWith('ada')
        ? { kind: 'permanent', hardBounce: true, reason: 'no such mailbox' }
        : SENT(message),
    )
    await round()
    arrived.length = 0
    await closes('mail')
    await round()
    expect(says()).toEqual(['bob@example.com closed mail-1'])
    expect(await course.find('ada@example.com', NOTICES)).toMatchObject({ state: 'unsubscribed' })
  })

  test('an announcement without an end is mailed once, however old its notice grows', async () => {
    const { subscribe, opens, round, says, pass, store, clock } = await world(kind)
    await subscribe('ada@example.com')
    const announcement = { id: 'a1', text: 'Search is slow', from: clock.now(), until: undefined, by: 'ops' }
    await store.incidents.announce(announcement, clock.now())
    await round()
    await opens('mail')
    await round()
    pass(HOUR)
    await store.incidents.prune({ before: clock.now(), keep: 10 })
    await round()
    expect(says()).toEqual(['ada@example.com announced a1', 'ada@example.com opened mail-1'])
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
        const { open, arrived, answer, pass, subscribe, opens, closes, store, clock } = await world(kind)
        const processes = [await open(), await open()]
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
              if ((await subscribe(who)).enrolled) base.set(who, clock.now())
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
                  arrived.push({ to: message.to.address, key: message.key, says: message.subject })
                  resolve()
                  return NEVER
                }),
              )
              await Promise.race([dead, processes[one.process]?.round()])
              answer(SENT)
              if (left <= 0) processes[one.process] = await open()
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
          const own = arrived.filter(({ to }) => to === who)
          // A key again only where its record was lost, and never two keys for one notice.
          const keys = Map.groupBy(own, ({ key }) => key)
          for (const [key, times] of keys) expect(times.length === 1 || killed.has(key)).toBe(true)
          const heard = [...keys.values()].flatMap(([first]) => first?.says ?? [])
          expect(new Set(heard).size).toBe(heard.length)
          const expected = notices.filter(({ at }) => at >= since)
          const times = heard.map((says) => expected.find((one) => one.says === says)?.at)
          expect(times).toEqual(times.toSorted((a = 0, b = 0) => a - b))
          // Only the beginning of what has ended since may be left out.
          const missing = expected.filter(({ says }) => !heard.includes(says))
          expect(missing.filter(({ kind, subject }) => kind !== 'opened' || !ended.has(subject))).toEqual([])
        }
      }),
      { numRuns: kind === 'sqlite' ? 20 : 4 },
    )
  },
  60_000,
)

describe.each(KEPT)('the row of a subscriber to incidents on %s', (kind) => {
  test('is checked by verify, exported with its history, and gone after an erasure', async () => {
    const { address, subscribe, opens, round, says, clock } = await world(kind)
    if (address === undefined) throw new Error('this store has no address')
    await subscribe('ada@example.com')
    await subscribe('bob@example.com')
    await opens('mail')
    await round()
    const verify = async () => {
      const maintenance = await openMaintenance(address)
      const { ok, checked, faults } = await maintenance.verify(clock.now())
      await maintenance.close()
      return { ok, checked, faults }
    }
    const STORE_URL = address.kind === 'sqlite' ? `sqlite:${address.file}` : address.url.reveal()
    const command = async (...args: string[]) => {
      const { context, stdout } = testContext({ cwd: await emptyFolder(), env: { STORE_URL } })
      return { code: await runProgram(['course', ...args], context), stdout: stdout() }
    }
    const change = async (sql: (table: string) => string) => {
      if (address.kind === 'postgres')
        await (await postgresServer()).query(STORE_URL, sql('platformctl.subscription'))
      if (address.kind === 'postgres') return
      const database = new Database(address.file)
      database.exec(sql('subscription'))
      database.close()
    }
    expect(await verify()).toEqual({ ok: true, checked: 2, faults: [] })
    await change((table) => `UPDATE ${table} SET sent_days = '[2]' WHERE address = 'bob@example.com'`)
    expect(await verify()).toMatchObject({ ok: false, faults: [expect.stringContaining('days sent')] })
    await change((table) => `UPDATE ${table} SET sent_days = '[1]' WHERE address = 'bob@example.com'`)

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
    expect(says().slice(2)).toEqual(['bob@example.com opened store-2'])
    expect(await verify()).toEqual({ ok: true, checked: 1, faults: [] })
  })
})

test('a restored backup keeps subscribers to incidents, and who left since the backup stays out', async () => {
  const { address, store, course, open, subscribe, opens, round, says, messages, clock } =
    await world('sqlite')
  if (address === undefined) throw new Error('this store has no address')
  for (const name of ['ada', 'bob', 'eve']) await subscribe(`${name}@example.com`)
  await opens('mail')
  await round()
  const backup = path.join(await emptyFolder(), 'platform.sqlite.zst')
  const maintenance = await openMaintenance(address)
  await maintenance.backup(backup, clock.now())
  await maintenance.close()
  const bobs = messages.find(({ to }) => to.address.startsWith('bob'))?.headers['List-Unsubscribe'] ?? ''
  const url = new URL(/<(.*)>/.exec(bobs)?.[1] ?? '')
  await course.unsubscribe({ s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' })
  await course.erase('eve@example.com', { name: 'ops', place: 'box-1' })
  await store.close()
  await restoreStore(address, { from: backup, force: true, now: clock.now() })
  const restored = await open()
  expect((await restored.course.findPerson('bob@example.com'))[0]).toMatchObject({ state: 'unsubscribed' })
  expect(await restored.course.findPerson('eve@example.com')).toEqual([])
  await opens('store', restored.store)
  await restored.round()
  expect(says().slice(3)).toEqual(['ada@example.com opened store-2'])
})

test('after a restore no notice has the key of another that was mailed since the backup', async () => {
  const { address, store, open, subscribe, opens, round, arrived, clock } = await world('sqlite')
  if (address?.kind !== 'sqlite') throw new Error('this store has no file')
  await subscribe('ada@example.com')
  const backup = path.join(await emptyFolder(), 'platform.sqlite.zst')
  const maintenance = await openMaintenance(address)
  await maintenance.backup(backup, clock.now())
  await maintenance.close()
  await opens('mail')
  await round()
  await store.close()
  // The disk is lost, and of the store only its journal is left.
  await rm(address.file)
  await restoreStore(address, { from: backup, force: true, now: clock.now() })
  const restored = await open()
  await opens('store', restored.store)
  await restored.round()
  expect(arrived.map(({ says }) => says)).toEqual(['opened mail-1', 'opened store-2'])
  expect(new Set(arrived.map(({ key }) => key)).size).toBe(2)
})

test('a store copied into PostgreSQL and back keeps its subscribers to incidents, and repeats no notice', async () => {
  const { address, store, open, subscribe, opens, round, says } = await world('sqlite')
  const database = await addressOf('postgres')
  const file = { kind: 'sqlite', file: path.join(await emptyFolder(), 'back.sqlite') } as const
  if (address === undefined || database === undefined) throw new Error('these stores have addresses')
  await subscribe('ada@example.com')
  await opens('mail')
  await round()
  await store.close()
  for (const [from, to, cause] of [
    [address, database, 'store'],
    [database, file, 'payments'],
  ] as const) {
    await copyStore(from, to)
    const moved = await open(to)
    await moved.round()
    await opens(cause, moved.store)
    await moved.round()
    await moved.store.close()
  }
  expect(says()).toEqual(
    ['opened mail-1', 'opened store-2', 'opened payments-3'].map((one) => `ada@example.com ${one}`),
  )
})
