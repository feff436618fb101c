import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { secret } from '../../src/core/secret.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { emptyFolder } from './folder.ts'
import { databasesOn, type PostgresDatabases } from './postgres.ts'

export type StoreKind = Store['kind']

/** Every store there is: the one behavioural suite runs over each. */
export const STORES: StoreKind[] = ['memory', 'sqlite', 'postgres']

/** Where the suites of what is built on a store run: `npm test` has a file, and test/load a PostgreSQL. */
export const KEPT: ('sqlite' | 'postgres')[] = ['sqlite']

let wayTo = (url: string) => url

/** From here on the suites run over PostgreSQL alone, also by another way to it. */
export function onlyPostgresBy(way: typeof wayTo = wayTo): void {
  wayTo = way
  STORES.splice(0, STORES.length, 'postgres')
  KEPT.splice(0, KEPT.length, 'postgres')
}

let server: Promise<PostgresDatabases> | undefined

/** The server that all tests of a run share; it starts when the first of them asks. */
export function postgresServer(): Promise<PostgresDatabases> {
  server ??= (async () => {
    const answer = await fetch(inject('sharedPostgres'))
    const port = await answer.text()
    if (!answer.ok) throw new Error(`PostgreSQL does not start: ${port}`)
    // No process id: a test that loads modules anew begins to count anew.
    return databasesOn(Number(port), `test_${randomInt(1e11, 1e12)}`)
  })()
  return server
}

let migratedFile: Promise<Buffer> | undefined

/** A file with the newest schema: to copy it is far quicker than to migrate each. */
export async function newFile(name = 'store.sqlite'): Promise<string> {
  const file = path.join(await emptyFolder(), name)
  migratedFile ??= (async () => {
    await (await openStore({ kind: 'sqlite', file })).close()
    return readFile(file)
  })()
  await writeFile(file, await migratedFile, { mode: 0o600 })
  return file
}

let migrated: Promise<string> | undefined

/** A database with the newest schema, to copy: that is quicker than to migrate each. */
function migratedDatabase(): Promise<string> {
  migrated ??= (async () => {
    const url = await (await postgresServer()).createDatabase()
    await (await openStore({ kind: 'postgres', url: secret(url) })).close()
    return url
  })()
  return migrated
}

type Address = NonNullable<Parameters<typeof openStore>[0]>
type PostgresAddress = Extract<Address, { kind: 'postgres' }>

/** Where a new, empty store of a kind lives; two stores opened on one address share it. */
export function addressOf(kind: 'sqlite'): Promise<Extract<Address, { kind: 'sqlite' }>>
export function addressOf(kind: 'postgres'): Promise<PostgresAddress>
export function addressOf(kind: 'sqlite' | 'postgres'): Promise<Address>
export function addressOf(kind: StoreKind): Promise<Address | undefined>
export async function addressOf(kind: StoreKind): Promise<Address | undefined> {
  if (kind === 'memory') return undefined
  if (kind === 'sqlite') return { kind, file: await newFile() }
  return { kind, url: secret(wayTo(await (await postgresServer()).createDatabase(await migratedDatabase()))) }
}

/** A new database of PostgreSQL: empty, with an empty store, or with what one holds that nobody has open. */
export async function newDatabase(holds?: 'a store' | URL) {
  const server = await postgresServer()
  const url =
    holds === 'a store'
      ? (await addressOf('postgres')).url.reveal()
      : await server.createDatabase(holds?.href)
  const name = new URL(url).pathname.slice(1)
  const address: PostgresAddress = { kind: 'postgres', url: secret(url) }
  return {
    url,
    address,
    name,
    port: server.port,
    query: (sql: string) => server.query(url, sql),
    /** By a connection to another database of the server. */
    administer: (sql: string) => server.query(url.replace(name, 'postgres'), sql),
  }
}

/** Whether an erasure has left this hash: then nobody whose address has it is enrolled. */
export async function isErased({ course }: Pick<Store, 'course'>, hash: string): Promise<boolean> {
  const identity = 'nobody@example.com'
  const nobody = { id: 'nobody', identity, mailboxKey: identity, address: identity, course: 'none', now: 0 }
  const answer = await course.enrol({ ...nobody, erasureHashes: [hash], begin: () => undefined })
  return !answer.enrolled && answer.reason === 'erased'
}

/** An open store that is closed with the test. */
export async function openTestStore(
  address: Parameters<typeof openStore>[0],
  /** Measures leases in a test whose time is its own. */
  leaseClock?: () => number,
): Promise<Store> {
  const store = await openStore(address, { leaseClock })
  onTestFinished(() => store.close())
  return store
}
