import type { Log } from '../host.ts'
import type { operations } from './operations.ts'
import type { StoreSchema } from './schema.ts'

/** Where the platform keeps what must outlive a process. */
export interface Store extends ReturnType<typeof operations> {
  readonly kind: 'memory' | 'sqlite' | 'postgres'
  /** False for the in-memory fallback: dispatch refuses it. */
  readonly persistent: boolean
  /** A real write and read; rejects on a full disk, or after damage was met. `pages`: reads every page of a file. */
  ping(options?: { readonly pages?: boolean }): Promise<void>
  status(): Promise<StoreStatus>
  close(): Promise<void>
}

interface StoreStatus extends Pick<StoreSchema, 'version' | 'latest'> {
  readonly kind: Store['kind']
  readonly bytes: number | undefined
  /** When `db backup` last made a backup of it, in UTC milliseconds. */
  readonly backupAt: number | undefined
}

export interface StoreOptions {
  readonly poolSize?: number
  readonly log?: Log
  readonly onLost?: OnLost | undefined
  /** Milliseconds by which leases are measured; default: a clock that everything that shares the store agrees on. */
  readonly leaseClock?: (() => number) | undefined
  /** Refuses a database without a store instead of making one. */
  readonly mustExist?: boolean
}

/**
 * A file's disk did not confirm a write, so nothing in it is trusted: it has closed itself, everything asked of it is
 * `store_unavailable`, and only opening it anew (best in a new process) makes it usable again.
 */
export type OnLost = (cause: unknown) => void
