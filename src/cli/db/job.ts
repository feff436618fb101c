import type { Environment, StoreAddress } from '../../core/env/settings.ts'
import type { AnalyticsMaintenance, StoreMaintenance } from '../../core/store/maintenance.ts'
import type { Context } from '../context.ts'

/** Command-line options of `db`. */
export interface DbOptions {
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
  readonly plan?: true
  readonly force?: true
  readonly to?: string
  readonly resume?: true
  readonly verify?: true
  readonly analytics?: boolean
  readonly recipient: readonly string[]
  readonly identity?: string
  readonly journal?: string
  readonly withoutJournal?: true
  readonly sentFrom?: string
  readonly from?: string
  readonly limit: number
}

/** One sub-command at work. */
export interface Job {
  readonly context: Context
  readonly options: DbOptions
  readonly env: Environment
  readonly address: StoreAddress
  /** Opens the store without migrating it; closed when the command ends. */
  readonly maintenance: () => Promise<StoreMaintenance>
  /** The same for the file of analytics; undefined when there is none. */
  readonly analyticsMaintenance: () => Promise<AnalyticsMaintenance | undefined>
}
