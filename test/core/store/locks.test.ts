import { expect, test } from 'vitest'
import type { LessonText } from '../../../src/core/mail/definition.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { RECIPIENT_CAPS } from '../../../src/core/mail/send-once.ts'
import { POSTGRES_STEPS } from '../../../src/core/store/migrations.ts'
import { keepPlan, plans } from '../../../src/core/store/plans.ts'
import { createPool } from '../../../src/core/store/postgres/connection.ts'
import { migrate, postgresSql } from '../../../src/core/store/postgres/sql.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { besides, waiting } from '../../support/beside.ts'
import { courseWith } from '../../support/course.ts'
import { begin } from '../../support/learning.ts'
import { addressOf, openTestStore } from '../../support/stores.ts'
import { asked, erasureOf } from '../../support/subscribers.ts'

async function postgres() {
  const address = await addressOf('postgres')
  const url = address.url.reveal()
  return {
    store: await openTestStore(address),
    address,
    holder: await besides(url),
    tester: await besides(url),
  }
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
  [
    'a notice',
    `hashtextextended('notice', 3)`,
    ({ incidents }) => incidents.announce({ id: 'a', text: 'Slow', from: 1, until: undefined, by: 'me' }, 1),
  ],
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
  const { address, holder, tester } = await postgres()
  const pool = createPool({ url: address.url, size: 1 })
  const sql = postgresSql(pool)
  const text: LessonText = { hash: 'h', format: 'mjml', language: '', source: 's' }
  const plan = { version: 'v', plan: '{}', texts: [text] }
  try {
    for (const [lock, work] of [
      ['7305823190017', () => migrate(pool, [...POSTGRES_STEPS, 'SELECT 1'])],
      ['7305823190018', () => sql.write(() => keepPlan('pots', plan))],
      ['7305823190018', () => plans(sql).prunePlans({ keep: [], now: 1 })],
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

test('deleting old rows skips rows that others have locked', async () => {
  const { store, holder } = await postgres()
  const { course } = store
  for (const id of ['one', 'two']) await course.requestConfirmation(asked(id, 0))
  await holder.query(`BEGIN; SELECT 1 FROM subscription WHERE id = 'one' FOR UPDATE`)
  await course.pruneUnconfirmed(1)
  await holder.query('ROLLBACK')
  expect([(await course.findById('one'))?.id, await course.findById('two')]).toEqual(['one', undefined])
}, 10_000)

test('keeps nothing of an address about which feedback comes while it is erased', async () => {
  const { store } = await postgres()
  const suppression = { cause: 'complaint', at: 1, source: 'ses', reason: 'reported as spam' } as const
  for (let turn = 0; turn < 10; turn += 1) {
    const [identity, hash] = [`${turn}@example.com`, `hash of ${turn}`]
    const who = { identity, mailboxKey: identity, address: identity, id: identity }
    await store.course.enrol({ ...enrolment, ...who })
    const person = erasureOf(String(turn), hash, 6)
    const change = suppressionChange(identity, suppression, () => [hash])
    await Promise.all([store.course.erase(person), store.feedback.apply([change], 6)])
    expect(await store.feedback.find(identity)).toBeUndefined()
  }
})

test('nobody is asked to confirm who subscribes while their address is erased', async () => {
  const { course, store, messages, address } = await courseWith(0, { kind: 'postgres' })
  if (address?.kind !== 'postgres') throw new TypeError('this is its address')
  const [holder, tester] = [await besides(address.url.reveal()), await besides(address.url.reveal())]
  await holder.query('BEGIN; LOCK TABLE suppression IN SHARE MODE')
  const erasing = course.erase('ada@example.com')
  await waiting(tester)
  const subscribing = course.subscribe({ spelling: 'Ada@example.com', identity: 'ada@example.com' })
  const BLOCKED = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  await expect.poll(async () => (await tester.query(BLOCKED)).rows.length).toBe(2)
  await holder.query('ROLLBACK')
  await erasing
  expect(await subscribing).toEqual({ status: 'pending', sent: true })
  await course.close()
  expect([messages, await store.course.findPerson('ada@example.com')]).toEqual([[], []])
})
