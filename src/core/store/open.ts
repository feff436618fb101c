import path from 'node:path'
import type { AnalyticsStore } from '../analytics/store.ts'
import type { StoreAddress } from '../env/settings.ts'
import { type Log, silentLog } from '../log.ts'
import { type Store, StoreOpenError } from './store.ts'

/** Opens the store that an address names; the only place that names the adapters, each loaded when it is needed. */
export async function openStore(
  address: StoreAddress | undefined,
  { poolSize = 10, log = silentLog }: { readonly poolSize?: number; readonly log?: Log } = {},
): Promise<Store> {
  if (address?.kind === 'postgres')
    return (await import('./postgres/open.ts')).openPostgres({ url: address.url, poolSize, log })
  return (await import('./sqlite/open.ts')).openSqlite(address?.file)
}

/** Opens (and makes) the table that analytics are kept in: with SQLite in a file of its own beside the store's. */
export async function openAnalyticsStore(address: StoreAddress, table: string): Promise<AnalyticsStore> {
  if (address.kind === 'postgres')
    throw new StoreOpenError('Analytics are kept in SQLite files only: remove ANALYTICS_DATASTORE_TABLE.')
  const { openSqliteAnalytics } = await import('./sqlite/analytics.ts')
  return openSqliteAnalytics({ file: analyticsFile(address.file), table })
}

/** `/data/platform.sqlite` → `/data/platform-analytics.sqlite` */
export function analyticsFile(storeFile: string): string {
  const { dir, name, ext } = path.parse(storeFile)
  return path.join(dir, `${name}-analytics${ext}`)
}
