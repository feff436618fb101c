import { chown, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { secret } from '../../../src/core/secret.ts'
import { copyRows } from '../../../src/core/store/copy.ts'
import { POSTGRES_STEPS, SQLITE_STEPS, TABLES } from '../../../src/core/store/migrations.ts'
import { openAnalyticsStore, openStore } from '../../../src/core/store/open.ts'
import type { Steps } from '../../../src/core/store/sql.ts'
import { performer } from '../../../src/core/store/sqlite/sql.ts'
import { besides, waiting } from '../../support/beside.ts'
import { emptyFolder } from '../../support/folder.ts'
import { command } from '../../support/in-process.ts'
import { begin } from '../../support/learning.ts'
import { newDatabase, newFile } from '../../support/stores.ts'
import { subscribe } from '../../support/subscribers.ts'

const NOW = Date.UTC(2026, 10, 21)

/** An SQLite store with a row in every table, in one of them more than a page. */
async function makeFile(): Promise<Buffer> {
  const file = await newFile('platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  for (const name of ['ada', 'grace']) await subscribe(store, name, NOW)
  await store.close()
  const database = new Database(file)
  database.exec(`
    UPDATE subscription SET sent_days = '[1]', next_attempt_at = ${NOW + 86_400_000} WHERE id = 'ada';
    INSERT INTO suppression VALUES ('s', 1);
    INSERT OR IGNORE INTO handled_hour (hour) VALUES ('2026-11-21T04');
    INSERT INTO meta VALUES ('link_key', 'k'), ('address_key', 'a'), ('platform', 'Kiln School'), ('journal_anchor', 'n');
    INSERT INTO meta VALUES ('verified_at', '1'), ('backup_at', '1'), ('journal_owed', '1');
    INSERT INTO organisation VALUES ('o', 'Org', NULL); INSERT INTO organisation_admin VALUES ('o', 'ada');
    INSERT INTO organisation_invite VALUES ('i', 'o', 'x@example.com', 'https://x', NULL);
    INSERT INTO message VALUES ('m', 'confirmation', 'confirmation.m', 'ada', '{}', 1, 2, 3, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'i', 'webhook');
    INSERT INTO login_request VALUES ('l', 'x@example.com', 'https://x', 5);
    INSERT INTO exam_attempt VALUES ('e', 'ada', 'Gates', 90, 'https://x', 7);
    INSERT INTO sent_mail (key, first_attempt_at) VALUES ('m', 1);
    INSERT INTO payment_event VALUES ('p', 't', 1, 2, 3);
    INSERT INTO course_plan VALUES ('pottery', 'v', '{}', 1); INSERT INTO course_text VALUES ('h', 'md', 'en', 'Clay'); INSERT INTO enrol_request VALUES ('order.1', 'ada', 1);
    INSERT INTO audit VALUES (1, 'a', 'erase', 'ops', 'box-1', 's', NULL);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) INSERT INTO feedback_event SELECT 'f' || i, i FROM n;
    INSERT INTO mailbox (identity, soft_bounces, soft_since, soft_until) VALUES ('x@example.com', 1, 2, 3);
    INSERT INTO mail_minute VALUES (1, 'sent', 2);
    INSERT INTO mail_day VALUES ('2026-11-21', 'smtp', 'other', 'sent', 2);
    INSERT INTO breaker VALUES ('mail', 1, 'r', NULL);
    INSERT INTO pace VALUES ('mail', 1);
    INSERT INTO incident VALUES ('i', 'mail', 'web', NULL, '[]', 1, 2, 3, NULL, NULL, 'ada', 'removed');
    INSERT INTO alert_message VALUES ('i', 'opened', 'webhook', 'sent', 1, 2, 0, 0, NULL);
    INSERT INTO silence VALUES (1, 2, 'deploy', 'ci'); INSERT INTO heartbeat VALUES ('backup', 1, 2, 3, 4);
    INSERT INTO announcement VALUES ('a', 'Maintenance tonight.', 1, NULL, 'ops', '{"de":"Wartung heute."}');
    INSERT INTO status_update VALUES ('u', 'i', 4, 'Seen', 'identified', 'ops');
    INSERT INTO notice VALUES (1, 'i', 'opened', 2, '{"from":1}', 1);`)
  database.close()
  return readFile(file)
}

let whole: Promise<Buffer> | undefined
let copied: Promise<URL> | undefined

/** That store, and a database: empty, or with a copy of it. */
async function stores(isCopied = false) {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'platform.sqlite')
  whole ??= makeFile()
  await writeFile(file, await whole, { mode: 0o600 })
  if (isCopied)
    copied ??= stores().then(async ({ url, copy }) => {
      await copy('--to', url)
      return new URL(url)
    })
  const { url, address, query } = await newDatabase(isCopied ? await copied : undefined)
  return {
    file,
    url,
    address,
    copy: (...args: string[]) => command(['db', 'copy', '--data', '.', ...args], { cwd }),
    /** From the database into a file. */
    back: (to: string, ...args: string[]) =>
      command(['db', 'copy', '--to', to, ...args], { cwd, env: { STORE_URL: url } }),
    query: async (sql: string) => (await query(sql)).rows,
    change: (...steps: string[]) => {
      const database = new Database(file)
      for (const step of steps) database.exec(step)
      database.close()
    },
  }
}

const COPIED = {
  exitCode: 0,
  stderr: '',
  stdout: expect.stringMatching(/^copied: .*subscription 2.*\nverified; now set STORE_URL/),
}
const NOTHING_LEFT = {
  exitCode: 0,
  stdout: expect.stringMatching(/^every row of this store is in the other one/),
}
const confirms = async (address: Parameters<typeof openStore>[0]) => {
  const store = await openStore(address)
  expect(await store.course.confirm({ begin, tokenHash: `grace.${NOW}`, now: NOW })).toBe('confirmed')
  await store.close()
}

test('however large the mails that wait, no more than 16 MB of them is handed over at once', async () => {
  const file = await newFile('platform.sqlite')
  await (await openStore({ kind: 'sqlite', file })).close()
  const database = new Database(file)
  onTestFinished(() => void database.close())
  const perform = performer(database)
  let largest = 0
  function* watched<T>(steps: Steps<T>): Steps<T> {
    let next = steps.next()
    while (!next.done) {
      largest = Math.max(largest, JSON.stringify(next.value).length)
      next = steps.next(yield next.value)
    }
    return next.value
  }
  const mail = (_: unknown, n: number) => ({
    ...{ id: `m${n}`, stream: 'mail', key: `mail.${n}`, payload: 'x'.repeat(900_000) },
    ...{ createdAt: 1, expiresAt: 2, nextAttemptAt: 1, attempts: 0, fence: 0 },
  })
  const rows = (table: string) => (table === 'message' ? [Array.from({ length: 24 }, mail)] : [])
  const source = { rows, assertUnchanged: async () => {} }
  const counts = await copyRows(source, async (steps) => perform(watched(steps)))
  expect(counts.message).toBe(24)
  expect(largest).toBeLessThan(17_000_000)
})

test('a store is copied into PostgreSQL with every row of every table, and works there', async () => {
  const { url, address, copy, query } = await stores()
  expect(await copy('--to', url)).toMatchObject(COPIED)
  for (const table of TABLES)
    expect(
      (await query(`SELECT count(*)::int AS count FROM platformctl.${table}`))[0]?.count,
      table,
    ).toBeGreaterThan(0)
  expect(await query(`SELECT sent_days FROM platformctl.subscription WHERE id = 'ada'`)).toEqual([
    { sent_days: [1] },
  ])
  const known = await query(
    `SELECT value FROM platformctl.meta WHERE value IN ('k', 'a', 'n', 'Kiln School')`,
  )
  expect(known).toHaveLength(4)
  // When it was verified, backed up and so on is said of that store alone.
  expect(await query(`SELECT name FROM platformctl.meta WHERE value = '1' OR name = 'journal_owed'`)).toEqual(
    [],
  )
  const store = await openStore(address)
  expect(await store.course.find('ada@example.com')).toMatchObject({
    sentDays: [1],
    address: 'ada@example.com',
  })
  await store.close()
  await confirms(address)
})

test('a copy is closed to the builds that do not understand its rows, as the store was', async () => {
  const { copy, url, change, query } = await stores()
  // Some are also in a course of their own, which builds of between understand.
  change(`UPDATE subscription SET needs = 99, person = identity WHERE id = 'ada'`)
  expect(await copy('--to', url)).toMatchObject({ exitCode: 0 })
  const [row] = await query(`SELECT value FROM platformctl.meta WHERE name = 'readable_from'`)
  // The schema that knows lessons by name.
  expect(row).toEqual({ value: `${POSTGRES_STEPS.length}:21` })
})

test('rows that a hand has damaged, or an earlier build has left odd, are copied as they are, there and back', async () => {
  const { url, copy, back, file, query, change } = await stores()
  const odd: Readonly<Record<string, string>> = {
    'cut short': `sent_days = '[1,'`,
    null: `sent_days = 'null'`,
    'a nested list': `sent_days = '[[1]]'`,
    'a list nested without end': `sent_days = '${'['.repeat(100_000)}'`,
    'a NUL in a text': `problem_kind = 'parked', problem_since = 1, problem_reason = 'a' || char(0) || 'b'`,
    'a NUL in a key': `id = 'gra' || char(0) || 'ce'`,
    'a null of JSON': `sent_days = '[]'`,
  }
  change(
    ...Object.entries(odd).flatMap(([name, how]) => [
      `INSERT INTO subscription (id, identity, address, state, created_at, enrolment) VALUES ('${name}', '${name}', '${name}', 'confirmed', 1, 1)`,
      `UPDATE subscription SET ${how} WHERE identity = '${name}'`,
    ]),
  )
  const rows = (from: string) => {
    const database = new Database(from)
    const found = database.prepare('SELECT identity, sent_days, problem_reason FROM subscription')
    const all = found.all() as { identity: string; sent_days: string; problem_reason: string | null }[]
    database.close()
    return new Map(all.map((row) => [row.identity, row]))
  }
  const stored = rows(file)
  const asItWas = {
    exitCode: 1,
    stdout: expect.stringMatching(
      /^copied: .*subscription 9.*\n✖ subscription cut short: .*\n✖ everything was copied, but some rows of the original are inconsistent/s,
    ),
    stderr: '',
  }
  expect(await copy('--to', url)).toMatchObject(asItWas)
  for (const { identity, sent_days } of await query(
    'SELECT identity, sent_days FROM platformctl.subscription',
  )) {
    const was = stored.get(identity)?.sent_days
    expect(sent_days, identity).toEqual(/^\[\d?\]$/.test(was ?? '') ? JSON.parse(was ?? '') : was)
  }
  expect(await copy('--to', url, '--verify')).toMatchObject({ exitCode: 0 })
  await query(`UPDATE platformctl.subscription SET sent_days = 'null' WHERE id = 'a null of JSON'`)
  const returned = path.join(path.dirname(file), 'returned.sqlite')
  const again = await back(`sqlite:${returned}`)
  expect(again).toMatchObject(asItWas)
  expect(again.stdout).toContain('✖ subscription a null of JSON: ')
  for (const [identity, { sent_days, problem_reason }] of rows(returned)) {
    if (identity !== 'a null of JSON') expect(sent_days, identity).toBe(stored.get(identity)?.sent_days)
    expect(problem_reason).toBe(identity === 'a NUL in a text' ? 'a\ufffdb' : null)
  }
})

test('a copy that is refused says why and leaves both stores as they were, and the next one finds them so', async () => {
  const { url, copy, file, query, change } = await stores()
  const refusal = async (exitCode: number, sentence: string, to = url) => {
    const refused = await copy('--to', to)
    expect(refused).toEqual({ exitCode, stdout: '', stderr: expect.stringContaining(sentence) })
    expect(refused.stderr).not.toContain('canary')
  }
  await refusal(3, 'refused the connection', 'postgres://user:canary@127.0.0.1:1/none')
  await refusal(2, '--to is not the address of a PostgreSQL database', 'mysql://user:canary@host/x')
  const daemon = await openStore({ kind: 'sqlite', file })
  await refusal(1, 'is open in another process: stop the daemon first; nothing was copied')
  await daemon.close()
  const bytes = await readFile(file)
  await writeFile(file, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 7)]))
  await refusal(1, `${file} is damaged: platformctl db verify says where`)
  await writeFile(file, bytes)
  expect(await query(`SELECT to_regclass('platformctl.subscription') IS NULL AS untouched`)).toEqual([
    { untouched: true },
  ])
  // The server holds to a constraint that this file was made to forget.
  change(`PRAGMA ignore_check_constraints = ON; UPDATE exam_attempt SET score_percent = 300`)
  await refusal(1, 'a row of exam_attempt does not fit the other store (23514): ')
  const count = 'SELECT count(*)::int AS count FROM platformctl.subscription'
  expect(await query(count)).toEqual([{ count: 0 }])
  change('UPDATE exam_attempt SET score_percent = 90')
  await (await openAnalyticsStore({ kind: 'sqlite', file }, { table: 'visits' })).close()
  const events = path.join(path.dirname(file), 'platform-analytics.sqlite')
  expect(await copy('--to', url)).toMatchObject({
    exitCode: 0,
    stderr: `not copied: the events of visitors, which stay in ${events}`,
  })
  await refusal(1, 'is not empty (subscription has rows) and was left as it is')
  expect(await query(count)).toEqual([{ count: 2 }])
})

test('--resume finishes an interrupted move, and --verify reports differences', async () => {
  const { url, copy, query } = await stores()
  expect(await copy('--to', url, '--verify')).toMatchObject({ exitCode: 1 })
  expect(await copy('--to', url, '--resume')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^copied/),
  })
  expect(await copy('--to', url, '--resume')).toMatchObject(NOTHING_LEFT)
  await query(`UPDATE platformctl.subscription SET failures = 3 WHERE id = 'ada'`)
  await query(`INSERT INTO platformctl.login_request VALUES ('there', 'y@example.com', 'https://y', 5)`)
  expect(await copy('--to', url, '--verify')).toEqual({
    exitCode: 1,
    stdout: '✖ subscription: 2 rows here, 2 there, and they differ\n✖ login_request: 1 rows here, 2 there',
    stderr: expect.stringContaining('the stores differ, and nothing was changed'),
  })
})

/** Every row of every table, as the file keeps it, but for what a store says of itself. */
function rowsOf(file: string) {
  const database = new Database(file, { readonly: true })
  const rows = TABLES.map((table) => [
    table,
    database
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .filter((row) => table !== 'meta' || /^(?:k|a|n|Kiln School)$/.test((row as { value: string }).value)),
  ])
  database.close()
  return Object.fromEntries(rows)
}

test('a store comes back from PostgreSQL into a file with every row of every table, and works there', async () => {
  const { file, back, query } = await stores(true)
  const returned = `${file}.returned`
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(path.dirname(file), 65534, 65534)
  expect(await back('sqlite:platform.sqlite.returned')).toMatchObject(COPIED)
  expect(rowsOf(returned)).toEqual(rowsOf(file))
  // For the daemon's user alone, also where root copies.
  for (const made of [returned, path.join(path.dirname(file), 'platform.sqlite-journal.jsonl')])
    expect(await stat(made)).toMatchObject({ mode: 0o100600, ...(isRoot && { uid: 65534, gid: 65534 }) })
  expect(await back('sqlite:platform.sqlite.returned', '--verify')).toMatchObject({ exitCode: 0 })
  expect(await back('sqlite:platform.sqlite.returned', '--resume')).toMatchObject(NOTHING_LEFT)
  await query(`INSERT INTO platformctl.login_request VALUES ('here', 'y@example.com', 'https://y', 5)`)
  expect(await back('sqlite:platform.sqlite.returned', '--verify')).toMatchObject({
    exitCode: 1,
    stdout: '✖ login_request: 2 rows here, 1 there',
  })
  await confirms({ kind: 'sqlite', file: returned })
})

test('the way back into a file leaves an existing file as it is, and is refused while a daemon has the database', async () => {
  const { file, address, back, query } = await stores(true)
  const before = await readFile(file)
  expect(await back('sqlite:platform.sqlite')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(`${file} exists and was left as it is: move it away`),
  })
  expect(await readFile(file)).toEqual(before)
  // The log of a store that was moved away would be read into the copy.
  const log = path.join(path.dirname(file), 'new.sqlite-wal')
  await writeFile(log, '')
  expect(await back('sqlite:new.sqlite')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(`${log} exists and was left as it is`),
  })
  await rm(log)
  const daemon = await openStore(address)
  await daemon.course.find('nobody')
  expect(await back('sqlite:new.sqlite')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/the database is in use by another process: stop the daemon/),
  })
  await daemon.close()
  // A column that the file cannot hold: nothing of the copy may stay.
  await query(`ALTER TABLE platformctl.pace ADD COLUMN later text`)
  expect(await back('sqlite:new.sqlite')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/the two stores differ in pace \(later\): use one build for both/),
  })
  expect((await readdir(path.dirname(file))).filter((name) => name !== 'platform.sqlite')).toEqual([])
  expect(await back('sqlite:new.sqlite', '--verify')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/there is no file .*new\.sqlite: copy to it first/),
  })
  expect(await back('postgres://user:canary@host/other')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/--to is not the address of a file/),
  })
})

test('a daemon is seen also where STORE_URL gives its connections a name of its own', async () => {
  const { url } = await newDatabase('a store')
  const named = `${url}?application_name=web`
  const daemon = await openStore({ kind: 'postgres', url: secret(named) })
  onTestFinished(() => daemon.close())
  await daemon.ping()
  const cwd = path.dirname(await newFile())
  const refused = await command(['db', 'copy', '--to', 'sqlite:new.sqlite'], {
    cwd,
    env: { STORE_URL: named },
  })
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/the database is in use/) })
  expect(await readdir(cwd)).not.toContain('new.sqlite')
})

test('addresses that unsubscribed or bounced while the store was in PostgreSQL stay out when an older backup of the file is restored', async () => {
  const { file, back, query } = await stores(true)
  const db = (...args: string[]) => command(['db', ...args, '--data', '.'], { cwd: path.dirname(file) })
  expect(await db('backup', 'older.sqlite')).toMatchObject({ exitCode: 0 })
  await query(
    `UPDATE platformctl.subscription SET state = 'unsubscribed', unsubscribed_at = ${NOW + 5}, next_attempt_at = NULL WHERE id = 'grace'`,
  )
  await query(
    `INSERT INTO platformctl.mailbox (identity, cause, suppressed_at, source, reason) VALUES ('gone@example.com', 'hard-bounce', ${NOW + 6}, 'ses', '550')`,
  )
  await rename(file, `${file}.before`)
  expect(await back('sqlite:platform.sqlite')).toMatchObject({ exitCode: 0 })
  expect(await db('restore', 'older.sqlite', '--force')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('because it happened after the backup: 1 unsubscribed, 1 suppressed'),
  })
})

/** A program that waits for the file, as a command of a cron job or of a mail server's pipe does, and then writes. */
const LATE = `import Database from 'better-sqlite3'
  const database = new Database(process.argv.at(-1), { timeout: 60000 })
  process.stdout.write('waits')
  database.exec("UPDATE subscription SET failures = failures + 1 WHERE id = 'ada'")`

/** Runs a copy while such a program waits for the file, and holds the copy up until it does. */
async function withLateWriter({ url, file, copy }: Awaited<ReturnType<typeof stores>>, ...args: string[]) {
  const [holder, tester] = [await besides(url), await besides(url)]
  await holder.query(`BEGIN; LOCK TABLE ${TABLES.at(-1)} IN ACCESS EXCLUSIVE MODE`)
  const copying = copy('--to', url, ...args)
  await waiting(tester)
  const late = execa(process.execPath, ['--input-type=module', '--eval', LATE, file])
  await new Promise((resolve) => late.stdout.once('data', resolve))
  await holder.query('ROLLBACK')
  const copied = await copying
  expect((await late).exitCode).toBe(0)
  return copied
}

const OPENED = {
  exitCode: 1,
  stdout: '',
  stderr: expect.stringMatching(
    /platform\.sqlite was opened by another process meanwhile, which may have changed it: stop that process, then copy again to an empty store/,
  ),
}

test('a change that waited for the file while it was copied or compared is not lost: the copy is refused, and nothing of it is left', async () => {
  const it = await stores()
  await (await openStore(it.address)).close()
  expect(await withLateWriter(it)).toEqual(OPENED)
  expect(await it.query('SELECT id FROM platformctl.subscription')).toEqual([])
  expect(await it.copy('--to', it.url)).toMatchObject(COPIED)
  const failures = `SELECT failures FROM platformctl.subscription WHERE id = 'ada'`
  expect(await it.query(failures)).toEqual([{ failures: 1 }])
  for (const how of ['--verify', '--resume']) expect(await withLateWriter(it, how)).toEqual(OPENED)
})

/** Waits until a copy has locked the tables, and then for its lock. */
const LATE_SQL = `DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareLock' AND granted AND relation = 'platformctl.subscription'::regclass)
      LOOP PERFORM pg_sleep(0.001); END LOOP;
    UPDATE platformctl.subscription SET failures = failures + 1 WHERE id = 'ada';
  END $$`

test('a change that waits for the database while it is copied or compared is not lost: the copy is refused, and no file is left', async () => {
  const { file, url, back } = await stores(true)
  const late = await besides(url)
  const withLate = async (...args: string[]) => {
    const writing = late.query(LATE_SQL)
    const copied = await back('sqlite:new.sqlite', ...args)
    await writing
    return copied
  }
  const refused = {
    exitCode: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /the database is in use by another process: stop .*; then copy again to an empty store/,
    ),
  }
  expect(await withLate()).toEqual(refused)
  expect(await readdir(path.dirname(file))).toEqual(['platform.sqlite'])
  expect(await back('sqlite:new.sqlite')).toMatchObject(COPIED)
  expect(rowsOf(path.join(path.dirname(file), 'new.sqlite')).subscription).toContainEqual(
    expect.objectContaining({ id: 'ada', failures: 1 }),
  )
  expect(await withLate('--verify')).toEqual(refused)
})

test('every table of the store is one that a copy takes', () => {
  const database = new Database(':memory:')
  for (const step of SQLITE_STEPS) database.exec(step)
  const tables = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .pluck()
    .all()
  expect([...TABLES].sort()).toEqual(tables.sort())
})
