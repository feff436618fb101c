import { rmSync } from 'node:fs'
import type pg from 'pg'
import type { Cell } from '../product.ts'
import { HOME, relay, type World } from '../world.ts'
import { FILE, flapping, type Injection, STORE_OPTIONS, type Ways, wayOf } from './injection.ts'

export async function store({ how, when }: Cell, world: World): Promise<Injection> {
  const server = await world.postgres()
  const admin = await server.createDatabase()
  const sql = (text: string, on = admin) => server.query(on, text)
  await sql("CREATE ROLE app LOGIN PASSWORD 'the-password-of-the-app'")
  await sql(`ALTER DATABASE ${new URL(admin).pathname.slice(1)} OWNER TO app`)
  const database = new URL(admin).pathname.slice(1)
  const between = await relay(5433, server.port)
  const url = `postgres://app:the-password-of-the-app@127.0.0.1:5433/${database}`
  world.settings.STORE_URL = url
  const cut = () => sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'")
  const held: pg.Client[] = []
  let replaced = ''
  const hows: Ways = {
    gone: {
      cause: /cannot be reached|refused the connection/,
      inject: () => between.mode('refuse'),
      heal: () => between.mode('pass'),
    },
    slow: {
      cause: /cannot be reached|did not answer/,
      inject: () => between.mode({ lateMs: 12_000 }),
      heal: () => between.mode('pass'),
    },
    full: {
      cause: /no connection left/,
      async inject() {
        const { Client } = (await import('pg')).default
        await cut()
        for (let free = true; free; ) {
          const client = new Client({ connectionString: url.replace('5433', String(server.port)) })
          client.on('error', () => {})
          free = await client.connect().then(
            () => true,
            () => false,
          )
          if (free) held.push(client)
        }
      },
      heal: () => Promise.all(held.map((one) => one.end())),
    },
    lying: {
      cause: /accepts no writes|can only be read/,
      async inject() {
        await sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`)
        await cut()
      },
      async heal() {
        await sql(`ALTER DATABASE ${database} RESET ALL`, admin.replace(database, 'postgres'))
        await cut()
      },
    },
    flapping: {
      cause: /cannot be reached|refused the connection/,
      ...flapping(
        () => between.mode('refuse'),
        () => between.mode('pass'),
      ),
    },
    'wrong owner': {
      cause: /does not let|belongs? to/,
      async inject() {
        await sql(
          'CREATE ROLE other; REASSIGN OWNED BY app TO other; REVOKE ALL ON SCHEMA platformctl FROM app',
        )
        await cut()
      },
      heal: () => sql(`REASSIGN OWNED BY other TO app; ALTER DATABASE ${database} OWNER TO app`),
    },
    'wrong version': {
      cause: /newer/,
      inject: () => sql('UPDATE platformctl.schema_version SET version = version + 100'),
      heal: () => sql('UPDATE platformctl.schema_version SET version = version - 100'),
    },
    expired: {
      cause: /refused the user or the password|password/,
      async inject() {
        await sql("ALTER ROLE app VALID UNTIL '2020-01-01'")
        await cut()
      },
      heal: () => sql("ALTER ROLE app VALID UNTIL 'infinity'"),
    },
  }
  return {
    ...wayOf(hows, how),
    command:
      when === 'restore'
        ? `platformctl db after-restore --from "$REPLACED" --env-file ${HOME}/.env`
        : `platformctl dispatch --local --drain --env-file ${HOME}/.env`,
    commandEnv: {
      get REPLACED() {
        return replaced
      },
    },
    async prepare() {
      await world.seed(when === 'drain' ? 60 : 3)
      delete world.settings.STORE_URL
      await world.must(`platformctl db copy --to '${url}' ${STORE_OPTIONS}`)
      world.settings.STORE_URL = url
      rmSync(FILE)
      await cut()
      if (when === 'restore') replaced = await server.createDatabase(admin)
      if (when !== 'drain') await sql('UPDATE platformctl.subscription SET next_attempt_at = NULL')
    },
    ...(how === 'wrong version' &&
      when === 'running' && { ask: `platformctl dispatch --local --dry-run --env-file ${HOME}/.env` }),
    ...(when === 'drain' && how === 'wrong version' && { early: true }),
  }
}
