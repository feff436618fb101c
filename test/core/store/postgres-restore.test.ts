import { readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PROGRAM } from '../../../src/core/audit.ts'
import { suppressionHash } from '../../../src/core/course/links.ts'
import { readPeople } from '../../../src/core/course/people.ts'
import { HOUR_MS } from '../../../src/core/durations.ts'
import { suppressionChange } from '../../../src/core/mail/feedback/store.ts'
import { secret } from '../../../src/core/secret.ts'
import { openMaintenance, openStore } from '../../../src/core/store/open.ts'
import { courseWith, START } from '../../support/course.ts'
import { dumpsOf } from '../../support/dumps.ts'
import { emptyFolder } from '../../support/folder.ts'
import { command } from '../../support/in-process.ts'
import { incidentWith, openIncident } from '../../support/incidents.ts'
import { KEY, NOW } from '../../support/restoring.ts'
import { isErased, newDatabase } from '../../support/stores.ts'
import { audited, erasureOf, subscribe } from '../../support/subscribers.ts'

const EVERYBODY = ['ada', 'grace', 'joan', 'mary', 'erin', 'rose']
const JOAN = suppressionHash(KEY, 'joan@example.com')

/** A store on a server, a dump of it, and what happened afterwards. */
async function makeDumped(): Promise<URL> {
  const { address, url, query } = await newDatabase('a store')
  const sql = (...statements: string[]) => query(statements.join(';'))
  const store = await openStore(address)
  const { course } = store
  await store.getOrCreate('address_key', () => KEY)
  for (const name of EVERYBODY) await subscribe(store, name, NOW)
  await course.unsubscribe({ id: 'mary', now: NOW })
  await course.unsubscribe({ id: 'rose', now: NOW })
  await sql(
    `INSERT INTO platformctl.login_request VALUES ('l', 'joan@example.com', 'https://x', 5)`,
    `INSERT INTO platformctl.organisation VALUES ('o', 'Org')`,
    `INSERT INTO platformctl.organisation_invite VALUES ('i', 'o', 'Joan@Example.com', 'https://x')`,
  )
  const hold = { streams: ['mail'], reason: 'wrong texts' } as const
  await store.sending.pause({ ...hold, now: NOW, audit: audited('pause', NOW) })
  await dumpsOf(sql).dump('dump')
  await store.sending.resume({ ...hold, now: NOW + 1, audit: audited('resume', NOW + 1) })
  await course.claimDue({ now: NOW, limit: 1, retries: 1, leaseMs: 60_000, call: 'c' })
  await course.unsubscribe({ id: 'ada', now: NOW + 1 })
  // Left, came back under a new enrolment, and left again.
  await course.unsubscribe({ id: 'erin', now: NOW + 1 })
  await subscribe(store, 'erin', NOW, { tokenHash: 'erin again' })
  await course.unsubscribe({ id: 'erin', now: NOW + 2 })
  await course.undoUnsubscribe({ id: 'rose', now: NOW + 2 })
  await course.erase({ ...erasureOf('joan', JOAN, NOW + 1), audit: audited('erase', NOW + 1) })
  await openIncident(store.incidents, incidentWith({ openedAt: NOW + 1 }))
  const suppression = { cause: 'complaint', at: NOW + 1, source: 'ses', reason: 'spam' } as const
  await store.feedback.apply([suppressionChange('grace@example.com', suppression, () => [])], NOW + 1)
  const audit = audited('pause', NOW + 1)
  await store.sending.pause({ streams: ['notice'], reason: 'wrong texts', now: NOW + 1, audit })
  await store.sentMail.begin({ key: 'welcome', now: NOW + 1, recipient: 'r', caps: [], content: 'c' })
  await store.sentMail.recordSent({ key: 'welcome', id: 'sent', now: NOW + 1 })
  await store.close()
  return new URL(url)
}

let made: Promise<URL> | undefined

/** A copy of that for one test. */
async function dumped() {
  made ??= makeDumped()
  const { address, url, query, administer, name } = await newDatabase(await made)
  /** By one connection, however many statements. */
  const sql = (...statements: string[]) => query(statements.join(';'))
  const open = () => openStore(address)
  const dumps = dumpsOf(sql)
  /** Puts the dump in the place of the store; `kept` is the schema that holds the replaced one. */
  const restore = async (kept?: string) => {
    if (kept !== undefined) await dumps.dump(kept)
    await dumps.restore('dump')
  }
  const folder = await emptyFolder()
  const db = (...args: string[]) => command(['db', ...args], { cwd: folder, env: { STORE_URL: url } })
  const states = async () => {
    const again = await open()
    const found = await Promise.all(EVERYBODY.map((name) => again.course.find(`${name}@example.com`)))
    const claims = await again.course.claimDue({ now: NOW + 9, limit: 99, retries: 9, leaseMs: 1, call: 'd' })
    const left = await isErased(again, JOAN)
    const held = await again.sending.holds()
    const audit = (await again.audit.list(10)).map(({ action }) => action)
    await again.close()
    return {
      states: found.map((one) => one?.state),
      mailed: claims.map((one) => one.id),
      left,
      audit,
      held,
    }
  }
  /** Another database with the store as it is; gives its address. */
  const cloned = async () => {
    await administer(`CREATE DATABASE ${name}_before TEMPLATE ${name}`)
    return `${url}_before`
  }
  return { url, sql, open, restore, cloned, db, states, folder }
}

const OUT = ['unsubscribed', 'unsubscribed', undefined, 'unsubscribed', 'unsubscribed', 'confirmed']

test('after a restore into a database without a store, the command says so, as others do', async () => {
  const { url } = await newDatabase()
  const run = { cwd: await emptyFolder(), env: { STORE_URL: url } }
  expect(await command(['db', 'after-restore', '--without-journal'], run)).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('holds no store'),
  })
})

test('after an older dump was restored into PostgreSQL, nobody who left since the dump is mailed', async () => {
  const it = await dumped()
  await it.sql(
    `UPDATE platformctl.subscription SET sent_days = '[1, 2]', sent_lessons = NULL WHERE id IN ('rose', 'mary')`,
  )
  await it.restore('platformctl_before')
  const refused = await it.db('after-restore')
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toMatch(
    /ends at 2026-11-21T00:00:00\.000Z, and neither --from nor --journal was given: .* would be mailed again/,
  )
  await writeFile(path.join(it.folder, 'other.jsonl'), '')
  expect(
    await it.db('after-restore', '--from', 'platformctl_before', '--journal', 'other.jsonl'),
  ).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('other.jsonl is not the journal of') })
  for (let twice = 0; twice < 2; twice += 1) {
    const done = await it.db('after-restore', '--from', 'platformctl_before')
    expect(done).toMatchObject({ exitCode: 0, stderr: '' })
    expect(done.stdout).toMatch(
      twice === 0
        ? /happened after the backup: 2 unsubscribed, 1 subscribed again, 1 erased, 1 suppressed, 1 paused, 1 resumed/
        : /the journal has no changes after the backup/,
    )
    // Of those who left, nothing is sent again.
    expect(done.stdout).toContain(
      '2 lessons sent after the backup will be sent again: use course resolve SUBSCRIPTION sent to prevent it',
    )
    expect(await it.states()).toMatchObject({
      states: OUT,
      left: true,
      audit: expect.arrayContaining(['erase', 'restore']),
      held: [{ stream: 'notice', at: NOW + 1, reason: 'wrong texts' }],
    })
    for (const table of ['login_request', 'organisation_invite'])
      expect((await it.sql(`SELECT id FROM platformctl.${table}`)).rows).toEqual([])
    // What an earlier run took over has gone on since.
    const incidents = await it.sql('SELECT closed_at FROM platformctl.incident')
    expect(incidents.rows).toEqual([{ closed_at: twice === 0 ? null : '5' }])
    await it.sql('UPDATE platformctl.incident SET closed_at = 5')
    expect((await it.sql('SELECT sent_id FROM platformctl.sent_mail')).rows).toEqual([{ sent_id: 'sent' }])
  }
  const maintenance = await openMaintenance({ kind: 'postgres', url: secret(it.url) })
  onTestFinished(() => maintenance.close())
  expect(await maintenance.verify(NOW + 10)).toMatchObject({ ok: true, checked: 5 })
}, 60_000)

test('a restore into a new database takes what happened since from the old one, and only while no process uses the new one', async () => {
  const it = await dumped()
  await it.sql(
    `UPDATE platformctl.subscription SET sent_days = '[1, 2]', sent_lessons = NULL WHERE id = 'rose'`,
  )
  const before = await it.cloned()
  await it.restore()
  const daemon = await it.open()
  await daemon.ping()
  expect(await it.db('after-restore', '--from', before)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('the database is in use by another process'),
  })
  await daemon.close()
  const { stdout } = await it.db('after-restore', '--from', before)
  expect(stdout).toMatch(
    /happened after the backup: 2 unsubscribed, [\s\S]*^2 lessons sent after the backup/m,
  )
  expect((await it.states()).states).toEqual(OUT)
  const told = await it.sql('SELECT closed_at, sent_id FROM platformctl.incident, platformctl.sent_mail')
  expect(told.rows).toEqual([{ closed_at: null, sent_id: 'sent' }])
}, 60_000)

test('a replaced store with a view in the place of a table is not read, because its functions would run here', async () => {
  const it = await dumped()
  await it.restore('platformctl_before')
  await it.sql(
    'ALTER TABLE platformctl_before.suppression RENAME TO other',
    'CREATE TABLE public.ran ()',
    `CREATE FUNCTION platformctl_before.f() RETURNS SETOF platformctl_before.other LANGUAGE plpgsql AS 'BEGIN DROP TABLE public.ran; RETURN; END'`,
    'CREATE VIEW platformctl_before.suppression AS SELECT * FROM platformctl_before.f()',
  )
  const { exitCode, stderr } = await it.db('after-restore', '--from', 'platformctl_before')
  expect(exitCode).toBe(1)
  expect(stderr).toContain('platformctl_before.suppression is not the table that platformctl made')
  await it.sql('DROP TABLE public.ran')
})

test('the restored store itself is not taken for the one that it replaced, nor a fault of that one for its own', async () => {
  const it = await dumped()
  await it.restore('platformctl_before')
  const refused = async (from: string) => {
    const { exitCode, stderr } = await it.db('after-restore', '--from', from)
    return `${exitCode} ${stderr}`
  }
  for (const itself of ['platformctl', it.url])
    expect(await refused(itself)).toMatch(/^1 .*--from names the restored store itself/)
  const elsewhere = new URL(it.url)
  elsewhere.pathname = '/nowhere'
  expect(await refused(elsewhere.href)).toMatch(
    /^3 .*The PostgreSQL of --from has no such database: create it, or correct the name in --from/,
  )
}, 60_000)

test('people who left are kept out also where another build made the replaced store', async () => {
  for (const change of ['DROP TABLE {}.status_update', 'ALTER TABLE {}.message ADD COLUMN later text']) {
    const it = await dumped()
    await it.sql(
      `INSERT INTO platformctl.message (id, stream, key, payload, created_at, expires_at, next_attempt_at) VALUES ('m', 'mail', 'm', '{}', 1, 2, 3)`,
    )
    await it.restore('platformctl_before')
    await it.sql(change.replace('{}', 'platformctl_before'))
    expect(await it.db('after-restore', '--from', 'platformctl_before')).toMatchObject({ exitCode: 0 })
    expect((await it.states()).states).toEqual(OUT)
  }
}, 60_000)

test('a journal written before the database was lost restores the same', async () => {
  const it = await dumped()
  const journal = path.join(it.folder, 'journal.jsonl')
  expect(await it.db('journal', 'journal.jsonl')).toMatchObject({ exitCode: 0 })
  expect(await readFile(journal, 'utf8')).not.toContain('joan')
  // It names suppressed addresses.
  expect((await stat(journal)).mode & 0o777).toBe(0o600)
  await it.restore()
  for (let twice = 0; twice < 2; twice += 1) {
    const done = await it.db('after-restore', '--journal', 'journal.jsonl')
    expect(done).toMatchObject({ exitCode: 0 })
    expect(done.stdout).toMatch(
      /no earlier store could be read: what was sent after the backup is sent again/,
    )
    expect(done.stdout).toMatch(/^changes up to \d{4}-.*Z are covered; later ones are lost$/m)
  }
  expect(await it.states()).toMatchObject({
    states: OUT,
    mailed: ['rose'],
    left: true,
    held: [{ stream: 'notice' }],
  })
}, 60_000)

test('a journal covers a restored database only if it is of that store, whole and newer, and giving up is said with its time', async () => {
  const it = await dumped()
  await it.db('journal', 'journal.jsonl')
  const whole = await readFile(path.join(it.folder, 'journal.jsonl'), 'utf8')
  /** As builds wrote it that did not number what they export. */
  const closing = (at: number) => whole.replace(/("what":"anchor","at":)\d+(.*),"number":.*}/, `$1${at}$2}`)
  const stranger = await dumped()
  await stranger.sql(`UPDATE platformctl.meta SET value = 'of another store' WHERE name = 'address_key'`)
  await stranger.db('journal', 'journal.jsonl')
  // A dump from before the first journal has no anchor of it; later ones have.
  for (const anchored of [false, true]) {
    if (anchored)
      await it.sql(`INSERT INTO dump.meta SELECT * FROM platformctl.meta WHERE name = 'journal_anchor'`)
    await it.restore()
    for (const [text, why] of [
      ['', 'is not the journal of this store'],
      ['\n{"what":"anchor","at":1,"id":"another"}\n', 'is not the journal of this store'],
      [
        await readFile(path.join(stranger.folder, 'journal.jsonl'), 'utf8'),
        'is not the journal of this store',
      ],
      [closing(NOW - 1), 'other.jsonl is older'],
      [closing(Date.UTC(2100)), 'other.jsonl is older'],
      [whole.replace('"unsubscribed"', '"of a newer build"'), '1 line of the journal cannot be read'],
    ] as const) {
      await writeFile(path.join(it.folder, 'other.jsonl'), text)
      const refused = await it.db('after-restore', '--journal', 'other.jsonl')
      expect([refused.exitCode, refused.stdout, refused.stderr]).toEqual([
        1,
        '',
        expect.stringContaining(why),
      ])
    }
    expect((await it.states()).states).toEqual([
      ...EVERYBODY.slice(0, 3).map(() => 'confirmed'),
      'unsubscribed',
      'confirmed',
      'unsubscribed',
    ])
  }
  expect((await it.db('after-restore', '--without-journal')).stdout).toMatch(
    /no journal covers the time since 2026-11-21T00:00:00\.000Z/,
  )
}, 60_000)

test('a restored database does not end later because somebody was imported whose next lesson is weeks away', async () => {
  const it = await courseWith(0, { kind: 'postgres' })
  const { courses } = it.course
  const text = 'address,consent_at,consent_how,next_at\nada@example.com,2026-01-02,form,2026-04-20\n'
  const { people } = readPeople(text, { courses, now: START })
  const imports = it.course.admit(people, { dryRun: false, file: 'people.csv' }, PROGRAM)
  for await (const admitted of imports) expect(admitted).toEqual([{ line: 2, became: 'imported' }])
  await it.store.close()
  const url = it.address?.kind === 'postgres' ? it.address.url.reveal() : ''
  const args = ['db', 'after-restore']
  expect(await command(args, { cwd: await emptyFolder(), env: { STORE_URL: url } })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('the restored database ends at 2026-03-28T00:00:00.000Z'),
  })
})

test('db after-restore ends who left also where a run before it ended in the middle', async () => {
  const { address, url, query } = await newDatabase('a store')
  const dumps = dumpsOf((...statements: string[]) => query(statements.join(';')))
  const store = await openStore(address)
  await store.getOrCreate('address_key', () => KEY)
  await subscribe(store, 'ada', NOW)
  await dumps.dump('nightly')
  // Through with the course, begun again, and left.
  await query('UPDATE platformctl.subscription SET lessons = 0')
  await subscribe(store, 'ada', NOW + 2 * HOUR_MS)
  await store.course.unsubscribe({ id: 'ada', now: NOW + 3 * HOUR_MS })
  await store.close()
  await dumps.dump('replaced')
  await dumps.restore('nightly')
  await query(`CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gone' USING ERRCODE = '57P01'; END $$;
    CREATE TRIGGER gone BEFORE UPDATE ON platformctl.subscription FOR EACH ROW EXECUTE FUNCTION gone()`)
  const cwd = await emptyFolder()
  const again = () => command(['db', 'after-restore', '--from', 'replaced'], { cwd, env: { STORE_URL: url } })
  expect((await again()).exitCode).not.toBe(0)
  await query('DROP TRIGGER gone ON platformctl.subscription')
  expect((await again()).exitCode).toBe(0)
  const restored = await openStore(address)
  onTestFinished(() => restored.close())
  expect(await restored.course.findById('ada')).toMatchObject({ state: 'unsubscribed' })
})

test('a second db after-restore changes nothing that people decided since the first', async () => {
  const { address, url, query } = await newDatabase('a store')
  const dumps = dumpsOf((...statements: string[]) => query(statements.join(';')))
  const cwd = await emptyFolder()
  const again = () => command(['db', 'after-restore', '--from', 'replaced'], { cwd, env: { STORE_URL: url } })
  const store = await openStore(address)
  await store.getOrCreate('address_key', () => KEY)
  for (const name of ['ada', 'joan']) await subscribe(store, name, NOW)
  await dumps.dump('nightly')
  for (const id of ['ada', 'joan']) await store.course.unsubscribe({ id, now: NOW + HOUR_MS })
  await store.course.undoUnsubscribe({ id: 'ada', now: NOW + 2 * HOUR_MS })
  await store.close()
  await dumps.dump('replaced')
  await dumps.restore('nightly')
  expect((await again()).exitCode).toBe(0)
  const first = await openStore(address)
  await first.course.unsubscribe({ id: 'ada', now: NOW + 3 * HOUR_MS })
  await first.course.undoUnsubscribe({ id: 'joan', now: NOW + 3 * HOUR_MS })
  await first.close()
  expect((await again()).exitCode).toBe(0)
  const second = await openStore(address)
  onTestFinished(() => second.close())
  expect(await second.course.findById('ada')).toMatchObject({ state: 'unsubscribed' })
  expect(await second.course.findById('joan')).toMatchObject({ state: 'confirmed' })
})
