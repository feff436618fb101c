import type { Environment } from '../core/env/settings.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Context } from './context.ts'
import type { ExitCode } from './exit.ts'

/** Opens the store of the env files or the data folder, works on its incidents, and closes it. */
export async function withIncidents(
  context: Context,
  options: { readonly data?: string; readonly envFile: readonly string[] },
  work: (incidents: IncidentStore, env: Environment) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('./environment.ts')
  const { assertExists, storeAddress, storeFault } = await import('./local.ts')
  const { openStore } = await import('../core/store/open.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const address = storeAddress(context, env, options.data)
  await assertExists(address)
  const store = await openStore(address).catch((error: unknown) => {
    throw storeFault(address, error)
  })
  try {
    return await work(store.incidents, env)
  } finally {
    await store.close()
  }
}
