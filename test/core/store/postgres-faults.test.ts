import { expect, onTestFinished, test } from 'vitest'
import { storeFault } from '../../../src/core/errors.ts'
import { secret } from '../../../src/core/secret.ts'
import { openStore, readSchema } from '../../../src/core/store/open.ts'
import { createPool, transaction } from '../../../src/core/store/postgres/connection.ts'
import { migrate } from '../../../src/core/store/postgres/sql.ts'
import { blackhole } from '../../support/blackhole.ts'
import { databasesOn, startPostgres } from '../../support/postgres.ts'
import { relayTo } from '../../support/relay.ts'
import { newDatabase, openTestStore, postgresServer } from '../../support/stores.ts'

const LIMIT_MS = 200

/** The same database by another way: `postgres://…@127.0.0.1:1,127.0.0.1:2/database`. */
const by = (url: string, ...ports: number[]) =>
  url.replace(/127\.0\.0\.1:\d+/, ports.map((port) => `127.0.0.1:${port}`).join(','))

function poolOf(url: string, size = 4, limitMs = LIMIT_MS) {
  const pool = createPool({ url: secret(url), size, limitMs, connectMs: 1000 })
  onTestFinished(() => pool.end())
  return pool
}

test('connections that go silent cost one time limit, and are replaced by new ones', async () => {
  const { url, port } = await newDatabase()
  const relay = await relayTo(port)
  const pool = poolOf(by(url, relay.port))
  const some = () => Promise.allSettled(Array.from({ length: 4 }, () => pool.query('SELECT pg_sleep(0.01)')))
  await some()
  expect(relay.open()).toBe(4)
  relay.silence('present')
  await expect(pool.query('SELECT 1')).rejects.toThrow('the server did not answer in time')
  expect((await some()).map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'))
  // Broken connections are closed without a goodbye.
  await expect.poll(() => relay.open()).toBeLessThanOrEqual(4)
})

test('connections that are reset while they are being closed are no fault of the process', async () => {
  const { url, port } = await newDatabase()
  const relay = await relayTo(port)
  const pool = poolOf(by(url, relay.port))
  await Promise.all([1, 2, 3, 4].map(() => pool.query('SELECT pg_sleep(0.05)')))
  relay.silence('present')
  await expect(pool.query('SELECT 1')).rejects.toThrow('the server did not answer in time')
  // They have said goodbye and wait for an answer; an unhandled rejection would fail this run.
  await expect.poll(() => relay.open(), { interval: 5 }).toBe(0)
  relay.reset()
  expect((await pool.query('SELECT 1')).rowCount).toBe(1)
})

test('a transaction whose connection goes silent between two statements ends in time, and so does closing the pool', async () => {
  const { url, port } = await newDatabase()
  const relay = await relayTo(port)
  const pool = poolOf(by(url, relay.port), 1)
  const cut = transaction(pool, async (on) => {
    await on.query('SELECT 1')
    relay.silence('present')
    await on.query('SELECT 2')
  })
  await expect(cut).rejects.toThrow('the server did not answer in time')
  expect((await pool.query('SELECT 1')).rowCount).toBe(1)
  relay.silence('all')
  await pool.end()
  await expect.poll(() => relay.open()).toBe(0)
})

test('health asks a silent store over one connection at a time, and the pool is whole when the store is back', async () => {
  const { url, port } = await newDatabase()
  const relay = await relayTo(port)
  const store = await openStore({ kind: 'postgres', url: secret(by(url, relay.port)) }, { poolSize: 2 })
  onTestFinished(() => store.close())
  await store.ping()
  relay.silence('all')
  const before = relay.open()
  const pings = await Promise.allSettled(Array.from({ length: 50 }, () => store.ping()))
  expect(new Set(pings.map(({ status }) => status))).toEqual(new Set(['rejected']))
  expect(relay.open()).toBeLessThanOrEqual(before + 2)
  relay.heal()
  await expect.poll(() => store.ping().then(() => 'back'), { timeout: 10_000 }).toBe('back')
  expect(await store.course.backlog(0)).toMatchObject({ due: 0 })
})

test('the server ends a statement that waits too long for a lock, and the connection is kept', async () => {
  const { url, query } = await newDatabase()
  await query('CREATE TABLE held (n integer)')
  const [holder, pool] = [poolOf(url, 1, 10_000), poolOf(url, 1)]
  await transaction(holder, async (on) => {
    await on.query('LOCK TABLE held')
    await expect(pool.query('SELECT * FROM held')).rejects.toMatchObject({ code: '57014' })
    await expect(transaction(pool, (it) => it.query('SELECT * FROM held'))).rejects.toMatchObject({
      code: '57014',
    })
    expect((await pool.query('SELECT 1')).rowCount).toBe(1)
  })
})

test('a request that gets no connection of the pool in time fails as busy, and not as if the server were gone', async () => {
  const { url } = await newDatabase()
  const pool = poolOf(url, 1, 10_000)
  await transaction(pool, async (on) => {
    await on.query('SELECT 1')
    const refused = await pool.query('SELECT 2').catch((error: unknown) => error)
    expect(storeFault(refused)).toBe('busy')
  })
  expect((await pool.query('SELECT 3')).rowCount).toBe(1)
})

test('a migration takes the time it needs, whatever limit requests and the database have', async () => {
  const { url, name, query } = await newDatabase()
  await query(`ALTER DATABASE ${name} SET statement_timeout = '100ms'`)
  const pool = poolOf(url, 1)
  const step = `CREATE TABLE platformctl.meta (name text PRIMARY KEY, value text); SELECT pg_sleep(${(LIMIT_MS * 3) / 1000})`
  await migrate(pool, [step])
  const { rows } = await query('SELECT version FROM platformctl.schema_version')
  expect(rows).toEqual([{ version: 1 }])
})

test('a migration that waits for a table, as during a dump, holds up nobody else who uses it', async () => {
  const { url, query } = await newDatabase()
  const [dump, pool, replica] = [poolOf(url, 1, 10_000), poolOf(url, 1), poolOf(url, 1, 5000)]
  const steps = [
    'CREATE TABLE platformctl.meta (name text PRIMARY KEY, value text)',
    'ALTER TABLE platformctl.meta ADD COLUMN added text',
  ]
  await migrate(pool, steps.slice(0, 1))
  const migrating = await transaction(dump, async (on) => {
    await on.query('SELECT * FROM platformctl.meta')
    const done = migrate(pool, steps)
    const waiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'platformctl.meta'::regclass`
    await expect.poll(async () => (await query(waiting)).rowCount, { interval: 20 }).toBe(1)
    expect((await replica.query('SELECT * FROM platformctl.meta')).rowCount).toBe(1)
    return { done }
  })
  await migrating.done
  expect((await query('SELECT version FROM platformctl.schema_version')).rows).toEqual([{ version: 2 }])
})

test('a store whose disk was full is well only once there is room for more than a row that exists already', async () => {
  const { address, query } = await newDatabase()
  const store = await openTestStore(address)
  await query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON platformctl.announcement FOR EACH ROW EXECUTE FUNCTION full_disk();
    CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON platformctl.meta FOR EACH ROW
      WHEN (length(NEW.value) > 10000) EXECUTE FUNCTION full_disk()`)
  const state = () => store.ping().then(() => 'well', storeFault)
  const write = () =>
    store.incidents.announce({ id: 'a', text: 'Slow', from: 0, until: undefined, by: 'ada' }, 0)
  expect(await state()).toBe('well')
  await expect(write()).rejects.toThrow()
  expect([await state(), await state()]).toEqual(['disk_full', 'disk_full'])
  await query('DROP FUNCTION full_disk CASCADE')
  expect(await state()).toBe('well')
  await write()
})

test('connections to a demoted primary are left without losing a write, once, however many meet it, also while they are closed', async () => {
  const { url, name, query, administer } = await newDatabase()
  const readOnly = `ALTER DATABASE ${name} SET default_transaction_read_only = on`
  await query('CREATE TABLE written (n integer)')
  await query(readOnly)
  const pool = poolOf(url, 4, 10_000)
  const writes = () =>
    Promise.allSettled([1, 2, 3, 4].map((n) => pool.query('INSERT INTO written VALUES ($1)', [n])))
  for (const one of await writes())
    expect(one).toMatchObject({ status: 'rejected', reason: { code: '25006' } })
  // Connections of a time in which the server could only be read.
  await Promise.all([1, 2, 3, 4].map(() => pool.query('SELECT pg_sleep(0.05)')))
  await administer(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
  expect((await writes()).map(({ status }) => status)).toEqual(Array(4).fill('fulfilled'))
  await transaction(pool, (on) => on.query('INSERT INTO written VALUES (5)'))
  expect((await query('SELECT n FROM written ORDER BY n')).rows.map(({ n }) => n)).toEqual([1, 2, 3, 4, 5])
  await administer(readOnly)
  const last = poolOf(url, 1)
  let closed: Promise<void> | undefined
  const write = last.using([], (connection) => {
    closed = last.end()
    return connection.query(5000, 'INSERT INTO written VALUES (6)')
  })
  await expect(write).rejects.toMatchObject({ code: '25006' })
  await closed
})

test('finds the writable one of several servers, also after a failover', async () => {
  const second = await startPostgres()
  onTestFinished(() => second.stop())
  const prefix = `failover_${process.pid}_`
  const [one, two] = [databasesOn((await postgresServer()).port, prefix), databasesOn(second.port, prefix)]
  const [url] = [await one.createDatabase(), await two.createDatabase()]
  const name = new URL(url).pathname.slice(1)
  const set = (readOnly: 'on' | 'off') =>
    one.query(
      url.replace(name, 'postgres'),
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${readOnly}`,
    )
  await set('on')
  const dead = 1
  const pool = poolOf(by(url, dead, await blackhole('127.0.0.1'), one.port, two.port))
  const where = async () => {
    const { rows } = await pool.query<{ port: number }>('SELECT inet_server_port() AS port')
    return rows[0]?.port
  }
  expect(await where()).toBe(two.port)
  await set('off')
  await second.stop()
  await expect.poll(() => where().catch(() => 'nowhere'), { timeout: 20_000 }).toBe(one.port)
}, 40_000)

test('servers of which none can be written are one sentence with the fix, though their schema can be read', async () => {
  const sentence = /The PostgreSQL of STORE_URL can only be read: name the primary, or all servers/
  const [store, { url, port, name, query }] = [await newDatabase('a store'), await newDatabase()]
  await store.query(`ALTER DATABASE ${store.name} SET default_transaction_read_only = on`)
  await expect(readSchema(store.address)).rejects.toThrow(sentence)
  await query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  for (const address of [url, by(url, port, port), `${url}?target_session_attrs=primary`])
    await expect(openTestStore({ kind: 'postgres', url: secret(address) })).rejects.toThrow(sentence)
})
