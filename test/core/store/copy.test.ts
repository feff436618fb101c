import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { SQLITE_STEPS, TABLES } from '../../../src/core/store/migrations.ts'
import { openAnalyticsStore, openStore } from '../../../src/core/store/open.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin } from '../../support/learning.ts'
import { postgresServer } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)

/** An SQLite store with a row in every table, and an empty database. */
async function stores() {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'platform.sqlite')
  const { course, close } = await openStore({ kind: 'sqlite', file })
  for (const name of ['ada', 'grace']) {
    await course.requestConfirmation({
      course: 'quantum',
      identity: name,
      address: `${name}@example.com`,
      id: name,
      tokenHash: name,
      now: NOW,
    })
    await course.confirm({ begin, tokenHash: name, now: NOW })
  }
  await close()
  const database = new Database(file)
  database.exec(`
    UPDATE subscription SET sent_days = '[1]', next_attempt_at = ${NOW + 86_400_000} WHERE id = 'ada';
    INSERT INTO suppression VALUES ('s', 1); INSERT OR IGNORE INTO handled_hour (hour) VALUES ('2026-11-21T04');
    INSERT INTO meta VALUES ('link_key', 'k'); INSERT INTO meta VALUES ('verified_at', '1'), ('backup_at', '1'), ('journal_owed', '1');
    INSERT INTO organisation VALUES ('o', 'Org', NULL); INSERT INTO organisation_admin VALUES ('o', 'ada');
    INSERT INTO organisation_invite VALUES ('i', 'o', 'x@example.com', 'https://x', NULL);
    INSERT INTO message VALUES ('m', 'confirmation', 'confirmation.m', 'ada', '{}', 1, 2, 3, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 'i', 'webhook');
    INSERT INTO login_request VALUES ('l', 'x@example.com', 'https://x', 5);
    INSERT INTO exam_attempt VALUES ('e', 'ada', 'Gates', 90, 'https://x', 7);
    INSERT INTO sent_mail (key, first_attempt_at) VALUES ('m', 1);
    INSERT INTO payment_event VALUES ('p', 't', 1, 2, 3);
    INSERT INTO course_plan VALUES ('pottery', 'v', '{}', 1); INSERT INTO course_text VALUES ('h', 'md', 'en', 'Clay'); INSERT INTO enrol_request VALUES ('order.1', 'ada', 1);
    INSERT INTO audit VALUES (1, 'a', 'erase', 'ops', 'box-1', 's', NULL);
    INSERT INTO feedback_event VALUES ('f', 1);
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
  const server = await postgresServer()
  const url = await server.createDatabase()
  const copy = async (...args: string[]) => {
    const { context, stdout, stderr } = testContext({ cwd })
    const code = await runProgram(['db', 'copy', '--data', '.', ...args], context)
    return { code, stdout: stdout(), stderr: stderr() }
  }
  /** From the database into a file. */
  const back = async (to: string, ...args: string[]) => {
    const { context, stdout, stderr } = testContext({ cwd, env: { STORE_URL: url } })
    const code = await runProgram(['db', 'copy', '--to', to, ...args], context)
    return { code, stdout: stdout(), stderr: stderr() }
  }
  return { file, url, copy, back, query: async (sql: string) => (await server.query(url, sql)).rows }
}

test('a store is copied into PostgreSQL with every row of every table, and works there', async () => {
  const { url, copy, query } = await stores()
  expect(await copy('--to', url)).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^copied: .*subscription 2.*\nverified; now set STORE_URL/),
  })
  for (const table of TABLES)
    expect(
      (await query(`SELECT count(*)::int AS count FROM platformctl.${table}`))[0]?.count,
      table,
    ).toBeGreaterThan(0)
  expect(await query(`SELECT sent_days FROM platformctl.subscription WHERE id = 'ada'`)).toEqual([
    { sent_days: [1] },
  ])
  expect(await query(`SELECT value FROM platformctl.meta WHERE name = 'link_key'`)).toEqual([{ value: 'k' }])
  // When it was verified, backed up and so on is said of that store alone.
  expect(await query(`SELECT name FROM platformctl.meta WHERE value = '1' OR name = 'journal_owed'`)).toEqual(
    [],
  )
  const { secret } = await import('../../../src/core/secret.ts')
  const store = await openStore({ kind: 'postgres', url: secret(url) })
  expect(await store.course.find('ada')).toMatchObject({ sentDays: [1], address: 'ada@example.com' })
  expect(await store.course.confirm({ begin, tokenHash: 'grace', now: NOW })).toBe('confirmed')
  await store.close()
})

test('a row whose list of days a hand has damaged is copied as it is, there and back', async () => {
  const { url, copy, back, file, query } = await stores()
  const database = new Database(file)
  database.exec(`UPDATE subscription SET sent_days = '[1,' WHERE id = 'grace'`)
  database.close()
  const asItWas = {
    code: 1,
    stdout: expect.stringMatching(
      /^copied: .*\n✖ subscription grace: .*\n✖ everything was copied, but some rows of the original are inconsistent/,
    ),
    stderr: '',
  }
  expect(await copy('--to', url)).toMatchObject(asItWas)
  expect(await query(`SELECT sent_days FROM platformctl.subscription WHERE id = 'grace'`)).toEqual([
    { sent_days: '[1,' },
  ])
  const returned = path.join(path.dirname(file), 'returned.sqlite')
  expect(await back(`sqlite:${returned}`)).toMatchObject(asItWas)
  const again = new Database(returned)
  expect(again.prepare(`SELECT sent_days FROM subscription WHERE id = 'grace'`).pluck().get()).toBe('[1,')
  again.close()
})

test.each([
  ['null', `sent_days = 'null'`],
  ['a nested list', `sent_days = '[[1]]'`],
  ['a list nested without end', `sent_days = '${'['.repeat(100_000)}'`],
  ['a NUL in a text', `problem_kind = 'parked', problem_since = 1, problem_reason = 'a' || char(0) || 'b'`],
  ['a NUL in a key', `id = 'gra' || char(0) || 'ce'`],
])('%s that an earlier build left is copied, there and back', async (_, changes) => {
  const { url, copy, back, file, query } = await stores()
  const database = new Database(file)
  database.pragma('foreign_keys = OFF')
  database.exec(
    `DELETE FROM confirmation; DELETE FROM subscription_event; UPDATE subscription SET ${changes} WHERE id = 'grace'`,
  )
  const days = () => query(`SELECT sent_days FROM platformctl.subscription WHERE identity = 'grace'`)
  const stored = database.prepare(`SELECT sent_days FROM subscription WHERE identity = 'grace'`).pluck().get()
  database.close()
  expect((await copy('--to', url)).stdout).toMatch(/^copied: .*subscription 2/)
  expect(await days()).toEqual([{ sent_days: stored === '[]' ? [] : stored }])
  expect(await copy('--to', url, '--verify')).toMatchObject({ code: 0 })
  const returned = path.join(path.dirname(file), 'returned.sqlite')
  expect((await back(`sqlite:${returned}`)).stdout).toMatch(/^copied: .*subscription 2/)
  const again = new Database(returned)
  expect(again.prepare(`SELECT sent_days FROM subscription WHERE identity = 'grace'`).pluck().get()).toBe(
    stored,
  )
  expect(
    again.prepare(`SELECT problem_reason FROM subscription WHERE identity = 'grace'`).pluck().get(),
  ).toBe(changes.includes('parked') ? 'a\ufffdb' : null)
  again.close()
})

test('a null of JSON in a database is a list that cannot be read, also in the file that it is copied into', async () => {
  const { url, copy, back, file, query } = await stores()
  await copy('--to', url)
  await query(`UPDATE platformctl.subscription SET sent_days = 'null' WHERE id = 'grace'`)
  const returned = path.join(path.dirname(file), 'returned.sqlite')
  expect((await back(`sqlite:${returned}`)).stdout).toMatch(/^copied: .*\n✖ subscription grace: /)
})

test('a copy of a damaged store names that file, and leaves the database as it was', async () => {
  const { url, copy, file } = await stores()
  const bytes = await readFile(file)
  await writeFile(file, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 7)]))
  expect(await copy('--to', url)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining(`${file} is damaged: platformctl db verify says where`),
  })
  await writeFile(file, bytes)
  expect(await copy('--to', url)).toMatchObject({ code: 0 })
})

test('a copy says that visitors’ events are not moved', async () => {
  const { url, copy, file } = await stores()
  const events = path.join(path.dirname(file), 'platform-analytics.sqlite')
  await (await openAnalyticsStore({ kind: 'sqlite', file }, { table: 'visits' })).close()
  expect(await copy('--to', url)).toMatchObject({
    code: 0,
    stderr: `not copied: the events of visitors, which stay in ${events}\n`,
  })
})

test('refuses a database that is not empty and leaves it unchanged', async () => {
  const { url, copy, query } = await stores()
  await copy('--to', url)
  expect(await copy('--to', url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is not empty \(subscription has rows\) and was left as it is/),
  })
  expect(await query('SELECT count(*)::int AS count FROM platformctl.subscription')).toEqual([{ count: 2 }])
})

test('does not copy a store that a daemon has open', async () => {
  const { url, copy, file, query } = await stores()
  const daemon = await openStore({ kind: 'sqlite', file })
  const refused = await copy('--to', url)
  await daemon.close()
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is open in another process: stop the daemon first; nothing was copied/),
  })
  expect(await query(`SELECT to_regclass('platformctl.subscription') IS NULL AS untouched`)).toEqual([
    { untouched: true },
  ])
  expect(await copy('--to', url)).toMatchObject({ code: 0 })
})

test('--resume finishes an interrupted move, and --verify reports differences', async () => {
  const { url, copy, query } = await stores()
  expect(await copy('--to', url, '--verify')).toMatchObject({ code: 1 })
  expect(await copy('--to', url, '--resume')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^copied/),
  })
  expect(await copy('--to', url, '--resume')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^every row of this store is in the other one/),
  })
  await query(`UPDATE platformctl.subscription SET failures = 3 WHERE id = 'ada'`)
  const differs = await copy('--to', url, '--verify')
  expect(differs).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the stores differ, and nothing was changed/),
  })
  expect(differs.stdout).toBe('✖ subscription: 2 rows here, 2 there, and they differ\n')
})

test('a copy that fails midway leaves nothing behind', async () => {
  const { url, copy, query, file } = await stores()
  const database = new Database(file)
  // The server holds to a constraint that this file was made to forget.
  database.exec(`PRAGMA ignore_check_constraints = ON; UPDATE exam_attempt SET score_percent = 300;`)
  database.close()
  expect(await copy('--to', url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /a row of exam_attempt does not fit the other store \(23514\): .*; nothing was copied/,
    ),
  })
  expect(await query('SELECT count(*)::int AS count FROM platformctl.subscription')).toEqual([{ count: 0 }])
})

test('an unreachable server exits with code 3, without repeating its password', async () => {
  const { copy } = await stores()
  const refused = await copy('--to', 'postgres://user:canary@127.0.0.1:1/none')
  expect(refused).toMatchObject({ code: 3, stderr: expect.stringMatching(/refused the connection/) })
  expect(refused.stderr).not.toContain('canary')
})

test('an address of another database is wrong usage, and is not repeated', async () => {
  const { copy } = await stores()
  const refused = await copy('--to', 'mysql://user:canary@host/x')
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--to is not the address of a PostgreSQL database/),
  })
  expect(refused.stderr).not.toContain('canary')
})

/** Every row of every table, as the file keeps it, but for what a store says of itself. */
function rowsOf(file: string) {
  const database = new Database(file, { readonly: true })
  const rows = TABLES.map((table) => [
    table,
    database
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .filter((row) => table !== 'meta' || (row as { name: string }).name === 'link_key'),
  ])
  database.close()
  return Object.fromEntries(rows)
}

test('a store comes back from PostgreSQL into a file with every row of every table, and works there', async () => {
  const { file, url, copy, back } = await stores()
  await copy('--to', url)
  const returned = `${file}.returned`
  expect(await back('sqlite:platform.sqlite.returned')).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^copied: .*subscription 2.*\nverified; now set STORE_URL/),
  })
  expect(rowsOf(returned)).toEqual(rowsOf(file))
  expect((await stat(returned)).mode & 0o777).toBe(0o600)
  expect(await back('sqlite:platform.sqlite.returned', '--verify')).toMatchObject({ code: 0 })
  expect(await back('sqlite:platform.sqlite.returned', '--resume')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^every row of this store is in the other one/),
  })
  const store = await openStore({ kind: 'sqlite', file: returned })
  expect(await store.course.confirm({ begin, tokenHash: 'grace', now: NOW })).toBe('confirmed')
  await store.close()
})

test('the way back into a file leaves an existing file as it is, and is refused while a daemon has the database', async () => {
  const { file, url, copy, back, query } = await stores()
  await copy('--to', url)
  const before = await readFile(file)
  expect(await back('sqlite:platform.sqlite')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${file} exists and was left as it is: move it away`),
  })
  expect(await readFile(file)).toEqual(before)
  const { secret } = await import('../../../src/core/secret.ts')
  const daemon = await openStore({ kind: 'postgres', url: secret(url) })
  await daemon.course.find('ada')
  expect(await back('sqlite:new.sqlite')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the database is in use by another process: stop the daemon/),
  })
  await daemon.close()
  // A column that the file cannot hold: nothing of the copy may stay.
  await query(`ALTER TABLE platformctl.pace ADD COLUMN later text`)
  expect(await back('sqlite:new.sqlite')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the two stores differ in pace \(later\): use one build for both/),
  })
  expect((await readdir(path.dirname(file))).filter((name) => name !== 'platform.sqlite')).toEqual([])
  expect(await back('sqlite:new.sqlite', '--verify')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/there is no file .*new\.sqlite: copy to it first/),
  })
  expect(await back('postgres://user:canary@host/other')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--to is not the address of a file/),
  })
})

test('addresses that unsubscribed or bounced while the store was in PostgreSQL stay out when an older backup of the file is restored', async () => {
  const { file, url, copy, back, query } = await stores()
  const { context } = testContext({ cwd: path.dirname(file) })
  expect(await runProgram(['db', 'backup', 'older.sqlite', '--data', '.'], context)).toBe(0)
  await copy('--to', url)
  await query(
    `UPDATE platformctl.subscription SET state = 'unsubscribed', unsubscribed_at = ${NOW + 5}, next_attempt_at = NULL WHERE id = 'grace'`,
  )
  await query(
    `INSERT INTO platformctl.mailbox (identity, cause, suppressed_at, source, reason) VALUES ('gone@example.com', 'hard-bounce', ${NOW + 6}, 'ses', '550')`,
  )
  await rename(file, `${file}.before`)
  expect(await back('sqlite:platform.sqlite')).toMatchObject({ code: 0 })
  const restored = testContext({ cwd: path.dirname(file) })
  expect(
    await runProgram(['db', 'restore', 'older.sqlite', '--data', '.', '--force'], restored.context),
  ).toBe(0)
  expect(restored.stdout()).toMatch(/because it happened after the backup: 1 unsubscribed, 1 suppressed/)
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
