import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Claim } from '../../../src/core/course/subscription.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { PlatformError } from '../../../src/core/errors.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { POSTGRES_STEPS, TABLES } from '../../../src/core/store/migrations.ts'
import { copyStore, openMaintenance } from '../../../src/core/store/open.ts'
import { createPool, guarded, transaction } from '../../../src/core/store/postgres/connection.ts'
import { connect, guard } from '../../../src/core/store/sqlite/connection.ts'
import { failed, moveIntoPlace } from '../../../src/core/store/sqlite/files.ts'
import { byHand } from '../../support/by-hand.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin } from '../../support/learning.ts'
import { addressOf, newDatabase, openTestStore } from '../../support/stores.ts'
import { asked, audited, erasureOf, outcomeOf, subscribe } from '../../support/subscribers.ts'

const NOW = 100 * DAY_MS

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const opened = async () => openTestStore(await addressOf(kind))

  test('an enrolment names its reason for every refusal, also of a key that enrolled somebody else', async () => {
    const { course, feedback } = await opened()
    const enrol = (id: string, more: object = {}) =>
      course.enrol({ ...asked(id, NOW), begin, mailboxKey: id, ...more })
    expect(await enrol('ada', { course: 'none' })).toEqual({ enrolled: false, reason: 'no_such_course' })
    expect(await course.findById('ada')).toBeUndefined()
    expect(await enrol('ada', { key: 'order-1' })).toEqual({ enrolled: true, id: 'ada', enrolment: 1 })
    expect(await enrol('ada', { key: 'order-1' })).toEqual({ enrolled: true, id: 'ada', enrolment: 1 })
    expect(await enrol('bob', { key: 'order-1' })).toEqual({ enrolled: false, reason: 'conflict' })
    expect(await course.findById('bob')).toBeUndefined()
    expect(await enrol('ada')).toEqual({ enrolled: false, reason: 'already_enrolled' })
    await course.unsubscribe({ id: 'ada', now: NOW })
    expect(await enrol('ada')).toEqual({ enrolled: false, reason: 'unsubscribed' })
    const dead = { cause: 'hard-bounce', at: NOW, reason: 'r', source: 'operator' } as const
    await feedback.apply([suppressionChange('bob@example.com', dead, () => [])], NOW)
    expect(await enrol('bob')).toEqual({ enrolled: false, reason: 'suppressed' })
  })

  test('an operator’s decision is in the history under its day and outcome, and in the log of actions, once', async () => {
    const { course, audit: log } = await opened()
    await subscribe({ course }, 'ada', NOW)
    const audit = audited('resolve', NOW)
    const decide = () =>
      course.resolve({ id: 'ada', as: 'retry', now: NOW + 2, next: () => undefined, audit })
    expect(await decide()).toBe(false)
    const due = { now: NOW, limit: 1, retries: 0, leaseMs: 1000, call: 'a' }
    const [claim] = (await course.claimDue(due)) as [Claim]
    const problem = { kind: 'parked', reason: 'no', since: NOW } as const
    await course.settle([outcomeOf(claim, NOW, { sent: false, failures: 1, problem })])
    expect(await log.list(9)).toEqual([])
    expect(await decide()).toBe(true)
    expect(await decide()).toBe(false)
    expect(await log.list(9)).toHaveLength(1)
    expect((await course.history('ada')).filter((one) => one.kind === 'resolved')).toMatchObject([
      { at: NOW + 2, enrolment: 1, day: 1, outcome: 'retry' },
    ])
    expect(await course.findById('ada')).toMatchObject({ problem: undefined, nextAttemptAt: NOW + 2 })
    // It stays when the person is erased, beside the entry of the erasure.
    await course.erase({ ...erasureOf('ada', 'erased-ada', NOW), audit: audited('erase', NOW + 1) })
    expect((await log.list(9)).map(({ action }) => action)).toEqual(['erase', 'resolve'])
  })

  test('a leaving and a coming back are in the history once, and what changes nothing is not', async () => {
    const { course } = await opened()
    await subscribe({ course }, 'ada', NOW)
    for (const now of [NOW + 1, NOW + 2]) await course.unsubscribe({ id: 'ada', now })
    expect(await course.findById('ada')).toMatchObject({ state: 'unsubscribed', unsubscribedAt: NOW + 1 })
    for (const now of [NOW + 3, NOW + 4]) await course.undoUnsubscribe({ id: 'ada', now })
    expect(await course.findById('ada')).toMatchObject({ state: 'confirmed', unsubscribedAt: undefined })
    const kinds = (await course.history('ada')).map(({ kind: one, at }) => `${one} ${at - NOW}`)
    expect(kinds.filter((one) => one.startsWith('unsubscribed'))).toEqual(['unsubscribed 1'])
    expect(new Set(kinds).size).toBe(kinds.length)
    expect(kinds).toHaveLength(3)
  })

  test('a confirmation to somebody whom a build before stored without a mailbox counts, too', async () => {
    const address = await addressOf(kind)
    const { course } = await openTestStore(address)
    await course.requestConfirmation(asked('ada', NOW))
    await byHand(address, 'UPDATE subscription SET mailbox_key = NULL')
    expect(await course.requestConfirmation(asked('ada', NOW + 1))).toMatchObject({ mail: false })
  })

  test('a confirmation that a clock far ahead has dated does not keep its address from the next', async () => {
    const { course } = await opened()
    await course.requestConfirmation(asked('ada', NOW + DAY_MS))
    expect(await course.requestConfirmation({ ...asked('ada', NOW), tokenHash: 'now' })).toMatchObject({
      mail: true,
    })
  })
})

test('the status of a file says its schema and size, and when it was last backed up, if it was', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const store = await openTestStore({ kind: 'sqlite', file })
  const status = await store.status()
  expect(status).toMatchObject({ kind: 'sqlite', version: status.latest, backupAt: undefined })
  expect(status.bytes).toBeGreaterThan(0)
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  onTestFinished(() => maintenance.close())
  await expect(maintenance.backup(file, NOW)).rejects.toThrow('exists and was left as it is')
  expect(await store.status()).toMatchObject({ backupAt: undefined })
  await maintenance.backup(path.join(path.dirname(file), 'backup.sqlite'), NOW + 1)
  expect(await store.status()).toMatchObject({ backupAt: NOW + 1 })
  const memory = await openTestStore(undefined)
  expect(await memory.status()).toMatchObject({ kind: 'memory', bytes: undefined, backupAt: undefined })
})

test.each([
  ['2.99.99', false],
  ['3.50.9', false],
  ['3.51.2', false],
  ['3.51.3', true],
  ['3.51.10', true],
  ['3.52.0', true],
  ['4.0.0', true],
])('SQLite %s may open a store: %s', (version, may) => {
  const prepare = Database.prototype.prepare
  const spy = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql,
  ) {
    return prepare.call(this, sql === 'SELECT sqlite_version()' ? `SELECT '${version}'` : sql)
  })
  onTestFinished(() => spy.mockRestore())
  const open = () => connect({ file: ':memory:' }).close()
  if (may) open()
  else expect(open).toThrow(`SQLite ${version} can corrupt its file; platformctl needs 3.51.3 or newer.`)
})

test('a slot up to 60 seconds and 32 intervals ahead is one of this start of the machine, and one further ahead is of an earlier', async () => {
  for (const [messages, waitUs] of [
    [632, 63_200_000],
    [633, 0],
  ] as const) {
    const { sending } = await openTestStore(undefined, () => 1_000_000)
    expect(await sending.reserve({ messages, intervalUs: 100_000 })).toBe(0)
    expect(await sending.reserve({ messages: 1, intervalUs: 100_000 })).toBe(waitUs)
  }
})

test('a store in which nothing was done yet is copied: no row of any table, and no mark of its own', async () => {
  const from = { kind: 'sqlite', file: path.join(await emptyFolder(), 'new.sqlite') } as const
  const store = await openTestStore(from)
  await store.ping()
  await store.close()
  expect(await copyStore(from, (await newDatabase()).address, 1_000_000)).toMatchObject({
    counts: Object.fromEntries(TABLES.map((name) => [name, 0])),
  })
})

test('a transaction that fails is rolled back, also when its connection is gone', async () => {
  const { address, query } = await newDatabase()
  const pool = createPool({ url: address.url, size: 1 })
  onTestFinished(() => pool.end())
  await query('CREATE TABLE written (n integer)')
  const failing = transaction(pool, async (on) => {
    await on.query('INSERT INTO written VALUES (1)')
    await on.query('SELECT 1 / 0')
  })
  await expect(failing).rejects.toMatchObject({ code: '22012' })
  // The one connection is in no transaction, and is used again.
  const backend = async () =>
    (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid
  const before = await backend()
  expect((await pool.query('INSERT INTO written VALUES (2)')).rowCount).toBe(1)
  const cut = transaction(pool, async (on) => {
    await on.query('INSERT INTO written VALUES (3)')
    await query(`SELECT pg_terminate_backend(${before}, 5000)`)
    await on.query('SELECT 1')
  })
  await expect(cut).rejects.toThrow()
  expect(await transaction(pool, async (on) => (await on.query('SELECT 1')).rowCount)).toBe(1)
  expect(await backend()).not.toBe(before)
  expect((await query('SELECT n FROM written')).rows).toEqual([{ n: 2 }])
})

test('of more than a hundred faults on PostgreSQL the rest are counted, on every page of rows, and the store is not verified', async () => {
  const { address, query } = await newDatabase('a store')
  const maintenance = await openMaintenance(address)
  onTestFinished(() => maintenance.close())
  await query(`INSERT INTO platformctl.subscription (id, identity, address, state, created_at, confirmed_at, enrolment, lessons, sent_days)
    SELECT lpad(n::text, 5, '0'), n, n, 'confirmed', 0, 0, 1, 7, CASE WHEN n > 900 THEN '[2]' ELSE '[1,2,3,4,5,6,7]' END::jsonb FROM generate_series(1, 1001) AS n`)
  const found = await maintenance.verify(NOW)
  expect(found).toMatchObject({ ok: false, damaged: false, checked: 1001 })
  expect(found.moreFaults).toBeGreaterThan(0)
  expect(found.faults).toHaveLength(100)
  expect(found.faults[0]).toMatch(/^subscription 00901: /)
  expect((await maintenance.status()).verifiedAt).toBeUndefined()
  await query(`DELETE FROM platformctl.subscription WHERE sent_days = '[2]'::jsonb AND id <> '01001'`)
  const last = await maintenance.verify(NOW)
  expect(last).toMatchObject({ ok: false, checked: 901, moreFaults: 0 })
  expect(last.faults.every((one) => one.startsWith('subscription 01001: '))).toBe(true)
  expect((await maintenance.status()).version).toBe(POSTGRES_STEPS.length)
})

describe('a file that cannot be the store', () => {
  test('is left as it was, with a sentence that says why, and no log beside it', async () => {
    const folder = await emptyFolder()
    const file = (name: string) => path.join(folder, name)
    await writeFile(file('letter'), 'Dear Ada, '.repeat(100))
    expect(() => connect({ file: file('letter') })).toThrow(
      `${file('letter')} is not an SQLite file: name another file, or move this one away.`,
    )
    expect(await readFile(file('letter'), 'utf8')).toBe('Dear Ada, '.repeat(100))
    expect(() => connect({ file: path.join(file('letter'), 'a', 'store.sqlite') })).toThrow(
      /letter\/a is not a folder: name another one with --data or STORE_URL/,
    )
    expect(() => connect({ file: path.join(file('letter'), 'store.sqlite') })).toThrow(
      /letter is not a folder: name another one with --data or STORE_URL/,
    )
    const held = new Database(file('held'))
    onTestFinished(() => void held.close())
    held.exec('BEGIN EXCLUSIVE; CREATE TABLE a (b)')
    expect(() => connect({ file: file('held'), busyMs: 0 })).toThrow(
      `${file('held')} is locked by another process: wait for it, or stop it.`,
    )
    held.exec('ROLLBACK')
    for (const [name, made] of [
      ['bookmarks', 'CREATE TABLE bookmarks (url TEXT)'],
      ['other', 'PRAGMA user_version = 1'],
    ] as const) {
      const other = new Database(file(name))
      other.exec(made)
      other.close()
      const before = await readFile(file(name))
      expect(() => connect({ file: file(name) })).toThrow(
        'is a database of another program and was left as it is',
      )
      expect(await readFile(file(name))).toEqual(before)
    }
    expect((await readdir(folder)).sort()).toEqual(['bookmarks', 'held', 'letter', 'other'])
  })

  test('is ours to mark when it is empty, and keeps its mark', async () => {
    const file = path.join(await emptyFolder(), 'empty')
    await writeFile(file, '')
    for (const times of [1, 2]) {
      const database = connect({ file })
      expect([times, database.pragma('application_id', { simple: true })]).toEqual([times, 0x504c4154])
      database.close()
    }
  })
})

test.each([
  ['SQLITE_IOERR_FSYNC', true, /^The disk did not confirm a write/],
  ['SQLITE_IOERR_DIR_FSYNC', true, /^The disk did not confirm a write/],
  ['SQLITE_IOERR_READ', false, /^The store cannot be read or written now/],
  ['SQLITE_BUSY', false, /^The store cannot be read or written now/],
])('after %s the store is closed for good: %s', (code, closes, sentence) => {
  const database = new Database(':memory:')
  onTestFinished(() => void database.close())
  const fault = new Database.SqliteError('x', code)
  const [lost, faults]: [unknown[], unknown[]] = [[], []]
  const run = guard(
    database,
    (cause) => lost.push(cause),
    (error) => faults.push(error),
  )
  const caught = (work: () => unknown) => {
    try {
      return run(work)
    } catch (error) {
      return error
    }
  }
  const answer = caught(() => {
    throw fault
  })
  expect(answer).toMatchObject({ code: 'store_unavailable', final: closes, cause: fault })
  expect((answer as Error).message).toMatch(sentence)
  expect([database.open, faults]).toEqual([!closes, [fault]])
  const after = { code: 'store_unavailable', final: true, message: expect.stringMatching(sentence) }
  expect(caught(() => database.prepare('SELECT 1').pluck().get())).toEqual(
    closes ? expect.objectContaining(after) : 1,
  )
  expect(lost).toEqual(closes ? [fault] : [])
  // A fault of ours stays what it is.
  const own = new RangeError('ours')
  expect(
    caught(() => {
      throw own
    }),
  ).toBe(own)
})

test('whatever a server does wrong is store_unavailable, with its cause, and our own answers stay what they are', async () => {
  const cause = new Error('ECONNRESET')
  const own = new PlatformError('not_found', 'There is none.')
  await expect(guarded(() => Promise.reject(cause))).rejects.toMatchObject({
    code: 'store_unavailable',
    status: 503,
    cause,
  })
  await expect(guarded(() => Promise.reject(own))).rejects.toBe(own)
  const silent = new Error('Connection terminated due to connection timeout')
  await expect(guarded(() => Promise.reject(silent))).rejects.toMatchObject({ cause: { code: 'ETIMEDOUT' } })
  expect(await guarded(async () => 7)).toBe(7)
})

test.each([
  ['ENOSPC', 'the disk of /backups is full'],
  ['SQLITE_FULL', 'the disk of /backups is full'],
  ['EDQUOT', 'the disk of /backups is full'],
  ['EACCES', '/backups cannot be written to by this user.'],
  ['EPERM', '/backups cannot be written to by this user.'],
  [
    'EROFS',
    '/backups is on a disk that takes no writes: it is mounted read-only, perhaps after an error (dmesg says).',
  ],
  ['SQLITE_CANTOPEN', '/backups cannot be written to by this user.'],
  ['ENOENT', '/backups does not exist: make the folder first.'],
  ['EISDIR', '/backups/a.sqlite is a folder: name a file.'],
  ['EIO', 'the disk of /backups reports an error (EIO)'],
  ['EIO', 'the disk of what was read reports an error (EIO)', 'read'],
  ['SQLITE_IOERR_WRITE', 'the disk of /backups reports an error (SQLITE_IOERR_WRITE)'],
])('a backup that meets %s says: %s', (code, sentence, syscall = 'write') => {
  const fault = Object.assign(new Error('x'), { code, syscall })
  expect(failed('/backups/a.sqlite', fault)).toMatchObject({
    name: 'StoreMaintenanceError',
    message: expect.stringContaining(sentence),
    cause: fault,
  })
})

test('a backup that meets a file of another user names that file', async () => {
  const journal = path.join(await emptyFolder(), 'platform-journal.jsonl')
  await writeFile(journal, '')
  const fault = Object.assign(new Error('x'), { code: 'EACCES', path: journal })
  expect(failed('/backups/a.sqlite', fault)).toMatchObject({
    message: `${journal} cannot be read or written by this user: correct its owner.`,
  })
})

test('a fault that no sentence is about stays as it is', () => {
  const fault = Object.assign(new Error('x'), { code: 'EMFILE' })
  expect(failed('/backups/a.sqlite', fault)).toBe(fault)
})

test('a finished backup gets its name only where there is nothing of that name', async () => {
  const folder = await emptyFolder()
  const [from, to] = [path.join(folder, 'from'), path.join(folder, 'to')]
  await writeFile(from, 'new')
  moveIntoPlace(from, to)
  expect(await readFile(to, 'utf8')).toBe('new')
  await writeFile(to, 'precious')
  await writeFile(path.join(folder, 'next'), 'next')
  expect(() => moveIntoPlace(path.join(folder, 'next'), to)).toThrow(
    `${to} exists and was left as it is: name another file.`,
  )
  expect(await readFile(to, 'utf8')).toBe('precious')
  expect(() => moveIntoPlace(path.join(folder, 'none'), path.join(folder, 'x'))).toThrow('ENOENT')
  expect(existsSync(path.join(folder, 'x'))).toBe(false)
})
