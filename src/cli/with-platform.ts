import type { Environment } from '../core/env/settings.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Channel } from '../core/incidents/teller.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from '../daemon/embedding.ts'
import type { Context } from './context.ts'
import type { ExitCode } from './exit.ts'
import type { StoreOptions } from './options.ts'

/** Opens the platform over the store of the env files or the data folder, works with it, and closes it. */
export async function withPlatform<Result>(
  context: Context,
  { envFile, data }: Pick<StoreOptions, 'data' | 'envFile'>,
  work: (platform: OpenedPlatform, env: Environment) => Promise<Result>,
): Promise<Result> {
  const { loadEnvironment } = await import('./environment.ts')
  const { openLocal } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const { platform, close } = await openLocal(context, env, data)
  try {
    return await work(platform, env)
  } finally {
    await close()
  }
}

/** Opens the store of the env files or the data folder, works on its incidents, and closes it. */
export async function withIncidents(
  context: Context,
  options: { readonly data?: string; readonly envFile: readonly string[] },
  work: (incidents: IncidentStore, env: Environment, store: Store) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('./environment.ts')
  const { openLocalStore } = await import('./local.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const store = await openLocalStore(context, env, options.data)
  try {
    return await work(store.incidents, env, store)
  } finally {
    await store.close()
  }
}

/** The channels for alerts that the environment configures. */
export async function alertChannelsOf(context: Context, env: Environment): Promise<Channel[]> {
  const { readSettings } = await import('../core/env/read-settings.ts')
  const { alertChannels } = await import('../daemon/alerts.ts')
  const { platform, clock } = context
  return alertChannels({ platform, settings: readSettings(platform, env), clock })
}
