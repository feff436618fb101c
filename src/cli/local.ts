import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import {
  isSameStore,
  type RecordedStore,
  readRecord,
  recordedStore,
  shellWord,
} from '../core/daemon-record.ts'
import type { Environment, StoreAddress } from '../core/env/settings.ts'
import { malformedStoreSentence, rawValue, readSettings } from '../core/env/settings.ts'
import type { History } from '../core/status/history.ts'
import { analyticsFile, openAnalyticsStore, openStore, readSchema } from '../core/store/open.ts'
import { assertOwner } from '../core/store/sql.ts'
import { type OpenedPlatform, openPlatform } from '../daemon/platform.ts'
import { CommandError, type Context, dataFolder, EXIT, wrongUsage } from './context.ts'
import { assertNotDenied } from './environment.ts'
import { complain } from './output/text.ts'

/** STORE_URL, a file with its whole path, or the SQLite file of the data folder. `isNew`: whatever its last daemon had. */
export function storeAddress(context: Context, env: Environment, data: string | undefined, isNew = false) {
  const { store } = readSettings(context.platform, env)
  if (store.malformed.includes('STORE_URL')) throw wrongUsage(malformedStoreSentence('STORE_URL'))
  const folder = dataFolder(context, data)
  const file = path.join(folder, 'platform.sqlite')
  const address = store.address ?? { kind: 'sqlite', file }
  const named: StoreAddress =
    address.kind === 'sqlite' ? { kind: 'sqlite', file: path.resolve(context.cwd, address.file) } : address
  // A store that was named explicitly has nothing to do with the folder in the working directory.
  const isSet = rawValue(env, 'STORE_URL') !== undefined
  const record = !isSet || (data !== undefined && !isNew) ? readRecord(folder) : undefined
  const here = recordedStore(named)
  if (record === undefined || isSameStore(record.store, here)) return named
  // In a container, whose host name is its own, no env file can be forgotten: the next daemon has the same environment.
  if (isNew && record.host !== hostname() && record.envFiles.length === 0) return named
  // Another store than that of the daemon of the folder: an env file was not named, or the store has moved.
  const where = (store: RecordedStore) =>
    store.kind === 'postgres' ? `PostgreSQL (${store.location})` : store.location
  const files = record.envFiles.map((file) => `--env-file ${shellWord(file)}`).join(' ')
  throw wrongUsage(
    `the daemon of ${folder} has kept its store in ${where(record.store)} since ${record.startedAt.slice(0, 10)}, and this command would act on ${where(here)}. ${
      isSet || files === '' ? 'Set STORE_URL as that daemon has it' : `Add ${files}`
    }${isSet ? ', or restart it if STORE_URL was changed' : ''}; to act on the other store all the same, name it with STORE_URL and leave --data out.`,
  )
}

/** Opening would make an empty store, and an operator who mistyped a folder would read "nothing is due". */
export async function assertExists({ env }: Context, address: StoreAddress): Promise<void> {
  if (address.kind !== 'sqlite' || existsSync(address.file)) return
  assertNotDenied(address.file)
  throw wrongUsage(
    `there is no store at ${address.file}: ${(await import('./running-daemons.ts')).dataHint(env)}, set STORE_URL, or start the daemon, which makes it.`,
  )
}

/** Turns a store that cannot be opened into a CommandError: exit code 3 if a server was not reached, otherwise 2. */
export function storeFaultError(address: StoreAddress, error: unknown): unknown {
  if (!(error instanceof Error && error.name === 'StoreOpenError')) return error
  // With a cause, the server failed to answer; without one, this version refused what it found there.
  const remote = address.kind === 'postgres' && error.cause !== undefined
  return new CommandError(remote ? EXIT.remote : EXIT.usage, error.message)
}

/** This machine's store, which must exist. With --no-config, `isStoreAlone` takes any: mail must stop whatever a definition is. */
export async function openLocalStore(
  context: Context,
  env: Environment,
  data: string | undefined,
  isStoreAlone = false,
) {
  const address = storeAddress(context, env, data)
  await assertExists(context, address)
  try {
    const onMigrate = (from: number, to: number) =>
      complain(
        context,
        `the store is brought from schema ${from} to ${to}; if a daemon of an older build runs on it, update that too`,
      )
    const store = await openStore(address, { mustExist: true, onMigrate })
    if (isStoreAlone && context.platform.definition === undefined && context.searched === undefined)
      return store
    // Only a daemon claims a store: a command that is started in the wrong folder would otherwise shut the daemon out.
    await store.owner
      .name()
      .then((owner) => assertOwner(owner, context.platform.name))
      .catch(async (error: unknown) => {
        await store.close()
        throw error
      })
    return store
  } catch (error) {
    throw storeFaultError(address, error)
  }
}

export async function openLocal(
  context: Context,
  env: Environment,
  data: string | undefined,
  history?: History,
): Promise<{ platform: OpenedPlatform; close: () => Promise<void> }> {
  const { platform, clock, random } = context
  const store = await openLocalStore(context, env, data)
  const opened = openPlatform({ env, platform, store, clock, random, ...(history && { history }) })
  return { platform: opened, close: () => opened.close().then(() => store.close()) }
}

/**
 * The store that ingest writes to, or its location alone if nothing is there yet: a file is not made, so that a mistyped
 * path does not read as "no events". Undefined if events are not stored.
 */
export async function findAnalytics(context: Context, env: Environment) {
  const address = storeAddress(context, env, undefined)
  const { table } = readSettings(context.platform, env).analytics
  if (table === undefined) return undefined
  const location = address.kind === 'sqlite' ? analyticsFile(address.file) : 'postgres'
  const unopened = (error: unknown) => {
    throw storeFaultError(address, error)
  }
  const isThere = address.kind === 'sqlite' ? existsSync(location) : await readSchema(address).catch(unopened)
  if (!isThere) return { location }
  return { location, store: await openAnalyticsStore(address, { table }).catch(unopened) }
}
