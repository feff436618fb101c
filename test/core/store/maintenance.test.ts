import { copyFileSync, existsSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../../src/core/durations.ts'
import { statementsOf } from '../../../src/core/store/maintenance.ts'
import { SQLITE_STEPS } from '../../../src/core/store/migrations.ts'
import {
  openAnalyticsMaintenance,
  openAnalyticsStore,
  openMaintenance,
  openStore,
  restoreStore,
} from '../../../src/core/store/open.ts'
import { connect } from '../../../src/core/store/sqlite/connection.ts'
import { maintenanceOfSqlite } from '../../../src/core/store/sqlite/maintenance.ts'
import { migrateFile } from '../../../src/core/store/sqlite/sql.ts'
import { backupsUnderLoad } from '../../support/backups-under-load.ts'
import { emptyFolder } from '../../support/folder.ts'
import { newFile } from '../../support/stores.ts'
import { subscribe } from '../../support/subscribers.ts'

const NOW = Date.UTC(2026, 10, 21)

/** A store with one confirmed subscription, and its maintenance. */
async function stored() {
  const file = await newFile('platform.sqlite')
  const folder = path.dirname(file)
  const address = { kind: 'sqlite', file } as const
  const store = await openStore(address)
  await subscribe(store, 'ada', NOW)
  await store.close()
  const maintenance = await openMaintenance(address)
  onTestFinished(() => maintenance.close())
  const at = (name: string) => path.join(folder, name)
  return {
    folder,
    file,
    address,
    maintenance,
    at,
    change: (sql: string) => {
      const database = new Database(file)
      database.exec(sql)
      database.close()
    },
    restore: (from: string, to = at('new/platform.sqlite'), withoutJournal = false) =>
      restoreStore({ kind: 'sqlite', file: to }, { from: at(from), force: false, now: NOW, withoutJournal }),
  }
}

const namesOf = async (file: string) => {
  const database = new Database(file, { readonly: true })
  const names = database.prepare('SELECT address FROM subscription ORDER BY address').pluck().all()
  database.close()
  return names
}

test.each(['store.sqlite.zst', 'store.sqlite.gz', 'store.sqlite'])(
  'restores a backup named %s with its rows, readable by its owner only, and leaves no other file',
  async (name) => {
    const { maintenance, at, folder, restore } = await stored()
    const before = await readdir(folder)
    await maintenance.backup(at(name), Date.now())
    expect((await readdir(folder)).sort()).toEqual([...before, 'platform-journal.jsonl', name].sort())
    if (process.platform !== 'win32') expect((await stat(at(name))).mode & 0o777).toBe(0o600)
    // The bit of a zstd frame that says that it ends with a checksum (RFC 8878, 3.1.1.1.1).
    if (name.endsWith('.zst')) expect(Number((await readFile(at(name)))[4]) & 4).toBe(4)
    await restore(name, at('new/platform.sqlite'), true)
    expect(await namesOf(at('new/platform.sqlite'))).toEqual(['ada@example.com'])
    expect(await readdir(at('new'))).toEqual(['platform.sqlite'])
    const rights = async (file: string) => ((await stat(at(file))).mode & 0o777).toString(8)
    if (process.platform !== 'win32')
      expect([await rights('new'), await rights('new/platform.sqlite')]).toEqual(['700', '600'])
  },
)

test('backups made while another process writes all hold every acknowledged row', async () => {
  const { faults, rows } = await backupsUnderLoad(await emptyFolder(), 3)
  expect(faults).toEqual([])
  expect(rows).toBeGreaterThan(0)
}, 60_000)

test('a backup refuses a name that is taken, and a folder that is missing', async () => {
  const { maintenance, at } = await stored()
  await writeFile(at('taken.sqlite.zst'), 'precious')
  await expect(maintenance.backup(at('taken.sqlite.zst'), Date.now())).rejects.toThrow(
    /exists and was left as it is/,
  )
  expect(await readFile(at('taken.sqlite.zst'), 'utf8')).toBe('precious')
  await expect(maintenance.backup(at('none/b.sqlite'), Date.now())).rejects.toThrow(
    /none does not exist: make the folder/,
  )
})

test.skipIf(process.platform === 'win32')(
  'a restore into a folder that this user may not look into names the folder',
  async () => {
    const { restore, at, folder } = await stored()
    await chmod(folder, 0o711)
    await mkdir(at('theirs'))
    await chmod(at('theirs'), 0)
    const user = process.geteuid?.() ?? 0
    onTestFinished(() => process.seteuid?.(user))
    // The superuser may look into every folder.
    if (user === 0) process.seteuid?.(65534)
    await expect(restore('b.sqlite', at('theirs/platform.sqlite'))).rejects.toThrow(
      `${at('theirs')} cannot be written to by this user.`,
    )
  },
)

test('a restore refuses to replace a store; with force it keeps the one that was there', async () => {
  const { maintenance, address, at, file, folder } = await stored()
  await maintenance.backup(at('b.sqlite.zst'), Date.now())
  await maintenance.close()
  const now = Date.UTC(2026, 10, 21, 7, 26, 0)
  const restore = (force: boolean) => restoreStore(address, { from: at('b.sqlite.zst'), force, now })
  await expect(restore(false)).rejects.toThrow(/exists and was left as it is: --force replaces it/)
  const { kept } = await restore(true)
  expect(kept).toBe(`${file}.before-20261121T072600Z`)
  expect(await namesOf(kept ?? '')).toEqual(['ada@example.com'])
  expect((await readdir(folder)).sort()).toEqual(
    [
      'b.sqlite.zst',
      'platform-journal.jsonl',
      'platform.sqlite',
      'platform.sqlite.before-20261121T072600Z',
    ].sort(),
  )
  // The log alone of a store that was moved away: SQLite would read it into the restored one.
  await mkdir(at('moved'))
  await writeFile(at('moved/platform.sqlite-wal'), 'of another store')
  const moved = { kind: 'sqlite', file: at('moved/platform.sqlite') } as const
  const without = { from: at('b.sqlite.zst'), now, withoutJournal: true }
  await expect(restoreStore(moved, { ...without, force: false })).rejects.toThrow(/--force replaces it/)
  await restoreStore(moved, { ...without, force: true })
  expect((await readdir(at('moved'))).sort()).toEqual([
    'platform.sqlite',
    'platform.sqlite.before-20261121T072600Z-wal',
  ])
})

test('a restore is refused while a process has the store or the events of visitors open, and then neither is changed', async () => {
  const { maintenance, address, at, change, folder } = await stored()
  const openEvents = () => openAnalyticsStore(address, { table: 'events' })
  await (await openEvents()).close()
  const events = await openAnalyticsMaintenance(address)
  await events?.backup(at('b-analytics.sqlite'), NOW)
  await events?.close()
  await maintenance.backup(at('b.sqlite'), Date.now())
  await maintenance.close()
  change("UPDATE subscription SET address = 'grace@example.com'")
  const before = (await readdir(folder)).sort()
  for (const [opens, sentence] of [
    [
      () => openStore(address),
      /platform\.sqlite is open in another process: stop the daemon first; nothing was changed/,
    ],
    [openEvents, /platform-analytics\.sqlite is open in another process: .* nothing was changed/],
  ] as const) {
    const open = await opens()
    const restored = restoreStore(address, { from: at('b.sqlite'), force: true, now: NOW })
    await expect(restored).rejects.toThrow(sentence)
    await open.ping()
    await open.close()
  }
  expect((await readdir(folder)).sort()).toEqual(before)
  expect(await namesOf(address.file)).toEqual(['grace@example.com'])
})

test('replaces a damaged store by its backup', async () => {
  const { maintenance, address, at, file } = await stored()
  await maintenance.backup(at('b.sqlite.gz'), Date.now())
  await maintenance.close()
  await writeFile(file, 'not a database at all, and longer than sixteen bytes')
  await writeFile(`${file}-wal`, 'left by a crash')
  await restoreStore(address, { from: at('b.sqlite.gz'), force: true, now: NOW })
  expect(await namesOf(file)).toEqual(['ada@example.com'])
})

test.each([
  ['a text file', async (at: string) => writeFile(at, 'hello'), /is not a backup of a store/],
  ['an empty file', async (at: string) => writeFile(at, ''), /is not a backup of a store/],
  [
    'a database of another program',
    async (at: string) => {
      const database = new Database(at)
      database.exec('CREATE TABLE bookmarks (url TEXT)')
      database.close()
    },
    /is a database of another program/,
  ],
])('%s is not restored, and the reason is said', async (_, make, reason) => {
  const { at, folder, restore } = await stored()
  await make(at('foreign'))
  const before = await readdir(folder)
  await expect(restore('foreign')).rejects.toThrow(reason)
  expect((await readdir(folder)).sort()).toEqual(before.sort())
})

test.each(['b.sqlite.zst', 'b.sqlite.gz', 'b.sqlite'])(
  'a %s that was cut short or changed is not restored',
  async (name) => {
    const { maintenance, at, folder, restore } = await stored()
    await maintenance.backup(at(name), Date.now())
    await copyFile(at(name), at(`cut-${name}`))
    await truncate(at(`cut-${name}`), Math.floor((await stat(at(name))).size * 0.6))
    const bytes = await readFile(at(name))
    // In a plain file only whole pages: it has no checksum, and much of a page is free.
    const [middle, length] = name.endsWith('.sqlite') ? [4096, 8192] : [Math.floor(bytes.length / 2), 1]
    await writeFile(
      at(`changed-${name}`),
      Buffer.concat([bytes.subarray(0, middle), Buffer.alloc(length, 0x5a), bytes.subarray(middle + length)]),
    )
    const before = (await readdir(folder)).sort()
    for (const damaged of [`cut-${name}`, `changed-${name}`])
      await expect(restore(damaged, at('new.sqlite'), true)).rejects.toThrow(
        /is damaged and was not restored/,
      )
    expect((await readdir(folder)).sort()).toEqual(before)
  },
)

test('a refused restore removes the folders that it made, and keeps those that existed', async () => {
  const { maintenance, at, restore } = await stored()
  await maintenance.backup(at('b.sqlite.zst'), Date.now())
  await truncate(at('b.sqlite.zst'), 100)
  await expect(restore('b.sqlite.zst', at('new/deep/platform.sqlite'))).rejects.toThrow(
    /is damaged and was not restored/,
  )
  await expect(stat(at('new'))).rejects.toThrow(/ENOENT/)
  await mkdir(at('empty'))
  await expect(restore('b.sqlite.zst', at('empty/platform.sqlite'))).rejects.toThrow(
    /is damaged and was not restored/,
  )
  expect(await readdir(at('empty'))).toEqual([])
})

test.each(['file/below', ...(process.platform === 'linux' ? ['/proc/nowhere/below'] : [])])(
  'a restore into %s, where no folder can be made, is refused',
  async (folder) => {
    const { maintenance, at, restore } = await stored()
    await maintenance.backup(at('b.sqlite'), Date.now())
    await writeFile(at('file'), '')
    const file = path.resolve(at(''), folder, 'platform.sqlite')
    await expect(restore('b.sqlite', file)).rejects.toThrow(
      `${path.dirname(file)} is no folder and cannot be made one`,
    )
  },
)

test('verify is remembered while every row is sound, and names the rows that break a promise of the course', async () => {
  const { maintenance, change } = await stored()
  const latest = SQLITE_STEPS.length
  expect(await maintenance.status()).toMatchObject({ kind: 'sqlite', version: latest, latest })
  change(`UPDATE subscription SET sent_days = '[1,3]', next_attempt_at = ${NOW + DAY_MS}`)
  expect(await maintenance.verify(NOW)).toMatchObject({
    ok: false,
    damaged: false,
    faults: [
      'subscription ada: the days sent are not in order: 1, 3',
      expect.stringContaining('subscription ada: day 3 was sent before it was due'),
    ],
  })
  expect((await maintenance.status()).verifiedAt).toBeUndefined()
  change(`UPDATE subscription SET sent_days = '[]', next_attempt_at = ${NOW}`)
  const orphan = "INSERT INTO confirmation (token_hash, subscription, created_at) VALUES ('t', 'nobody', 1)"
  change(`PRAGMA foreign_keys = OFF; ${orphan}`)
  expect(await maintenance.verify(NOW)).toMatchObject({
    ok: false,
    damaged: false,
    faults: ['confirmation: a row refers to a subscription that does not exist'],
  })
  change(`DELETE FROM confirmation WHERE token_hash = 't'`)
  const sound = { ok: true, damaged: false, checked: 1, faults: [], moreFaults: 0 }
  expect(await maintenance.verify(NOW)).toEqual(sound)
  expect(await maintenance.status()).toMatchObject({
    verifiedAt: NOW,
    counts: { subscription: 1, confirmation: 1 },
  })
})

test('verify finds a damaged page', async () => {
  const { maintenance, file } = await stored()
  await maintenance.close()
  const database = new Database(file, { readonly: true })
  // Pages of every table and index except SQLite's own list of them, without which no query works.
  const pages = database
    .prepare(`SELECT pageno FROM dbstat WHERE name <> 'sqlite_schema'`)
    .pluck()
    .all() as number[]
  database.close()
  const bytes = await readFile(file)
  for (const page of pages) bytes.fill(7, (page - 1) * 4096, page * 4096)
  await writeFile(file, bytes)
  const again = await openMaintenance({ kind: 'sqlite', file })
  expect(await again.verify(NOW)).toMatchObject({ ok: false, damaged: true })
  for (const refused of [() => again.backup(`${file}.zst`, Date.now()), () => again.status()])
    await expect(refused()).rejects.toThrow(
      `${file} is damaged: platformctl db verify says where, and platformctl db restore puts a backup in its place.`,
    )
  expect((await readdir(path.dirname(file))).filter((name) => name.includes('zst'))).toEqual([])
  await again.close()
})

test('a migration killed at any of its statements is whole or absent, and runs again', async () => {
  const folder = await emptyFolder()
  const file = path.join(folder, 'dies.sqlite')
  // The content of a sound store of each version.
  const sound = new Database(':memory:')
  const tablesOf = (database: Database.Database) =>
    Number(database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get())
  const whole = [0, ...SQLITE_STEPS.map((step) => tablesOf(sound.exec(step)))]
  // Before each statement the files are copied: what a process killed there would leave.
  let statements = 0
  const steps = SQLITE_STEPS.map((sql) =>
    statementsOf(sql)
      .map((statement) => `SELECT dies();${statement}`)
      .join(';\n'),
  )
  const database = connect({ file })
  database.function('dies', () => {
    statements += 1
    for (const end of ['', '-wal'])
      if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, at(statements, end))
    return 0
  })
  const at = (statement: number, end = '') => path.join(folder, `${statement}.sqlite${end}`)
  // The first step alone, because a new file would get all steps at once.
  await migrateFile(database, file, steps.slice(0, 1))
  await migrateFile(database, file, steps)
  database.close()
  for (let statement = 1; statement <= statements; statement += 1) {
    const left = new Database(at(statement))
    expect(tablesOf(left)).toBe(whole[Number(left.pragma('user_version', { simple: true }))])
    left.close()
    if (statement % 8 !== 1 && statement !== statements) continue
    const store = await openStore({ kind: 'sqlite', file: at(statement) })
    expect((await store.status()).version).toBe(SQLITE_STEPS.length)
    await store.close()
  }
})

test('the plan names the steps and changes nothing; migrating twice does nothing the second time', async () => {
  const file = path.join(await emptyFolder(), 'platform.sqlite')
  const maintenance = await openMaintenance({ kind: 'sqlite', file })
  onTestFinished(() => maintenance.close())
  const [first] = await maintenance.pending()
  expect(first?.version).toBe(1)
  expect(first?.statements).toContain('CREATE TABLE subscription')
  expect((await maintenance.status()).version).toBe(0)
  expect(await maintenance.verify(NOW)).toMatchObject({ ok: true, damaged: false, checked: 0 })
  expect(await maintenance.migrate()).toEqual({ from: 0, to: SQLITE_STEPS.length })
  expect(await maintenance.migrate()).toEqual({ from: SQLITE_STEPS.length, to: SQLITE_STEPS.length })
  expect(await maintenance.pending()).toEqual([])
})

test('a migration is refused while another process holds the lock', async () => {
  const file = path.join(await emptyFolder(), 'platform.sqlite')
  const maintenance = maintenanceOfSqlite(file, 10)
  const other = new Database(file)
  other.exec('BEGIN IMMEDIATE')
  await expect(maintenance.migrate()).rejects.toThrow(
    /by another process: try again when that has ended; nothing was changed/,
  )
  other.exec('ROLLBACK')
  expect(await maintenance.migrate()).toMatchObject({ to: SQLITE_STEPS.length })
  other.close()
  await maintenance.close()
})

test('after a rollback, the earlier build backs a newer store up, whose own build can restore that', async () => {
  const { maintenance, change, at, restore } = await stored()
  const newer = SQLITE_STEPS.length + 1
  change(`CREATE TABLE added_later (name TEXT); PRAGMA user_version = ${newer};
    UPDATE meta SET value = '${newer}:${SQLITE_STEPS.length}' WHERE name = 'readable_from'`)
  expect(await maintenance.backup(at('later.sqlite'), NOW)).toMatchObject({ version: newer })
  expect(await namesOf(at('later.sqlite'))).toEqual(['ada@example.com'])
  await expect(restore('later.sqlite')).rejects.toThrow(
    `was written by a newer platformctl (schema ${newer}, this build knows ${SQLITE_STEPS.length}): use that version.`,
  )
})

test('a build runs on a newer schema that says of itself that it can, and is refused any other', async () => {
  const { address, change, maintenance } = await stored()
  const newer = SQLITE_STEPS.length + 1
  change(`CREATE TABLE added_later (name TEXT); PRAGMA user_version = ${newer};
    UPDATE meta SET value = '${newer}:${SQLITE_STEPS.length}' WHERE name = 'readable_from'`)
  const store = await openStore(address)
  expect(await store.course.find('ada@example.com')).toMatchObject({ state: 'confirmed' })
  await store.close()
  expect(await maintenance.status()).toMatchObject({
    version: newer,
    latest: SQLITE_STEPS.length,
    readable: true,
  })
  expect(await maintenance.pending()).toEqual([])
  const refused = /written by a newer platformctl .*: run that version, or restore a backup/
  change(`UPDATE meta SET value = '${newer}:${newer}' WHERE name = 'readable_from'`)
  await expect(openStore(address)).rejects.toThrow(refused)
  await expect(maintenance.pending()).rejects.toThrow(refused)
  await expect(maintenance.verify(NOW)).rejects.toThrow(refused)
  expect(await maintenance.status()).toMatchObject({ readable: false })
  change(`DELETE FROM meta WHERE name = 'readable_from'`)
  await expect(openStore(address)).rejects.toThrow(refused)
  expect(await maintenance.status()).toMatchObject({ version: newer, readable: false })
})
