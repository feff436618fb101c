import type { Environment } from '../../core/env/environment.ts'
import type { StoreAddress } from '../../core/env/settings.ts'
import type { AnalyticsMaintenance, StoreMaintenance } from '../../core/store/maintenance.ts'
import { commandOn } from '../command.ts'
import type { Context } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { CommandError, EXIT } from '../exit.ts'
import { STORE, type Values } from '../inputs.ts'

/** The store of one sub-command. */
export interface Job {
  readonly env: Environment
  readonly address: StoreAddress
  /** Opens the store without migrating it; closed when the command ends. */
  readonly maintenance: () => Promise<StoreMaintenance>
  /** The same for the file of analytics; undefined when there is none. */
  readonly analyticsMaintenance: () => Promise<AnalyticsMaintenance | undefined>
}

const dbCommand = (mustExist: boolean) =>
  commandOn<typeof STORE, Job>(STORE, (context, values, work) => act(context, values, mustExist, work))

/** A command on a store that is there already. */
export const onStore = dbCommand(true)
/** A command on a store that it may make. */
export const onPlace = dbCommand(false)

async function act<T>(
  context: Context,
  { envFile, data }: Values<typeof STORE>,
  mustExist: boolean,
  work: (job: Job) => Promise<T>,
): Promise<T> {
  const { assertExists, storeAddress, storeFaultError } = await import('../local.ts')
  const { openAnalyticsMaintenance, openMaintenance } = await import('../../core/store/open.ts')
  const { env } = await loadEnvironment(context, envFile)
  const address = storeAddress(context, env, data)
  if (mustExist) await assertExists(context, address)
  let opened: StoreMaintenance | undefined
  let openedAnalytics: AnalyticsMaintenance | undefined
  try {
    return await work({
      env,
      address,
      maintenance: async () => (opened ??= await openMaintenance(address)),
      analyticsMaintenance: async () => (openedAnalytics ??= await openAnalyticsMaintenance(address)),
    })
  } catch (error) {
    if (error instanceof Error && error.name === 'StoreMaintenanceError')
      throw new CommandError(EXIT.failed, error.message)
    throw storeFaultError(address, error)
  } finally {
    await opened?.close()
    await openedAnalytics?.close()
  }
}

/** `subscription 3, confirmation 2`: tables with rows, the fullest first. */
export function rowsText(counts: Readonly<Record<string, number>>): string {
  const filled = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
  return filled.map(([table, count]) => `${table} ${count}`).join(', ') || 'none'
}
