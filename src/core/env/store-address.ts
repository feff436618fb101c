import { rawValue } from './read-settings.ts'
import type { Environment } from './settings.ts'
import { parseStoreAddress } from './values.ts'

const STORES = ['STORE_URL', 'JOB_STORE_URL'] as const

export type StoreVariable = (typeof STORES)[number]

/**
 * The store variables that are set but malformed. Elsewhere a malformed value behaves as absent; here that
 * would open another store, which knows none of the subscribers (CONTRACT §9.1).
 */
export function malformedStores(env: Environment): readonly StoreVariable[] {
  return STORES.filter((name) => {
    const value = rawValue(env, name)
    return value !== undefined && parseStoreAddress(value) === undefined
  })
}

/** Error text for a malformed store address, with the fix; never the value, which may hold a password. */
export function malformedStoreSentence(name: StoreVariable): string {
  const without = {
    STORE_URL: 'to use the SQLite file of the data folder',
    JOB_STORE_URL: 'to keep jobs in the store of STORE_URL',
  }[name]
  return `${name} is not the address of a store, and no other store is opened in its place. Write sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE (a # of the password as %23), or unset it ${without}.`
}
