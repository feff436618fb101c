import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CourseStore } from '../../../src/core/course/store.ts'
import type { Claim, Settlement } from '../../../src/core/course/subscription.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { releaseChange, suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { createPool, transaction, UNLIMITED } from '../../../src/core/store/postgres/connection.ts'
import { besides, waiting } from '../../support/beside.ts'
import { emptyFolder } from '../../support/folder.ts'
import { addressOf, newDatabase, openTestStore } from '../../support/stores.ts'
import { asked, outcomeOf, subscribe } from '../../support/subscribers.ts'

const LEASE_MS = 90_000

/** A store with people who confirmed at time 0, and a clock of leases that the test moves. */
async function storeWith(kind: 'sqlite' | 'postgres', ids: readonly string[]) {
  const address = await addressOf(kind)
  const lease = { now: 1_000_000 }
  const store = await openTestStore(address, () => lease.now)
  for (const id of ids) await subscribe(store, id)
  return { store, course: store.course, lease, url: address.kind === 'postgres' ? address.url.reveal() : '' }
}

const claim = (course: CourseStore, call: string, { now = 1, limit = 10, retries = 0 } = {}) =>
  course.claimDue({ now, limit, retries, leaseMs: LEASE_MS, call })

async function only(claims: Promise<readonly Claim[]>): Promise<Claim> {
  const [one, ...others] = await claims
  expect(others).toEqual([])
  if (one === undefined) throw new Error('nothing was claimed')
  return one
}

const done = (taken: Claim) => outcomeOf(taken, 2, { nextAttemptAt: taken.day * DAY_MS })
const failed = (taken: Claim, nextAttemptAt: number): Settlement => ({
  ...done(taken),
  sent: false,
  nextAttemptAt,
  failures: 1,
  problem: { kind: 'failed', reason: 'try later', since: 2 },
})

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test('a late outcome neither reverts later lessons nor counts for a restarted course', async () => {
    const { course, store, lease } = await storeWith(kind, ['ada'])
    const first = await only(claim(course, 'first'))
    lease.now += LEASE_MS
    const second = await only(claim(course, 'second'))
    await course.settle([failed(first, 5)])
    expect(await course.findById('ada')).toMatchObject({ failures: 0, problem: { kind: 'unknown' } })
    await course.settle([done(second)])
    await course.settle([done(await only(claim(course, 'third', { now: DAY_MS })))])
    const before = await course.findById('ada')
    expect(before).toMatchObject({ sentDays: [1, 2], nextAttemptAt: 2 * DAY_MS })
    const attempt = { outcome: 'sent', messageId: 'late@example.com' } as const
    await course.settle([{ ...done(first), attempt }, failed(first, 5), { ...failed(second, 5), end: true }])
    expect(await course.findById('ada')).toEqual(before)
    // It was sent all the same.
    expect(await course.history('ada')).toContainEqual(expect.objectContaining(attempt))
    await course.unsubscribe({ id: 'ada', now: 3 * DAY_MS })
    await subscribe(store, 'ada', 4 * DAY_MS)
    const again = await course.findById('ada')
    await course.settle([done(first), done({ ...first, day: 3 })])
    expect(await course.findById('ada')).toEqual(again)
  })

  test('a lesson is claimed from the millisecond on at which it is due, and no more than the limit', async () => {
    const { course } = await storeWith(kind, ['ada', 'bob', 'cy'])
    expect(await claim(course, 'early', { now: -1 })).toEqual([])
    const [one, two] = [await claim(course, 'a', { now: 0, limit: 2 }), await claim(course, 'a', { now: 0 })]
    expect([one.length, two.length]).toEqual([2, 1])
    await course.settle([...one, ...two].map(done))
    expect(await claim(course, 'b', { now: DAY_MS - 1 })).toEqual([])
    expect(await course.backlog(DAY_MS - 1)).toMatchObject({ due: 0 })
    expect(await course.backlog(DAY_MS)).toMatchObject({ due: 3 })
    expect(await claim(course, 'b', { now: DAY_MS })).toHaveLength(3)
  })

  test('an attempt whose sender died is unknown, also after one that failed', async () => {
    const { course, lease } = await storeWith(kind, ['ada'])
    await course.settle([failed(await only(claim(course, 'first')), 5)])
    await only(claim(course, 'died', { now: 5 }))
    lease.now += LEASE_MS
    const problem = { kind: 'unknown', reason: expect.stringContaining('ended before'), since: 5 }
    expect(await only(claim(course, 'next', { now: 6 }))).toMatchObject({ problem })
    expect(await course.findById('ada')).toMatchObject({ problem })
  })

  test('of lessons that failed, too, the one whose next attempt is earliest goes first, whatever was tried before it', async () => {
    const { course } = await storeWith(kind, ['a', 'b', 'c'])
    const [first, second, third] = [
      await only(claim(course, 'before', { now: 1, limit: 1 })),
      await only(claim(course, 'before', { now: 2, limit: 1 })),
      await only(claim(course, 'before', { now: 3, limit: 1 })),
    ]
    await course.settle([failed(first, 30), failed(second, 20), failed(third, 10)])
    for (const wanted of [third, second, first])
      expect((await only(claim(course, 'after', { now: 40, limit: 1 }))).id).toBe(wanted.id)
  })

  test('a claim gives failed lessons their share and any room left, and no subscriber twice', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    const { course } = await storeWith(kind, ids)
    const tried = await claim(course, 'before', { limit: 3 })
    await course.settle(tried.map((one) => failed(one, 1)))
    const before = new Set(tried.map(({ id }) => id))
    const claims = await claim(course, 'a', { now: 5, limit: 3, retries: 1 })
    expect(claims.filter(({ id }) => before.has(id))).toHaveLength(1)
    expect(claims).toHaveLength(3)
    const rest = await claim(course, 'a', { now: 5, limit: 10, retries: 0 })
    expect([...claims, ...rest].map(({ id }) => id).sort()).toEqual(ids)
  })

  test('the lessons that are due longest are claimed first, and problems are listed page by page, each once', async () => {
    const { store, course } = await storeWith(kind, [])
    for (const [id, now] of [
      ['third', 30],
      ['first', 10],
      ['second', 20],
    ] as const)
      await subscribe(store, id, now)
    const claims: Claim[] = []
    for (const call of ['a', 'b', 'c']) claims.push(await only(claim(course, call, { now: 50, limit: 1 })))
    expect(claims.map(({ id }) => id)).toEqual(['first', 'second', 'third'])
    await course.settle(claims.map((one) => failed(one, 60)))
    const listed: string[] = []
    let after: { since: number; id: string } | undefined
    for (;;) {
      const [problem, ...others] = await course.listProblems(1, after)
      expect(others).toEqual([])
      if (problem === undefined) break
      listed.push(problem.id)
      after = { since: problem.problem?.since ?? 0, id: problem.id }
    }
    expect(listed).toEqual(['first', 'second', 'third'])
  })

  test('two spellings of one mailbox that ask at once get one confirmation between them', async () => {
    const { course } = await storeWith(kind, [])
    const spellings = ['ada', '"ada"', 'a\u200bda', '"a\\da"']
    const answers = await Promise.all(
      spellings.map((name) => course.requestConfirmation(asked(name, 0, { mailboxKey: 'ada@example.com' }))),
    )
    expect(answers.filter(({ mail }) => mail)).toHaveLength(1)
  })

  test('finds failed confirmations between two moments, both inclusive, and renews them for seven days', async () => {
    const { course } = await storeWith(kind, [])
    await course.requestConfirmation(asked('a', 100, { tokenHash: 'one' }))
    const renew = (tokenHash: string, now: number) => course.renewConfirmation({ id: 'a', tokenHash, now })
    expect(await renew('two', 99 + 7 * DAY_MS)).toBe(true)
    expect(await renew('three', 100 + 7 * DAY_MS)).toBe(false)
    expect(await course.checkToken({ tokenHash: 'one', now: 200 })).toBe('invalid')
    expect(await course.checkToken({ tokenHash: 'two', now: 200 })).toBe('use')
  })

  test('an hour can be taken over when its lease ends and not before, or when the clock of leases was set back', async () => {
    let lease = 1_000_000
    const store = await openTestStore(await addressOf(kind), () => lease)
    const hour = '2026-11-21T04'
    const claim = (leaseMs = 60_000) => store.claimHour({ hour, leaseMs })
    expect(await claim()).toBe('claimed')
    lease += 59_999
    expect(await claim()).toBe('busy')
    lease += 1
    expect(await claim()).toBe('claimed')
    lease -= 900_000
    expect(await claim()).toBe('claimed')
    await store.keepHour({ hour, leaseMs: 90_000 })
    lease += 60_000
    expect(await claim()).toBe('busy')
    await store.endHour(hour, true)
    await store.keepHour({ hour, leaseMs: 0 })
    await store.endHour(hour, false)
    lease += 900_000
    expect(await claim()).toBe('handled')
  })

  test('an unconfirmed address is deleted at the exact millisecond that its retention ends', async () => {
    const { course } = await storeWith(kind, ['confirmed'])
    await course.requestConfirmation(asked('old', 99))
    await course.requestConfirmation(asked('young', 100))
    await course.pruneUnconfirmed(100)
    const left = await Promise.all(['old', 'young', 'confirmed'].map((id) => course.findById(id)))
    expect(left.map((found) => found?.id)).toEqual([undefined, 'young', 'confirmed'])
  })
})

test('a store in a file is opened so that commits survive a power cut and what is deleted is overwritten', async () => {
  const opened = new Set<Database.Database>()
  const pragma = Database.prototype.pragma
  const spy = vi.spyOn(Database.prototype, 'pragma').mockImplementation(function (
    this: Database.Database,
    ...asked: Parameters<typeof pragma>
  ) {
    opened.add(this)
    return pragma.apply(this, asked)
  })
  onTestFinished(() => spy.mockRestore())
  await openTestStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  const [database, ...others] = opened
  if (database === undefined) throw new Error('no database was opened')
  expect(others).toEqual([])
  const read = (name: string) => database.pragma(name, { simple: true })
  expect({
    journal_mode: read('journal_mode'),
    // 2: FULL
    synchronous: read('synchronous'),
    foreign_keys: read('foreign_keys'),
    secure_delete: read('secure_delete'),
    busy_timeout: read('busy_timeout'),
    journal_size_limit: read('journal_size_limit'),
  }).toEqual({
    journal_mode: 'wal',
    synchronous: 2,
    foreign_keys: 1,
    secure_delete: 1,
    busy_timeout: 1000,
    journal_size_limit: 64 * 1024 * 1024,
  })
})

test('a change takes the write lock of the file before it reads, also where it then changes nothing, and holds it no longer', async () => {
  const address = await addressOf('sqlite')
  const store = await openTestStore(address)
  await subscribe(store, 'ada')
  const beside = new Database(address.file, { timeout: 0 })
  onTestFinished(() => void beside.close())
  beside.exec('BEGIN IMMEDIATE')
  const nobody = { id: 'nobody', enrolment: 1, now: 0 }
  for (const change of [
    () => store.course.unsubscribe(nobody),
    () => store.course.undoUnsubscribe(nobody),
    () => claim(store.course, 'due'),
  ])
    await expect(change()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  // A look, and a claim where nothing is due, disturb nobody and wait for nobody.
  expect(await claim(store.course, 'idle', { now: -1 })).toEqual([])
  expect(await store.course.backlog(-1)).toMatchObject({ due: 0 })
  beside.exec('ROLLBACK')
  expect(await claim(store.course, 'due')).toHaveLength(1)
  // While a message is out no transaction is open.
  beside.exec(`BEGIN IMMEDIATE; UPDATE meta SET value = 'x'; COMMIT`)
})

test('a claim passes over rows that others have locked: fresh ones, failed ones and those of a lease that ended', async () => {
  const ids = ['out-1', 'out-2', 'failed-1', 'failed-2', 'fresh-1', 'fresh-2', 'gone-1', 'gone-2']
  const { course, lease, url } = await storeWith('postgres', ids)
  const all = await claim(course, 'before')
  const of = (name: string) => all.filter(({ id }) => id.startsWith(name))
  await course.settle([
    ...of('failed').map((one) => failed(one, 1)),
    ...of('fresh').map((one) => ({ ...failed(one, 1), failures: 0, problem: undefined })),
  ])
  lease.now += LEASE_MS
  const other = await besides(url)
  await other.query(`BEGIN; SELECT 1 FROM subscription WHERE id LIKE '%-1' FOR UPDATE`)
  const claims = await claim(course, 'now', { now: 5, retries: 5 })
  expect(claims.map(({ id }) => id).sort()).toEqual(['failed-2', 'fresh-2', 'gone-2', 'out-2'])
}, 10_000)

test('the rows of a group of outcomes are locked in the order of their ids', async () => {
  // Stored in the other order, which a lock without an order would follow.
  const { course, url } = await storeWith('postgres', ['zoe', 'bob', 'ada'])
  const claims = await claim(course, 'now')
  const [holder, tester] = [await besides(url), await besides(url)]
  await holder.query(`BEGIN; SELECT 1 FROM subscription WHERE id = 'ada' FOR UPDATE`)
  const settled = course.settle([...claims].sort((a, b) => (a.id < b.id ? 1 : -1)).map(done))
  await waiting(tester)
  await tester.query(`BEGIN; SELECT 1 FROM subscription WHERE id IN ('bob', 'zoe') FOR UPDATE NOWAIT; COMMIT`)
  await holder.query('COMMIT')
  await settled
  expect(await course.findById('zoe')).toMatchObject({ sentDays: [1] })
})

test.each(['mailbox', 'subscription'])(
  'feedback locks each %s in the order of its name, whatever order it was stored or reported in',
  async (table) => {
    const { store, url } = await storeWith('postgres', ['zoe', 'bob', 'ada'])
    const by = { cause: 'manual', at: 2, reason: 'asked to', source: 'operator' } as const
    const release = (id: string) => releaseChange(`${id}@example.com`, by)
    // What is known of each address stays a row of its own.
    for (const id of ['zoe', 'bob', 'ada'])
      await store.feedback.apply([suppressionChange(`${id}@example.com`, by, () => []), release(id)], 2)
    const [holder, tester] = [await besides(url), await besides(url)]
    await holder.query(`BEGIN; SELECT 1 FROM ${table} WHERE identity = 'ada@example.com' FOR UPDATE`)
    const applied = store.feedback.apply(['zoe', 'ada', 'bob'].map(release), 3)
    await waiting(tester)
    await tester.query(
      `BEGIN; SELECT 1 FROM ${table} WHERE identity <> 'ada@example.com' FOR UPDATE NOWAIT; COMMIT`,
    )
    await holder.query('COMMIT')
    expect(await applied).toEqual(['unchanged', 'unchanged', 'unchanged'])
  },
)

test('unconfirmed addresses are deleted, however many steps that takes', async () => {
  const { course, url } = await storeWith('postgres', [])
  const other = await besides(url)
  await other.query(`INSERT INTO subscription (id, identity, address, state, created_at)
    SELECT n, n || '@example.com', n || '@example.com', 'unconfirmed', 1 FROM generate_series(1, 1100) AS n`)
  await course.pruneUnconfirmed(2)
  expect((await other.query('SELECT count(*)::int AS left FROM subscription')).rows).toEqual([{ left: 0 }])
  const inMemory = await openTestStore(undefined)
  for (let n = 0; n < 501; n += 1) await inMemory.course.requestConfirmation(asked(`p${n}`, 1))
  // Their confirmations count as the moment of their last link.
  await inMemory.course.pruneUnconfirmed(2)
  expect((await inMemory.course.counts(2)).byState.unconfirmed).toBe(0)
})

const pooled = async () => {
  const pool = createPool({ url: (await newDatabase()).address.url, size: 1 })
  onTestFinished(() => pool.end())
  return pool
}

test('tries a transaction three times after a lock conflict, and once after any other fault', async () => {
  const pool = await pooled()
  const attempts = async (code: string, faults: number) => {
    let tried = 0
    await transaction(pool, async (on) => {
      tried += 1
      if (tried <= faults) await on.query(`DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '${code}'; END $$`)
    }).catch(() => {})
    return tried
  }
  expect(await attempts('40P01', 2)).toBe(3)
  expect(await attempts('40001', 9)).toBe(3)
  expect(await attempts('23505', 9)).toBe(1)
  expect((await pool.query('SELECT 1')).rowCount).toBe(1)
})

test('statements and transactions on a server are limited there, and only those of a migration or a copy are not', async () => {
  const pool = await pooled()
  const limits = `SELECT current_setting('statement_timeout') AS statement, current_setting('idle_in_transaction_session_timeout') AS idle`
  expect((await pool.query(limits)).rows).toEqual([{ statement: '15s', idle: '0' }])
  const within = (limitMs?: number) =>
    transaction(pool, async (on) => (await on.query(limits)).rows[0], limitMs)
  expect(await within()).toEqual({ statement: '15s', idle: '30s' })
  expect(await within(UNLIMITED)).toEqual({ statement: '0', idle: '0' })
  // The limits of a transaction end with it.
  expect((await pool.query(limits)).rows).toEqual([{ statement: '15s', idle: '0' }])
})
