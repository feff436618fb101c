import { existsSync } from 'node:fs'
import path from 'node:path'
import type { StoreAddress } from '../env/settings.ts'
import type { Log } from '../host.ts'
import type { History } from '../status/history.ts'
import type { CopySource } from './copy.ts'
import { refusal } from './errors.ts'
import type { StoreMaintenance } from './maintenance.ts'
import type { AfterRestoreOptions } from './postgres/maintenance.ts'
import type { StoreSchema } from './schema.ts'
import type { RestoreOptions, RestoreResult } from './sqlite/restore.ts'
import type { OnLost, Store, StoreOptions } from './store.ts'

/** Opens the store that an address names; the only place that names the adapters, each loaded when it is needed. */
export async function openStore(address?: StoreAddress, options: StoreOptions = {}): Promise<Store> {
  if (address?.kind === 'postgres')
    return (await import('./postgres/open.ts')).openPostgres(address.url, options)
  return (await import('./sqlite/open.ts')).openSqlite(address?.file, options)
}

/** Opens (and makes) the table of analytics: in a file beside an SQLite store's, or in a schema of its own. */
export async function openAnalyticsStore(
  address: StoreAddress,
  { table, log, onLost }: { table: string; log?: Log; onLost?: OnLost | undefined },
) {
  if (address.kind === 'postgres')
    return (await import('./postgres/open.ts')).openPostgresAnalytics(address.url, table, log)
  const { openSqliteAnalytics } = await import('./sqlite/analytics.ts')
  return openSqliteAnalytics(analyticsFile(address.file), table, onLost)
}

/** `/data/platform.sqlite` → `/data/platform-analytics.sqlite` */
export function analyticsFile(storeFile: string): string {
  const { dir, name, ext } = path.parse(storeFile)
  return path.join(dir, `${name}-analytics${ext}`)
}

/** Opens a store for its operator, without migrating it. */
export async function openMaintenance(address: StoreAddress): Promise<StoreMaintenance> {
  if (address.kind === 'postgres')
    return (await import('./postgres/maintenance.ts')).maintenanceOfPostgres(address.url)
  return (await import('./sqlite/maintenance.ts')).maintenanceOfSqlite(address.file)
}

/** Maintenance of the file with visitors' events beside an SQLite store; undefined if there is none. */
export async function openAnalyticsMaintenance(address: StoreAddress) {
  if (address.kind === 'postgres' || !existsSync(analyticsFile(address.file))) return undefined
  return (await import('./sqlite/maintenance.ts')).maintenanceOfAnalytics(analyticsFile(address.file))
}

/** `platform.sqlite.zst.age` → `platform-analytics.sqlite.zst.age` */
export const analyticsBackup = (backup: string): string =>
  backup.replace(/(?:\.sqlite)?(?:\.\w+?)?(?:\.age)?$/, (end) => `-analytics${end}`)

/** Puts a backup in the place of a store of one file, and that of its analytics when it lies beside the backup. */
export async function restoreStore(
  address: StoreAddress,
  { from, ...options }: RestoreOptions & { readonly from: string },
): Promise<RestoreResult & { readonly analytics?: RestoreResult }> {
  if (address.kind === 'postgres')
    throw refusal`a PostgreSQL store is restored by its own tools: point-in-time recovery, or pg_restore; this command puts back an SQLite file. An older dump forgets who unsubscribed since: run platformctl db after-restore before anything is sent.`
  const { restore } = await import('./sqlite/restore.ts')
  const events = { from: analyticsBackup(from), to: analyticsFile(address.file), holds: 'analytics' } as const
  const store = { from, to: address.file, holds: 'course' } as const
  const [restored, analytics] = await restore([store, ...(existsSync(events.from) ? [events] : [])], options)
  if (restored === undefined) throw new TypeError('a restore of one part has one result')
  return { ...restored, ...(analytics && { analytics }) }
}

/** Applies the restore rule to a database that its own tools restored to an older state. */
export async function afterRestore(address: StoreAddress, options: AfterRestoreOptions) {
  if (address.kind === 'sqlite')
    throw refusal`after-restore is for a PostgreSQL store; platformctl db restore does this for an SQLite file.`
  return (await import('./postgres/maintenance.ts')).afterPostgresRestore(address.url, options)
}

/** The schema of the store that an address names, read and never changed; undefined when there is no store yet. */
export async function readSchema(address: StoreAddress): Promise<StoreSchema | undefined> {
  if (address.kind === 'postgres')
    return (await import('./postgres/maintenance.ts')).postgresSchema(address.url)
  return (await import('./sqlite/maintenance.ts')).sqliteSchema(address.file)
}

/** Opens the file that keeps the recorded health; undefined: in memory. */
export async function openHistory(file: string | undefined, onLost?: OnLost): Promise<History> {
  return (await import('./sqlite/history.ts')).openSqliteHistory(file, onLost)
}

/** Opens the health record that all machines on a store share; undefined for a store in a file, which serves one. */
export async function openSharedHistory(address: StoreAddress, log?: Log) {
  if (address.kind === 'sqlite') return undefined
  return (await import('./postgres/open.ts')).openPostgresHealth(address.url, log)
}

/** Compares every row of a file's store with a database's: the tables that differ, with how many rows each has. */
export async function compareStores(from: StoreAddress, to: StoreAddress) {
  const { compareWithPostgres, withPostgresSource } = await import('./postgres/maintenance.ts')
  const { withSqliteSource } = await import('./sqlite/maintenance.ts')
  if (from.kind === 'sqlite' && to.kind === 'postgres')
    return withSqliteSource(from.file, (source) => compareWithPostgres(source, to.url, '--to'))
  if (from.kind !== 'postgres' || to.kind !== 'sqlite') throw sameKind()
  if (!existsSync(to.file)) throw refusal`there is no file ${to.file}: copy to it first.`
  const compare = (source: CopySource) => compareWithPostgres(source, from.url, 'STORE_URL')
  // The original is held, too.
  const found = await withPostgresSource(from.url, () => withSqliteSource(to.file, compare))
  return found.map(({ table, from: inFile, to: inDatabase }) => ({ table, from: inDatabase, to: inFile }))
}

/** Copies a file's store into an empty database, or a database's into a new file: all of it, or nothing. Checks the copy while the original is still held. */
export async function copyStore(from: StoreAddress, to: StoreAddress, now: number) {
  const { copyIntoPostgres, withPostgresSource } = await import('./postgres/maintenance.ts')
  const { assertNoFile, copyIntoSqlite, withSqliteSource } = await import('./sqlite/maintenance.ts')
  const checked = async (copying: Promise<Record<string, number>>) => {
    const counts = await copying
    const maintenance = await openMaintenance(to)
    return { counts, verified: await maintenance.verify(now).finally(() => maintenance.close()) }
  }
  if (from.kind === 'sqlite' && to.kind === 'postgres')
    return withSqliteSource(from.file, (source) => checked(copyIntoPostgres(source, to.url)))
  if (from.kind !== 'postgres' || to.kind !== 'sqlite') throw sameKind()
  assertNoFile(to.file)
  return withPostgresSource(from.url, (source) => checked(copyIntoSqlite(source, to.file)))
}

const sameKind = () =>
  refusal`a copy goes between an SQLite file and PostgreSQL. Between two files: db backup and db restore; between two databases: their own tools.`
