import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AuditEntry } from '../../../src/core/audit.ts'
import type { Claim, Settlement } from '../../../src/core/course/subscription.ts'
import type { QueuedMessage } from '../../../src/core/delivery/messages.ts'
import { DAY_MS, HOUR_MS } from '../../../src/core/durations.ts'
import type { AlertClaim, Changes } from '../../../src/core/incidents/incident.ts'
import { releaseChange, suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { besides } from '../../support/beside.ts'
import { incidentWith } from '../../support/incidents.ts'
import { counted, failingAt, interleaved } from '../../support/interleaving.ts'
import { begin, nextAfter } from '../../support/learning.ts'
import { addressOf, openTestStore } from '../../support/stores.ts'
import { erasureOf, outcomeOf } from '../../support/subscribers.ts'

const ada = {
  course: 'quantum',
  identity: 'ada@example.com',
  mailboxKey: 'ada@example.com',
  address: 'ada@example.com',
}
const NOW = 2 * HOUR_MS
const change = { id: 'ada', now: NOW }
const suppression = { cause: 'complaint', at: NOW, source: 'ses', reason: 'spam' } as const

/** What was in hand before. */
interface Held {
  readonly claim?: Claim | undefined
  readonly message?: QueuedMessage | undefined
  readonly alert?: AlertClaim | undefined
}

interface Scene extends Held {
  readonly store: Store
  /** Makes what one of the two brings its own: a token, a call, an id. */
  readonly by: string
}
const settled = ({ store, claim }: Scene, more: Partial<Settlement>) =>
  store.course.settle(claim ? [outcomeOf(claim, NOW, { nextAttemptAt: DAY_MS, ...more })] : [])
const arrival = {
  ...ada,
  consent: { at: 1, how: 'a list' },
  start: { dueAt: NOW, lessons: 7 },
  confirmedAt: 1,
  sent: 2,
  progress: undefined,
  lastSentAt: undefined,
}

const turns = (text: string) => [...text].map((turn) => turn === '1')

type Acts = Readonly<Record<string, (scene: Scene) => Promise<unknown>>>
type Scenes = Readonly<Record<string, (store: Store) => Promise<Held>>>

const FOUND: [string, string, string, string][] = [
  ['nothing', 'erase its reader', 'ask for another under its key', '111111101100'],
  ['somebody unknown', 'enrol under a key', 'complain', '1110101001'],
  ['somebody unknown', 'ask again', 'complain', '11111111'],
  ['somebody who was asked to confirm', 'ask again', 'erase', '01000101'],
  ['an announcement and its subscriber', 'say how the work goes on', 'erase its reader', '11011000010111'],
  ['an incident whose alert is out', 'record an alert as sent', 'open an incident', '00000000000011111'],
  ['a mail that waits, and a pause', 'resume', 'resume', '0011111111'],
]

/** What two actors may do to one person at the same moment. */
const TO_A_PERSON: Acts = {
  confirm: ({ store }) => store.course.confirm({ begin, tokenHash: 'token', now: NOW }),
  'ask again': ({ store, by }) =>
    store.course
      .requestConfirmation({ ...ada, id: `asked ${by}`, tokenHash: `token ${by}`, now: NOW })
      .then(({ mail }) => mail),
  enrol: ({ store, by }) => store.course.enrol({ ...ada, id: `enrolled ${by}`, begin, now: NOW }),
  'enrol under a key': ({ store, by }) =>
    store.course.enrol({ ...ada, id: `by key ${by}`, begin, now: NOW, key: 'order-1' }),
  import: ({ store, by }) =>
    store.course.admit({ arrivals: [{ ...arrival, id: `arrived ${by}` }], now: NOW, dryRun: false }),
  claim: ({ store, by }) =>
    store.course
      .claimDue({ now: NOW, limit: 5, retries: 5, leaseMs: 90_000, call: by })
      .then((claims) => claims.length),
  'record as sent': (scene) => settled(scene, {}),
  'record as failed': (scene) =>
    settled(scene, {
      sent: false,
      failures: 1,
      problem: { kind: 'failed', reason: 'later', since: NOW },
    }),
  'record a hard bounce': (scene) =>
    settled(scene, {
      sent: false,
      end: true,
      nextAttemptAt: undefined,
      problem: { kind: 'bounced', reason: 'gone', since: NOW },
    }),
  unsubscribe: ({ store }) => store.course.unsubscribe(change),
  'undo the unsubscribe': ({ store }) => store.course.undoUnsubscribe(change),
  'mark as sent': ({ store }) => store.course.resolve({ ...change, as: 'sent', next: nextAfter }),
  'set the language': ({ store }) => store.course.set({ ...change, language: 'de', moved: () => undefined }),
  complain: ({ store }) =>
    store.feedback.apply([suppressionChange(ada.identity, suppression, () => ['hash'])], NOW),
  release: ({ store }) =>
    store.feedback.apply([releaseChange(ada.identity, { at: NOW, source: 'cli', reason: 'asked' })], NOW),
  erase: ({ store }) => store.course.erase(erasureOf('ada', 'hash', NOW)).then(({ existed }) => existed),
}

/** How the person stands when both begin. */
const PEOPLE: Scenes = {
  'somebody unknown': async () => ({}),
  'somebody who was asked to confirm': async ({ course }) => {
    await course.requestConfirmation({ ...ada, id: 'ada', tokenHash: 'token', now: 0 })
    return {}
  },
  'somebody whose lesson is due': async ({ course }) => {
    await course.enrol({ ...ada, id: 'ada', begin, now: 0 })
    return {}
  },
  'somebody whose lesson is out': async ({ course }) => {
    await course.enrol({ ...ada, id: 'ada', begin, now: 0 })
    const [claim] = await course.claimDue({ now: 1, limit: 1, retries: 1, leaseMs: 90_000, call: 'before' })
    return { claim }
  },
  'somebody who left': async ({ course }) => {
    await course.enrol({ ...ada, id: 'ada', begin, now: 0 })
    await course.unsubscribe({ id: 'ada', now: 1 })
    return {}
  },
}

const OPEN = { ...incidentWith({ id: 'incident', openedAt: 1 }), cause: 'mail' }
const follow = ({ incidents }: Pick<Store, 'incidents'>, changes: Changes) =>
  incidents.follow({
    now: NOW,
    channels: [{ name: 'chat' }],
    visitorsHear: () => true,
    decide: () => changes,
  })
const announcement = { id: 'announced', text: 'Slow', from: 1, until: undefined, by: 'me' }
const mail = {
  ...{ key: 'mail', now: NOW, recipient: 'hash', content: 'content', caps: [{ most: 1, windowMs: DAY_MS }] },
  mail: { stream: 'mail', address: ada.address, payload: '{}' },
} as const
const claimMessages = (store: Store) =>
  store.course.claimMessages({ stream: 'mail', now: NOW, limit: 5, leaseMs: 90_000 })
const claimAlerts = ({ incidents }: Store) =>
  incidents.claimAlerts({ channel: 'chat', quiet: false, now: NOW, limit: 5, leaseMs: 90_000 })
const sent = {
  record: { result: 'sent', nextAttemptAt: 0, failures: 0, problem: undefined, untried: false },
  ...{ now: NOW, outcome: 'sent', reason: undefined, providerId: 'provided' },
} as const
const waits = {
  ...sent,
  record: { ...sent.record, result: 'waits' as const, nextAttemptAt: NOW + 1, failures: 1 },
  outcome: 'transient',
}
const audit = (): AuditEntry => ({
  ...{ id: randomUUID(), at: NOW, action: 'pause', who: 'me', place: 'here' },
  ...{ subject: undefined, details: undefined },
})
const streams = ['course', 'mail'] as const

/** What two actors may do to the platform at the same moment. */
const TO_THE_PLATFORM: Acts = {
  'open an incident': ({ store, by }) => follow(store, { opens: [{ ...OPEN, id: `incident ${by}` }] }),
  'see it': ({ store }) =>
    follow(store, { seen: [{ cause: 'mail', reason: 'refused', affected: ['web'], at: NOW }] }),
  'close it': ({ store }) => follow(store, { closes: [{ cause: 'mail', at: NOW, unseenSince: 2 }] }),
  'acknowledge it': ({ store, by }) => store.incidents.acknowledge({ id: 'incident', now: NOW, by }),
  'resolve it': ({ store, by }) =>
    store.incidents.resolve({ id: 'incident', now: NOW, by, reason: 'mended', audit: audit() }),
  'say how it goes on': ({ store, by }) =>
    store.incidents.update({
      ...{ id: `update ${by}`, subject: 'incident', at: NOW, text: 'Found', state: 'identified', by },
    }),
  announce: ({ store, by }) => store.incidents.announce({ ...announcement, id: by }, NOW),
  'say how the work goes on': ({ store, by }) =>
    store.incidents.update({
      ...{ id: `note ${by}`, subject: 'announced', at: NOW, text: 'Half done', state: undefined, by },
    }),
  withdraw: ({ store }) => store.incidents.withdraw({ id: 'announced', now: NOW }),
  'claim alerts': async ({ store }) => (await claimAlerts(store)).length,
  'record an alert as sent': async ({ store, alert }) =>
    alert && store.incidents.settleAlerts([{ ...sent, claim: alert, isTried: true }]),
  'record an alert as failed': async ({ store, alert }) =>
    alert && store.incidents.settleAlerts([{ ...waits, claim: alert, isTried: true }]),
  'ask for a mail': ({ store }) => store.sentMail.begin(mail),
  'ask for another under its key': ({ store }) => store.sentMail.begin({ ...mail, content: 'other' }),
  'ask for one more': ({ store, by }) => store.sentMail.begin({ ...mail, key: by }),
  'claim mails': async ({ store }) => (await claimMessages(store)).length,
  'record a mail as sent': async ({ store, message }) =>
    message && store.course.settleMessages([{ ...sent, claim: message }]),
  'record a mail as failed': async ({ store, message }) =>
    message && store.course.settleMessages([{ ...waits, claim: message }]),
  'erase its reader': ({ store }) =>
    store.course
      .erase({ ...erasureOf('ada', 'hash', NOW), recipients: ['hash'] })
      .then(({ existed }) => existed),
  pause: ({ store, by }) => store.sending.pause({ streams, now: NOW, reason: by, audit: audit() }),
  resume: ({ store }) => store.sending.resume({ streams, now: NOW, audit: audit() }),
  'take the hour': ({ store }) => store.claimHour({ hour: '2026-11-21T04', leaseMs: 90_000 }),
  'end the hour': ({ store }) => store.endHour('2026-11-21T04', true),
  beat: ({ store }) => store.heartbeats.beat({ name: 'backup', now: NOW, failed: undefined }),
  'report a failure': ({ store }) =>
    store.heartbeats.beat({ name: 'backup', now: NOW, failed: { exitCode: 1 } }),
  'expect a heartbeat': ({ store }) => store.heartbeats.expect({ name: 'backup', now: NOW }),
}

/** What is on its way when both begin. */
const PLATFORMS: Scenes = {
  nothing: async () => ({}),
  'an incident whose alert waits': async (store) => {
    await follow(store, { opens: [OPEN] })
    return {}
  },
  'an incident whose alert is out': async (store) => {
    await follow(store, { opens: [OPEN] })
    return { alert: (await claimAlerts(store))[0] }
  },
  'an announcement and its subscriber': async (store) => {
    await store.course.enrol({
      ...ada,
      course: 'status',
      id: 'ada',
      begin: () => ({ dueAt: undefined, lessons: 0 }),
      now: 0,
    })
    await store.incidents.announce(announcement, 1)
    return {}
  },
  'a mail that waits, and a pause': async (store) => {
    await store.sentMail.begin(mail)
    await store.sending.pause({ streams, now: 1, reason: 'before', audit: audit() })
    return {}
  },
  'a mail that is out': async (store) => {
    await store.sentMail.begin(mail)
    return { message: (await claimMessages(store))[0] }
  },
}

/** A database to act on, and what is left in it. */
async function openStage() {
  const address = await addressOf('postgres')
  const store = await openTestStore(address, () => 1_000_000)
  const beside = await besides(address.url.reveal())
  const isBlocked = async () => {
    const { rows } = await beside.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    )
    return rows.length > 0
  }
  const tables = (
    await beside.query<{ tablename: string }>(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'platformctl'
      AND tablename NOT IN ('schema_version', 'meta', 'audit', 'plan', 'lesson_text')`,
    )
  ).rows.map(({ tablename }) => tablename)
  const dump = tables.map(
    (table) => `'${table}', (SELECT jsonb_agg(t ORDER BY t::text) FROM platformctl.${table} t)`,
  )
  // Named, so that PostgreSQL plans each once: both name every table, and run hundreds of times.
  const left = async () => {
    const text = `SELECT jsonb_strip_nulls(jsonb_build_object(${dump.join(', ')})) AS rows`
    return (await beside.query({ name: 'left', text })).rows[0]?.rows
  }
  /** A statement that failed can leave its locks to a connection that is only just ending, and claims skip what is locked. */
  const quiet = () =>
    expect
      .poll(async () => (await beside.query({ name: 'quiet', text: TRANSACTIONS })).rows[0]?.open, {
        interval: 1,
      })
      .toBe(0)
  const deletes = tables.map((table) => `${table}_rows AS (DELETE FROM platformctl.${table})`)
  const clear = { name: 'clear', text: `WITH ${deletes.join(', ')} SELECT 1` }
  return { store, isBlocked, left, quiet, clear: () => beside.query(clear) }
}

const SUBJECTS: [string, Scenes, Acts][] = [
  ['a person', PEOPLE, TO_A_PERSON],
  ['the platform', PLATFORMS, TO_THE_PLATFORM],
]

const TRANSACTIONS = `SELECT count(*)::int AS open FROM pg_stat_activity
  WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`

/** Orders in which the first actor runs several statements in a row between two of the second. Chance alone hardly draws one. */
const IN_BETWEEN = fc
  .tuple(fc.nat(16), fc.integer({ min: 1, max: 12 }))
  .map(([waits, goes]) => [...Array<boolean>(waits).fill(false), ...Array<boolean>(goes).fill(true)])
const ORDER = fc.oneof(fc.array(fc.boolean(), { minLength: 8, maxLength: 24 }), IN_BETWEEN)

test.each(SUBJECTS)(
  'two who act on %s at once leave what one after the other would leave, in whatever order their statements come',
  { timeout: 240_000 },
  async (_, scenes, acts) => {
    const { store, isBlocked, left, clear } = await openStage()
    /** What both answer, and what is left, under an order. */
    const outcome = async (
      scene: string,
      [first, second]: readonly [string, string],
      run: (one: () => Promise<unknown>, other: () => Promise<unknown>) => Promise<readonly unknown[]>,
    ) => {
      await clear()
      const held = await scenes[scene]?.(store)
      const act = (name: string, by: string) => () =>
        acts[name]?.({ store, by, ...held }) ?? Promise.resolve()
      return JSON.stringify({
        answers: await run(act(first, 'first'), act(second, 'second')),
        left: await left(),
      })
    }
    const none = async () => 0
    /** A claim passes over a row that another has locked, and finds it a moment later. */
    const passesOver = (name: string) => name.startsWith('claim')
    const orders = async (scene: string, pair: readonly [string, string]) => {
      const forwards = async (one: () => Promise<unknown>, other: () => Promise<unknown>) => [
        await one(),
        await other(),
      ]
      const backwards = async (one: () => Promise<unknown>, other: () => Promise<unknown>) => {
        const last = await other()
        return [await one(), last]
      }
      const found = [await outcome(scene, pair, forwards), await outcome(scene, pair, backwards)]
      if (passesOver(pair[0])) found.push(await outcome(scene, pair, (_, other) => forwards(none, other)))
      if (passesOver(pair[1])) found.push(await outcome(scene, pair, (one) => forwards(one, none)))
      return found
    }
    const serial = new Map<string, readonly string[]>()
    const serialOutcomes = async (scene: string, pair: readonly [string, string]) => {
      const key = `${scene}: ${pair}`
      const known = serial.get(key) ?? (await orders(scene, pair))
      serial.set(key, known)
      return known
    }

    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(scenes)),
        fc.constantFrom(...Object.keys(acts)),
        fc.constantFrom(...Object.keys(acts)),
        // To know what one after the other would leave costs as much as three orders.
        fc.array(ORDER, { minLength: 3, maxLength: 3 }),
        async (scene, first, second, orders) => {
          const pair = [first, second] as const
          const allowed = await serialOutcomes(scene, pair)
          for (const order of orders) {
            const found = await outcome(scene, pair, (one, other) =>
              interleaved([one, other], order, isBlocked),
            )
            expect(allowed).toContain(found)
          }
        },
      ),
      {
        // Found by chance: a suppressed address that stayed enrolled, or was asked to confirm, a mail without its record,
        // two answers that were a fault of the store,
        // an alert that was queued again while it was recorded as sent, and a pause that two operators ended.
        examples: FOUND.filter(([scene]) => Object.hasOwn(scenes, scene)).map(
          ([scene, first, second, order]) => [scene, first, second, [turns(order)]],
        ),
        numRuns: Number(process.env.INTERLEAVINGS ?? 26),
      },
    )
  },
)

test.each(SUBJECTS)(
  'what is done to %s is done whole or not at all, whichever of its statements fails, and can be done again',
  { timeout: 240_000 },
  async (_, scenes, acts) => {
    const { store, left, quiet, clear } = await openStage()
    const begin = async (scene: string) => {
      await clear()
      return (await scenes[scene]?.(store)) ?? {}
    }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(scenes)),
        fc.constantFrom(...Object.keys(acts)),
        fc.nat(59),
        async (scene, name, at) => {
          const act = acts[name]
          if (act === undefined) return
          const whole = { store, by: 'first', ...(await begin(scene)) }
          const { answer, statements } = await counted(() => act(whole))
          if (statements === 0) return
          const done = JSON.stringify([answer, await left()])
          const held = { store, by: 'first', ...(await begin(scene)) }
          const before = JSON.stringify(await left())
          await failingAt(1 + (at % statements), () => act(held))
          await quiet()
          expect(JSON.stringify(await left())).toBe(before)
          expect(JSON.stringify([await act(held), await left()])).toBe(done)
        },
      ),
      { numRuns: Number(process.env.INTERLEAVINGS ?? 40) },
    )
  },
)
