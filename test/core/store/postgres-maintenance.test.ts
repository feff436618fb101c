import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../../src/core/durations.ts'
import { secret } from '../../../src/core/secret.ts'
import { POSTGRES_STEPS } from '../../../src/core/store/migrations.ts'
import { openMaintenance, openStore } from '../../../src/core/store/open.ts'
import { emptyFolder } from '../../support/folder.ts'
import { command } from '../../support/in-process.ts'
import { newDatabase, openTestStore } from '../../support/stores.ts'
import { subscribe } from '../../support/subscribers.ts'

const NOW = Date.UTC(2026, 10, 21)

async function cared() {
  const made = await newDatabase()
  const maintenance = await openMaintenance(made.address)
  onTestFinished(() => maintenance.close())
  return { ...made, maintenance }
}

test('a store on PostgreSQL is planned, migrated, described and verified, and its address shows no password', async () => {
  const { maintenance, address, query } = await cared()
  expect((await maintenance.pending())[0]?.statements).toContain('CREATE TABLE platformctl.subscription')
  expect(await maintenance.status()).toMatchObject({
    version: 0,
    bytes: 0,
    counts: {},
    verifiedAt: undefined,
  })
  await expect(maintenance.verify(NOW)).rejects.toThrow('holds no store')
  expect(await maintenance.migrate()).toEqual({ from: 0, to: POSTGRES_STEPS.length })
  expect(await maintenance.migrate()).toEqual({ from: POSTGRES_STEPS.length, to: POSTGRES_STEPS.length })
  expect(await maintenance.pending()).toEqual([])
  expect(await maintenance.verify(NOW)).toMatchObject({ ok: true, checked: 0, faults: [] })
  await subscribe(await openTestStore(address), 'ada', NOW)
  expect(await maintenance.verify(NOW)).toMatchObject({ ok: true, checked: 1 })
  const status = await maintenance.status()
  expect(status).toMatchObject({ kind: 'postgres', version: POSTGRES_STEPS.length, verifiedAt: NOW })
  expect(status.counts).toMatchObject({ subscription: 1, confirmation: 1 })
  expect(status.bytes).toBeGreaterThan(100_000)
  expect(status.location).toMatch(/^127\.0\.0\.1:\d+\/test_\d+$/)
  await query(`UPDATE platformctl.subscription SET sent_days = '[1,3]', next_attempt_at = ${NOW + DAY_MS}`)
  expect((await maintenance.verify(NOW)).faults[0]).toBe(
    'subscription ada: the days sent are not in order: 1, 3',
  )
})

test('on a server the command promises nothing about a file, and says when a person ended the course', async () => {
  const { url, address } = await cared()
  const store = await openTestStore(address)
  await subscribe(store, 'ada', NOW)
  const run = (...args: string[]) => command(args, { cwd: tmpdir(), env: { STORE_URL: url } })
  expect(await run('db', 'verify')).toMatchObject({
    exitCode: 0,
    stdout: '✔ 1 subscription is consistent',
  })
  expect((await run('course', 'show', 'ada@example.com')).stdout).not.toContain('unsubscribed')
  await store.course.unsubscribe({ id: 'ada', now: NOW + 1000 })
  expect((await run('course', 'show', 'ada@example.com')).stdout).toContain(
    'unsubscribed  2026-11-21T00:00:01.000Z',
  )
})

test('a newer schema on PostgreSQL is described as one that this build can run on or not, and only then opened', async () => {
  const { maintenance, address, query } = await cared()
  await maintenance.migrate()
  const newer = POSTGRES_STEPS.length + 1
  const says = (from: number) =>
    query(`UPDATE platformctl.schema_version SET version = ${newer};
      UPDATE platformctl.meta SET value = '${newer}:${from}' WHERE name = 'readable_from'`)
  await says(POSTGRES_STEPS.length)
  expect(await maintenance.status()).toMatchObject({ version: newer, readable: true })
  expect(await maintenance.pending()).toEqual([])
  await says(newer)
  expect(await maintenance.status()).toMatchObject({ version: newer, readable: false })
  for (const refused of [
    () => maintenance.pending(),
    () => maintenance.migrate(),
    () => maintenance.verify(NOW),
    () => openStore(address),
  ])
    await expect(refused()).rejects.toThrow(
      /was written by a newer platformctl \(schema \d+, this build knows \d+\): run that version, or restore a backup/,
    )
  expect(await maintenance.status()).toMatchObject({ version: newer })
})

test('a backup and a restore of PostgreSQL are left to its own tools, and a server that is not there is said in a sentence', async () => {
  const { maintenance, url } = await cared()
  await expect(maintenance.backup('/tmp/b.sqlite', Date.now())).rejects.toThrow(/pg_dump --format=custom/)
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'b.sqlite'), '')
  const restore = await command(['db', 'restore', 'b.sqlite'], { cwd, env: { STORE_URL: url } })
  expect(restore).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/pg_restore; this command .*An older dump forgets who unsubscribed/),
  })
  const gone = await openMaintenance({
    kind: 'postgres',
    url: secret('postgres://user:canary@127.0.0.1:1/none'),
  })
  onTestFinished(() => gone.close())
  await expect(gone.status()).rejects.toThrow(/refused the connection/)
  await expect(gone.status()).rejects.not.toThrow(/canary/)
})

test('commands refuse a database that holds no store, as they refuse a folder without one, and make none in it', async () => {
  const { url, query } = await cared()
  const cwd = await emptyFolder()
  for (const words of [
    'course erase ada@example.com --yes',
    'course status',
    'course export',
    'mail queue',
    'mail pause --reason wrong',
    'alert list',
    'email suppressions list',
    'dispatch --local --dry-run',
    'db verify',
    'db journal left.jsonl',
    'db copy --to sqlite:copy.sqlite',
  ]) {
    const refused = await command(words.split(' '), { cwd, env: { STORE_URL: url } })
    expect({ words, ...refused }).toEqual({
      words,
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining(
        'The PostgreSQL of STORE_URL holds no store: correct the name of the database',
      ),
    })
  }
  const made = await query("SELECT FROM pg_namespace WHERE nspname = 'platformctl'")
  expect(made.rowCount).toBe(0)
})
