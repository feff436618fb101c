import type { Contract } from '../env/contract.ts'
import type { Settings } from '../env/settings.ts'
import type { ServiceDefinition } from '../service.ts'
import type { StoreSchema } from '../store/store.ts'
import type { LiveNetwork } from './network.ts'

/** Dependencies of the live checks. */
export interface LiveDependencies {
  readonly contract: Contract
  readonly services: readonly ServiceDefinition[]
  readonly settings: Settings
  readonly network: LiveNetwork
  /** UTC milliseconds. */
  readonly now: number
  /** Whether a usable value is set for this variable. */
  readonly isSet: (name: string) => boolean
  /** Connects and authenticates to the mail transport without sending. */
  readonly verifyMail: (signal: AbortSignal) => Promise<void>
  /** The store's schema, read without changing it; undefined when there is no store yet. Rejects when it cannot be read. */
  readonly storeSchema: () => Promise<StoreSchema | undefined>
  /** DKIM selectors of the sender's domain; the usual ones are tried when empty. */
  readonly dkimSelectors: readonly string[]
}
