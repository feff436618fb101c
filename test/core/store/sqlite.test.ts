import { once } from 'node:events'
import { closeSync, existsSync, openSync, statSync, writeSync } from 'node:fs'
import { copyFile, readdir, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { expect, onTestFinished, test, vi } from 'vitest'
import { storeFault } from '../../../src/core/errors.ts'
import { SQLITE_STEPS } from '../../../src/core/store/migrations.ts'
import { openAnalyticsStore, openHistory, openStore } from '../../../src/core/store/open.ts'
import { type Guarded, guard } from '../../../src/core/store/sqlite/connection.ts'
import { rowByRow } from '../../../src/core/store/sqlite/open.ts'
import { openDatabase, sqliteSql } from '../../../src/core/store/sqlite/sql.ts'
import { operations, type Store } from '../../../src/core/store/store.ts'
import { emptyFolder } from '../../support/folder.ts'
import { openTestStore } from '../../support/stores.ts'
import { outcomeOf, subscribe } from '../../support/subscribers.ts'

async function fileStore() {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const store = await openTestStore({ kind: 'sqlite', file })
  const beside = new Database(file)
  onTestFinished(() => void beside.close())
  return { file, store, beside }
}

/** A course on an open file, whose locks and limits a test sets. */
function courseOn(database: Database.Database, guarded: Guarded): Store['course'] {
  const parts = {
    database,
    guarded,
    leaseClock: () => 0,
    journal: undefined,
    file: undefined,
  }
  return operations(sqliteSql(parts), rowByRow(database)).course
}

const DUE = { now: 1, limit: 10, retries: 0, leaseMs: 90_000, call: 'c' } as const

test('what is written for every lesson runs no trigger', async () => {
  const { beside } = await fileStore()
  const texts: string[] = []
  const prepare = (text: string) => {
    texts.push(text)
    return beside.prepare(text)
  }
  rowByRow(Object.assign(Object.create(beside), { prepare }))
  const operations = texts.flatMap((text) => {
    const explained = beside.prepare(`EXPLAIN ${text.replaceAll(/\?|@\w+/g, 'NULL')}`)
    return explained.raw().all() as unknown[][]
  })
  expect(operations.length).toBeGreaterThan(0)
  expect(operations.filter(([, operation]) => operation === 'Program')).toEqual([])
})

test.skipIf(process.platform === 'win32')('a new store and its folder are for their owner only', async () => {
  const folder = path.join(await emptyFolder(), 'new')
  await openTestStore({ kind: 'sqlite', file: path.join(folder, 'store.sqlite') })
  const rights = async (name: string) => ((await stat(path.join(folder, name))).mode & 0o777).toString(8)
  // On another disk.
  await symlink('../elsewhere.sqlite', path.join(folder, 'link.sqlite'))
  await openTestStore({ kind: 'sqlite', file: path.join(folder, 'link.sqlite') })
  expect(await rights('../elsewhere.sqlite')).toBe('600')
  expect(
    await Promise.all(['.', 'store.sqlite', 'store.sqlite-wal', 'store.sqlite-shm'].map(rights)),
  ).toEqual(['700', '600', '600', '600'])
})

test('a full disk is answered 503, changes nothing, and is over when there is room again', async () => {
  const { file, store } = await fileStore()
  await subscribe(store, 'ada')
  const [claim] = await store.course.claimDue(DUE)
  if (claim === undefined) throw new Error('the claim exists by now')
  const database = await openDatabase(file, 'FULL', SQLITE_STEPS)
  onTestFinished(() => void database.close())
  const course = courseOn(database, guard(database))
  database.pragma(`max_page_count = ${database.pragma('page_count', { simple: true })}`)
  const fill = async () => {
    for (let n = 2; ; n += 1) await subscribe({ course }, `p${n}`)
  }
  await expect(fill()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  expect(await course.findById('ada')).toMatchObject({ state: 'confirmed', sentDays: [] })
  database.pragma('max_page_count = 4294967294')
  await course.settle([outcomeOf(claim, 2)])
  expect(await course.findById('ada')).toMatchObject({ sentDays: [1] })
  expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
})

test('a file whose disk was full is well only once there is room for more than a row that exists already', async () => {
  const spy = vi.spyOn(Database.prototype, 'pragma')
  const store = await openTestStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') })
  const database = spy.mock.contexts[0] as Database.Database
  spy.mockRestore()
  const state = () => store.ping().then(() => 'well', storeFault)
  expect(await state()).toBe('well')
  database.pragma(`max_page_count = ${database.pragma('page_count', { simple: true })}`)
  const fill = async () => {
    for (let n = 0; ; n += 1) await subscribe(store, `p${n}`)
  }
  await expect(fill()).rejects.toMatchObject({ code: 'store_unavailable' })
  expect([await state(), await state()]).toEqual(['disk_full', 'disk_full'])
  database.pragma('max_page_count = 4294967294')
  expect(await state()).toBe('well')
})

test('the log of a killed process is moved into the file before anything is committed on top', async () => {
  const { file, store } = await fileStore()
  await subscribe(store, 'ada')
  const left = path.join(path.dirname(file), 'left.sqlite')
  for (const end of ['', '-wal']) await copyFile(`${file}${end}`, `${left}${end}`)
  await openTestStore({ kind: 'sqlite', file: left })
  const alone = path.join(path.dirname(file), 'alone.sqlite')
  await copyFile(left, alone)
  const database = new Database(alone)
  onTestFinished(() => void database.close())
  expect(database.prepare('SELECT state FROM subscription').pluck().all()).toEqual(['confirmed'])
})

test('waits for another process that makes the same file', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const makes = `const { workerData: [module, file], parentPort } = require('node:worker_threads')
    const database = new (require(module))(file)
    database.exec('BEGIN IMMEDIATE')
    parentPort.postMessage('begun')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    database.exec('COMMIT')
    database.close()`
  const module = createRequire(import.meta.url).resolve('better-sqlite3')
  const other = new Worker(makes, { eval: true, workerData: [module, file] })
  const exited = once(other, 'exit')
  await once(other, 'message')
  await (await openTestStore({ kind: 'sqlite', file })).ping()
  await exited
})

test.runIf(existsSync('/proc/self'))(
  'reports a folder that cannot be created in one sentence, without an endless loop',
  async () => {
    await expect(openStore({ kind: 'sqlite', file: '/proc/nowhere/store.sqlite' })).rejects.toThrow(
      /store\.sqlite cannot be opened for writing \(.+\): check that its folder exists/,
    )
  },
)

test('the store in memory writes no file', async () => {
  const cwd = await emptyFolder()
  const { href } = new URL('../../../src/core/store/open.ts', import.meta.url)
  const script = `const { openStore, openHistory } = await import('${href}')
    await (await openStore(undefined)).ping()
    await openHistory(undefined)`
  await execa(process.execPath, ['--input-type=module', '--eval', script], { cwd })
  expect(await readdir(cwd)).toEqual([])
})

test('a damaged page is met by a look at every page, and stays known', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  onTestFinished(() => store.close())
  await store.ping({ pages: true })
  const other = new Database(file)
  other.pragma('wal_checkpoint(TRUNCATE)')
  other.close()
  const pages = statSync(file).size / 4096
  const at = openSync(file, 'r+')
  for (let page = 2; page < pages; page += 1) writeSync(at, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096)
  closeSync(at)
  await expect
    .poll(() => store.ping({ pages: true }).then(() => 'well', storeFault), { timeout: 15_000 })
    .toBe('damaged')
  expect(await store.ping().then(() => 'well', storeFault)).toBe('damaged')
})

test('a file whose log cannot be moved into it when it is closed, as on a full disk, is closed all the same', async () => {
  const folder = await emptyFolder()
  const address = { kind: 'sqlite', file: path.join(folder, 'store.sqlite') } as const
  const opened = new Set<Database.Database>()
  const pragma = Database.prototype.pragma
  const spy = vi.spyOn(Database.prototype, 'pragma').mockImplementation(function (
    this: Database.Database,
    ...asked: Parameters<typeof pragma>
  ) {
    opened.add(this)
    if (asked[0] === 'wal_checkpoint(TRUNCATE)')
      throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL')
    return pragma.apply(this, asked)
  })
  onTestFinished(() => spy.mockRestore())
  const files = [
    await openStore(address),
    await openAnalyticsStore(address, { table: 'visits' }),
    await openHistory(path.join(folder, 'history.sqlite')),
  ]
  for (const one of files) await expect(one.close()).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  expect(opened.size).toBeGreaterThanOrEqual(files.length)
  expect([...opened].filter((one) => one.open)).toEqual([])
  for (const one of files) await one.close()
})
