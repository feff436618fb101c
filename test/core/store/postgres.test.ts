import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { secret } from '../../../src/core/secret.ts'
import { openStore } from '../../../src/core/store/open.ts'
import { createPool, transaction } from '../../../src/core/store/postgres/connection.ts'
import { begin } from '../../support/learning.ts'
import { addressOf, openTestStore, postgresServer } from '../../support/stores.ts'

const urlOf = (address: Awaited<ReturnType<typeof addressOf>>) =>
  address?.kind === 'postgres' ? address.url.reveal() : ''
const at = (url: string) => ({ kind: 'postgres', url: secret(url) }) as const

/** The address of a server that meets the first bytes of each connection in that way. */
async function answering(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** PostgreSQL's ErrorResponse of that code. */
function fatal(code: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mx\0\0`)
  const head = Buffer.alloc(5, 'E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

test('many processes that open an empty database at once make its schema once', async () => {
  const address = at(await (await postgresServer()).createDatabase())
  const stores = await Promise.all(Array.from({ length: 6 }, () => openTestStore(address)))
  const states = await Promise.all(stores.map((store) => store.status()))
  expect(new Set(states.map(({ version, latest }) => version === latest))).toEqual(new Set([true]))
})

test('refuses a schema of a newer version, and leaves it unchanged', async () => {
  const address = await addressOf('postgres')
  await (await openTestStore(address)).close()
  const server = await postgresServer()
  await server.query(urlOf(address), 'UPDATE platformctl.schema_version SET version = 99')
  await expect(openStore(address)).rejects.toThrow(
    /written by a newer platformctl \(schema 99, this build knows \d+\): run that version, or restore a backup/,
  )
  const { rows } = await server.query(urlOf(address), 'SELECT version FROM platformctl.schema_version')
  expect(rows).toEqual([{ version: 99 }])
})

test('reports an unusable server in one sentence with the fix, without host or password', async () => {
  const url = urlOf(await addressOf('postgres'))
  // As a proxy does whose server is down, and as a server does that starts.
  const closing = await answering((socket) => socket.destroy())
  const resetting = await answering((socket) => socket.resetAndDestroy())
  const starting = await answering((socket) => socket.end(fatal('57P03')))
  const cases: [string, RegExp][] = [
    [`postgres://user:hunter2@${closing}/db`, /broke the connection: check its log/],
    [`postgres://user:hunter2@${resetting}/db`, /broke the connection: check its log/],
    [`postgres://user:hunter2@${starting}/db`, /refused the connection: it is starting or stopping/],
    [url.replace('only-for-tests', 'wrong'), /refused the user or the password/],
    [url.replace(/\/test_\d+$/, '/nowhere'), /has no such database/],
    ['postgres://user:hunter2@127.0.0.1:1/db', /refused the connection/],
    ['postgres://user:hunter2@nowhere.invalid/db', /host name that does not resolve/],
    [`${url}?sslmode=require`, /does not speak TLS as asked/],
  ]
  for (const [address, sentence] of cases) {
    const fault = await openStore(at(address)).then(
      () => new Error('it opened'),
      (error: Error) => error,
    )
    expect(fault.message).toMatch(sentence)
    expect(fault.name).toBe('StoreOpenError')
    expect(fault.message).not.toMatch(/hunter2|wrong|only-for-tests|127\.0\.0\.1/)
  }
})

test('connections that the server ends are replaced, and while it refuses them the answer is 503', async () => {
  const address = await addressOf('postgres')
  const store = await openTestStore(address)
  const server = await postgresServer()
  const admin = urlOf(address).replace(/\/test_\d+$/, '/postgres')
  const database = /\/(test_\d+)$/.exec(urlOf(address))?.[1]
  await store.ping()
  await server.query(admin, `ALTER DATABASE ${database} ALLOW_CONNECTIONS false`)
  const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`
  await server.query(admin, terminate)
  await expect(store.ping()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  await server.query(admin, `ALTER DATABASE ${database} ALLOW_CONNECTIONS true`)
  await store.ping()
})

test('a claim finds its rows by the index of what is due, however many subscriptions there are', async () => {
  const address = await addressOf('postgres')
  await (await openTestStore(address)).close()
  const server = await postgresServer()
  await server.query(
    urlOf(address),
    `INSERT INTO platformctl.subscription (id, identity, address, state, created_at, confirmed_at, next_attempt_at, failures)
     SELECT 'id-' || n, n || '@example.com', n || '@example.com', 'confirmed', 0, 0, n, n % 2 FROM generate_series(1, 20000) AS n;
     ANALYZE platformctl.subscription`,
  )
  for (const [which, index, order] of [
    ['next_attempt_at IS NOT NULL AND failures = 0', 'subscription_due', 'next_attempt_at'],
    ['next_attempt_at IS NOT NULL AND failures > 0', 'subscription_retry', 'next_attempt_at'],
    ['claimed_at IS NOT NULL', 'subscription_claimed', 'first_attempt_at'],
  ]) {
    const { rows } = await server.query(
      urlOf(address),
      `EXPLAIN SELECT id FROM platformctl.subscription WHERE ${which} AND next_attempt_at <= 500
       ORDER BY ${order} LIMIT 100 FOR UPDATE SKIP LOCKED`,
    )
    const plan = rows.map((row) => Object.values(row)[0]).join('\n')
    expect(plan).toContain(`Index Scan using ${index}`)
    expect(plan).not.toContain('Sort')
  }
})

test('while a message is out no transaction is open', async () => {
  const address = await addressOf('postgres')
  const store = await openTestStore(address)
  const input = {
    course: 'quantum',
    identity: 'a@example.com',
    address: 'a@example.com',
    id: 'id-1',
    tokenHash: 'h',
    now: 0,
  }
  await store.course.requestConfirmation(input)
  await store.course.confirm({ begin, tokenHash: 'h', now: 0 })
  const claims = await store.course.claimDue({ now: 1, limit: 1, retries: 0, leaseMs: 1000, call: 'c' })
  expect(claims).toHaveLength(1)
  const server = await postgresServer()
  const { rows } = await server.query(
    urlOf(address),
    `SELECT state FROM pg_stat_activity WHERE application_name = 'platformctl' AND datname = current_database() AND state <> 'idle'`,
  )
  expect(rows).toEqual([])
})

test('a connection lost between two statements of a transaction fails only that transaction', async () => {
  const address = await addressOf('postgres')
  const server = await postgresServer()
  const pool = createPool({ url: secret(urlOf(address)), size: 1 })
  onTestFinished(() => pool.end())
  const cut = transaction(pool, async (connection) => {
    const { rows } = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await server.query(urlOf(address), `SELECT pg_terminate_backend(${rows[0]?.pid}, 5000)`)
    await new Promise((resolve) => setImmediate(resolve))
    await connection.query('SELECT 1')
  })
  await expect(cut).rejects.toThrow()
  expect(await transaction(pool, async (connection) => (await connection.query('SELECT 1')).rowCount)).toBe(1)
})
