import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { secret } from '../../../src/core/secret.ts'
import { POSTGRES_STEPS } from '../../../src/core/store/migrations.ts'
import { openMaintenance } from '../../../src/core/store/open.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'
import { begin } from '../../support/learning.ts'
import { openTestStore, postgresServer } from '../../support/stores.ts'

const NOW = Date.UTC(2026, 10, 21)

async function cared() {
  const server = await postgresServer()
  const url = await server.createDatabase()
  const address = { kind: 'postgres', url: secret(url) } as const
  const maintenance = await openMaintenance(address)
  onTestFinished(() => maintenance.close())
  return { url, maintenance, address, query: (sql: string) => server.query(url, sql) }
}

test('a store on PostgreSQL is planned, migrated, described and verified, and its address shows no password', async () => {
  const { maintenance, address } = await cared()
  expect((await maintenance.pending())[0]?.statements).toContain('CREATE TABLE platformctl.subscription')
  expect((await maintenance.status()).version).toBe(0)
  expect(await maintenance.migrate()).toEqual({ from: 0, to: POSTGRES_STEPS.length })
  expect(await maintenance.migrate()).toEqual({ from: POSTGRES_STEPS.length, to: POSTGRES_STEPS.length })
  expect(await maintenance.pending()).toEqual([])
  const { course } = await openTestStore(address)
  await course.requestConfirmation({
    course: 'quantum',
    identity: 'a',
    address: 'a@example.com',
    id: 'ada',
    tokenHash: 'h',
    now: NOW,
  })
  await course.confirm({ begin, tokenHash: 'h', now: NOW })
  expect(await maintenance.verify(NOW)).toMatchObject({ ok: true, checked: 1 })
  const status = await maintenance.status()
  expect(status).toMatchObject({ kind: 'postgres', version: POSTGRES_STEPS.length, verifiedAt: NOW })
  expect(status.counts).toMatchObject({ subscription: 1, confirmation: 1 })
  expect(status.location).toMatch(/^127\.0\.0\.1:\d+\/test_\d+$/)
})

test('on a server the command promises nothing about a file, and says when a person ended the course', async () => {
  const { url, address } = await cared()
  const { course } = await openTestStore(address)
  const ada = { identity: 'ada@example.com', address: 'ada@example.com', id: 'ada', tokenHash: 'h' }
  await course.requestConfirmation({ course: 'quantum', ...ada, now: NOW })
  await course.confirm({ begin, tokenHash: 'h', now: NOW })
  const run = async (...args: string[]) => {
    const { context, stdout } = testContext({ env: { STORE_URL: url } })
    return { code: await runProgram(args, context), stdout: stdout() }
  }
  expect(await run('db', 'verify')).toEqual({
    code: 0,
    stdout: '✔ 1 subscription is consistent\n',
  })
  expect((await run('course', 'show', ada.address)).stdout).not.toContain('unsubscribed')
  await course.unsubscribe({ id: 'ada', enrolment: 1, now: NOW + 1000 })
  expect((await run('course', 'show', ada.address)).stdout).toContain(
    'unsubscribed  2026-11-21T00:00:01.000Z',
  )
})

test('a newer schema on PostgreSQL is described as one that this build can run on or not, and only then planned', async () => {
  const { maintenance, query } = await cared()
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
  ])
    await expect(refused()).rejects.toThrow(/was written by a newer platformctl .*: run that version/)
})

test('a store on PostgreSQL is restored by its own tools, and the command says so with exit 1', async () => {
  const { url } = await cared()
  const { context, stderr } = testContext({ env: { STORE_URL: url }, cwd: await emptyFolder() })
  await writeFile(path.join(context.cwd, 'b.sqlite'), '')
  expect(await runProgram(['db', 'restore', 'b.sqlite'], context)).toBe(1)
  expect(stderr()).toMatch(/pg_restore; this command .*An older dump forgets who unsubscribed/)
})

test('verify names the rows on PostgreSQL that break a promise of the course', async () => {
  const { maintenance, address, query } = await cared()
  const { course } = await openTestStore(address)
  await course.requestConfirmation({
    course: 'quantum',
    identity: 'a',
    address: 'a@example.com',
    id: 'ada',
    tokenHash: 'h',
    now: NOW,
  })
  await course.confirm({ begin, tokenHash: 'h', now: NOW })
  await query(`UPDATE platformctl.subscription SET sent_days = '[1,3]', next_attempt_at = ${NOW + DAY_MS}`)
  expect((await maintenance.verify(NOW)).faults[0]).toBe(
    'subscription ada: the days sent are not in order: 1, 3',
  )
})

test('a backup of PostgreSQL is left to its own tools, and a server that is not there is said in a sentence', async () => {
  const { maintenance } = await cared()
  await expect(maintenance.backup('/tmp/b.sqlite', Date.now())).rejects.toThrow(/pg_dump --format=custom/)
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
  for (const command of [
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
    const { context, stdout, stderr } = testContext({ cwd: await emptyFolder(), env: { STORE_URL: url } })
    const code = await runProgram(command.split(' '), context)
    expect({ command, code, stdout: stdout() }).toEqual({ command, code: 2, stdout: '' })
    expect(stderr()).toContain('The PostgreSQL of STORE_URL holds no store: correct the name of the database')
  }
  const made = await query("SELECT FROM pg_namespace WHERE nspname = 'platformctl'")
  expect(made.rowCount).toBe(0)
})
