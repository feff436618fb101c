import { describe, expect, test } from 'vitest'
import { suppressionChange } from '../../../src/core/mail/feedback/changes.ts'
import type { LessonText } from '../../../src/core/mail/lesson-text.ts'
import { RECIPIENT_CAPS } from '../../../src/core/mail/sent-mail.ts'
import { secret } from '../../../src/core/secret.ts'
import { POSTGRES_STEPS } from '../../../src/core/store/migrations.ts'
import { plans } from '../../../src/core/store/plans.ts'
import { createPool } from '../../../src/core/store/postgres/connection.ts'
import { migrate, postgresSql } from '../../../src/core/store/postgres/sql.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { besides, waiting } from '../../support/beside.ts'
import { begin } from '../../support/learning.ts'
import { addressOf, openTestStore } from '../../support/stores.ts'

const asked = (id: string, now: number) => ({
  course: 'quantum',
  identity: `${id}@example.com`,
  address: `${id}@example.com`,
  id,
  tokenHash: `${id}.${now}`,
  now,
})

async function postgres() {
  const address = await addressOf('postgres')
  if (address?.kind !== 'postgres') throw new TypeError('this is its address')
  const url = address.url.reveal()
  const store = await openTestStore(address)
  return { store, url, holder: await besides(url), tester: await besides(url) }
}

const to = { enrolment: 1, now: 5, id: 'ada' }
const enrolment = {
  begin,
  identity: 'ada@example.com',
  mailboxKey: 'ada@example.com',
  address: 'ada@example.com',
  course: 'quantum',
  id: 'unused',
  now: 5,
}
const notice = { subject: 'kiln', kind: 'opened', at: 1, facts: { from: 1 } } as const

test('reads a subscription under its lock before changing it, so that no other change is lost', async () => {
  const { store, holder, tester } = await postgres()
  const { course } = store
  await course.requestConfirmation(asked('ada', 0))
  const row = `SELECT 1 FROM subscription WHERE id = 'ada' FOR UPDATE`
  const token = `SELECT 1 FROM confirmation WHERE token_hash = 'ada.0' FOR UPDATE`
  for (const [held, work] of [
    [token, () => course.confirm({ begin, tokenHash: 'ada.0', now: 1 })],
    [row, () => course.confirm({ begin, tokenHash: 'ada.0', now: 1 })],
    [row, () => course.requestConfirmation(asked('ada', 2))],
    [row, () => course.enrol(enrolment)],
    [row, () => course.resolve({ id: 'ada', as: 'retry', now: 5, next: () => undefined })],
    [row, () => course.unsubscribe(to)],
    [row, () => course.undoUnsubscribe(to)],
  ] as const) {
    await holder.query(`BEGIN; ${held}`)
    const working = work()
    expect((await waiting(tester)).query).toMatch(/^SELECT .* FOR UPDATE$/s)
    await holder.query('ROLLBACK')
    await working
    // Each finds the row as it needs it.
    if (held === token) await holder.query('UPDATE confirmation SET used_at = NULL')
  }
  expect(await course.findById('ada')).toMatchObject({ state: 'confirmed' })
})

const beginMail = (store: Store) =>
  store.sentMail.begin({ key: 'k', now: 1, recipient: 'somebody', caps: RECIPIENT_CAPS, content: 'c' })

test.each<[string, string, (store: Store) => Promise<unknown>]>([
  [
    'a confirmation that is asked for',
    `hashtextextended('ada@example.com', 1)`,
    (store) => store.course.requestConfirmation(asked('ada', 0)),
  ],
  ['an enrolment', `hashtextextended('ada@example.com', 1)`, (store) => store.course.enrol(enrolment)],
  [
    'an enrolment under a key',
    `hashtextextended('order-1', 2)`,
    (store) => store.course.enrol({ ...enrolment, key: 'order-1' }),
  ],
  ['a mail to one recipient', `hashtextextended('somebody', 0)`, beginMail],
  ['a notice', `hashtextextended('notice', 3)`, (store) => store.notices.publish(notice)],
])(
  '%s waits for another of its kind: it is counted, numbered or looked up after that',
  async (_, lock, work) => {
    const { store, holder, tester } = await postgres()
    await holder.query(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`)
    const working = work(store)
    expect(await waiting(tester)).toMatchObject({ lock: 'advisory' })
    await holder.query('ROLLBACK')
    await working
  },
)

test('schema steps wait for each other, and so do texts that are kept and deleted', async () => {
  const { url, holder, tester } = await postgres()
  const pool = createPool({ url: secret(url), size: 1 })
  const sql = postgresSql(pool)
  const kept = plans(sql)
  const text: LessonText = { hash: 'h', format: 'mjml', language: '', source: 's' }
  const plan = { version: 'v', plan: '{}', texts: [text] }
  try {
    for (const [lock, work] of [
      ['7305823190017', () => migrate(pool, [...POSTGRES_STEPS, 'SELECT 1'])],
      ['7305823190018', () => sql.write(() => kept.keep('pots', plan))],
      ['7305823190018', () => kept.store.prunePlans({ keep: [], now: 1 })],
    ] as const) {
      await holder.query(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`)
      const working = work().catch((error: Error) => error.message)
      expect(await waiting(tester)).toMatchObject({ lock: 'advisory' })
      await holder.query('ROLLBACK')
      await working
    }
  } finally {
    await pool.end()
  }
})

test('deleting old rows and waking readers skip rows that others have locked', async () => {
  const { store, holder } = await postgres()
  const { course, notices } = store
  for (const id of ['one', 'two']) await course.requestConfirmation(asked(id, 0))
  await holder.query(`BEGIN; SELECT 1 FROM subscription WHERE id = 'one' FOR UPDATE`)
  await course.pruneUnconfirmed(1)
  await holder.query('ROLLBACK')
  expect([(await course.findById('one'))?.id, await course.findById('two')]).toEqual(['one', undefined])
  for (const id of ['cy', 'di'])
    await course.enrol({
      ...enrolment,
      begin: () => ({ lessons: 0, dueAt: undefined, pinned: { version: '0', plan: '{}', texts: [] } }),
      identity: `${id}@example.com`,
      mailboxKey: id,
      course: 'status',
      id,
    })
  await notices.publish(notice)
  await holder.query(`BEGIN; SELECT 1 FROM subscription WHERE id = 'cy' FOR UPDATE`)
  expect(await notices.wake({ now: 9, limit: 10 })).toBe(1)
  await holder.query('ROLLBACK')
  expect(await notices.wake({ now: 9, limit: 10 })).toBe(1)
}, 10_000)

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test('a notice is published once for its subject and kind, numbered, and read oldest first', async () => {
    const { notices } = await openTestStore(await addressOf(kind))
    expect([await notices.head(), await notices.after(0)]).toEqual([0, []])
    expect(await notices.publish(notice)).toBe(true)
    expect(await notices.publish({ ...notice, at: 2 })).toBe(false)
    const facts = { from: 3, until: 4, text: 'closed on <Monday>', affected: ['web'] }
    expect(await notices.publish({ subject: 'kiln', kind: 'closed', at: 3, facts })).toBe(true)
    expect(await notices.publish({ ...notice, subject: 'wheel', at: 5 })).toBe(true)
    expect(await notices.head()).toBe(3)
    expect(await notices.after(1)).toEqual([
      { seq: 2, subject: 'kiln', kind: 'closed', at: 3, facts },
      { seq: 3, subject: 'wheel', kind: 'opened', at: 5, facts: { from: 1 } },
    ])
    await notices.prune(3)
    expect((await notices.after(0)).map(({ seq }) => seq)).toEqual([2, 3])
    // The newest stays, however old: the next has the number after it.
    await notices.prune(100)
    expect((await notices.after(0)).map(({ seq }) => seq)).toEqual([3])
    expect(await notices.publish({ ...notice, at: 9 })).toBe(true)
    expect(await notices.head()).toBe(4)
  })

  test('readers of notices are woken once, up to a limit, and only those that wait for nothing and lack the newest notice', async () => {
    const { course, notices } = await openTestStore(await addressOf(kind))
    const enrol = (id: string, course_: string, version: string) =>
      course.enrol({
        ...enrolment,
        begin: () => ({ lessons: 0, dueAt: undefined, pinned: { version, plan: '{}', texts: [] } }),
        identity: `${id}@example.com`,
        mailboxKey: id,
        course: course_,
        id,
        now: 1,
      })
    for (const id of ['a', 'b', 'c']) await enrol(id, 'status', '0')
    await enrol('later', 'status', '1')
    await enrol('left', 'status', '0')
    await enrol('pupil', 'quantum', '0')
    await course.unsubscribe({ id: 'left', enrolment: 1, now: 2 })
    const wake = (limit: number, now = 50) => notices.wake({ now, limit })
    expect(await wake(10)).toBe(0)
    await notices.publish(notice)
    expect([await wake(2), await wake(2), await wake(2)]).toEqual([2, 1, 0])
    expect([await notices.isDue(49), await notices.isDue(50)]).toEqual([false, true])
    const states = await Promise.all(
      ['a', 'b', 'c', 'later', 'left', 'pupil'].map(async (id) => {
        const { lessons, dueAt, nextAttemptAt } = (await course.findById(id)) ?? {}
        return { lessons, dueAt, nextAttemptAt }
      }),
    )
    const woken = { lessons: 1, dueAt: 50, nextAttemptAt: 50 }
    const asleep = { lessons: 0, dueAt: undefined, nextAttemptAt: undefined }
    expect(states).toEqual([woken, woken, woken, asleep, { ...asleep, lessons: 0 }, asleep])
    await notices.publish({ ...notice, subject: 'wheel' })
    // The subscriptions woken before have not sent that notice yet, so only one is left to wake.
    expect(await wake(10)).toBe(1)
    expect(await course.findById('later')).toMatchObject({ lessons: 1, nextAttemptAt: 50 })
    const claims = await course.claimDue({
      now: 50,
      limit: 10,
      retries: 0,
      leaseMs: 1000,
      call: 'a',
      notices: true,
    })
    expect(claims.map(({ subscription, day }) => [subscription, day]).sort()).toEqual(
      ['a', 'b', 'c', 'later'].map((id) => [id, 1]),
    )
  })
})

test('keeps nothing of an address about which feedback comes while it is erased', async () => {
  const { store } = await postgres()
  const suppression = { cause: 'complaint', at: 1, source: 'ses', reason: 'reported as spam' } as const
  for (let turn = 0; turn < 20; turn += 1) {
    const [identity, hash] = [`${turn}@example.com`, `hash of ${turn}`]
    await store.course.enrol({
      ...enrolment,
      identity,
      mailboxKey: identity,
      address: identity,
      id: identity,
    })
    const person = { identity, spellings: [identity], recipients: [], suppressionHash: hash, now: 6 }
    const change = suppressionChange(identity, suppression, () => [hash])
    await Promise.all([store.course.erase(person), store.feedback.apply([change], 6)])
    expect(await store.feedback.find(identity)).toBeUndefined()
  }
})
