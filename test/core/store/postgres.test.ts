import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { secret } from '../../../src/core/secret.ts'
import { openStore, readSchema } from '../../../src/core/store/open.ts'
import { newDatabase, openTestStore, postgresServer } from '../../support/stores.ts'
import { audited, subscribe } from '../../support/subscribers.ts'

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
  const { address } = await newDatabase()
  const stores = await Promise.all(Array.from({ length: 6 }, () => openTestStore(address)))
  const states = await Promise.all(stores.map((store) => store.status()))
  expect(new Set(states.map(({ version, latest }) => version === latest))).toEqual(new Set([true]))
})

test('functions of other roles in the database are not called in place of PostgreSQL’s own', async () => {
  const { address, url } = await newDatabase()
  const body = "LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$"
  await (await postgresServer()).query(
    url,
    `CREATE FUNCTION public.hashtextextended(text, text) RETURNS bigint ${body};
    CREATE FUNCTION public.pg_advisory_xact_lock(text) RETURNS void ${body}`,
  )
  const store = await openTestStore(address)
  await subscribe(store, 'ada')
  const pause = { streams: ['course'], now: 0, reason: 'a test', audit: audited('pause', 0) } as const
  expect(await store.sending.pause(pause)).toHaveLength(1)
})

test('reports an unusable server in one sentence with the fix, without host or password', async () => {
  const { url } = await newDatabase()
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
  for (const [address, sentence] of cases)
    for (const open of [openStore, readSchema]) {
      const fault = await open(at(address)).then(
        () => new Error('it opened'),
        (error: Error) => error,
      )
      expect(fault.message).toMatch(sentence)
      expect(fault.name).toBe('StoreOpenError')
      expect(fault.message).not.toMatch(/hunter2|wrong|only-for-tests|127\.0\.0\.1/)
    }
})

test('connections that the server ends are replaced, and while it refuses them the answer is 503', async () => {
  const { address, name, administer } = await newDatabase()
  const store = await openTestStore(address)
  await store.ping()
  await administer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
  await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
  await expect(store.ping()).rejects.toMatchObject({ code: 'store_unavailable', status: 503 })
  await administer(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
  await store.ping()
})

test('while a message is out no transaction is open', async () => {
  const { address, query } = await newDatabase()
  const store = await openTestStore(address)
  await subscribe(store, 'ada')
  const claims = await store.course.claimDue({ now: 1, limit: 1, retries: 0, leaseMs: 1000, call: 'c' })
  expect(claims).toHaveLength(1)
  const { rows } = await query(
    `SELECT state FROM pg_stat_activity WHERE application_name = 'platformctl' AND datname = current_database() AND state <> 'idle'`,
  )
  expect(rows).toEqual([])
})
