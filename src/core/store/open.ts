import type { StoreAddress } from '../env/settings.ts'
import { type Store, StoreOpenError } from './store.ts'

/** Opens the store that an address names; the only place that names the adapters, each loaded when it is needed. */
export async function openStore(address: StoreAddress | undefined): Promise<Store> {
  if (address?.kind === 'postgres')
    throw new StoreOpenError('This build opens SQLite stores only: set STORE_URL=sqlite:PATH, or remove it.')
  return (await import('./sqlite/open.ts')).openSqlite(address?.file)
}
