import { postgresServers } from '../env/postgres-url.ts'
import type { LiveDependencies } from './dependencies.ts'
import { nameStep } from './endpoint.ts'
import type { Step, StepOutcome } from './live.ts'

/** Checks that the store's server can be found, and that the schema is this build's. */
export function storeSteps(dependencies: LiveDependencies): Step[] {
  const { settings, storeSchema } = dependencies
  const { address } = settings.store
  return [
    ...(address?.kind === 'postgres'
      ? (postgresServers(address.url.reveal()) ?? []).map((server) =>
          nameStep(dependencies, new URL(server).hostname, 'STORE_URL'),
        )
      : []),
    {
      check: 'migrations',
      variables: ['STORE_URL'],
      run: async (): Promise<StepOutcome> => {
        const state = await storeSchema().catch(faultOf)
        if (typeof state === 'string') return { state: 'failed', id: 'live-store', detail: state }
        if (state === undefined)
          return { state: 'skipped', detail: 'there is no store yet; it is made at the first start' }
        const { version, latest } = state
        if (version === latest) return { state: 'passed', detail: `schema ${version}, nothing to migrate` }
        return version < latest
          ? {
              state: 'warning',
              id: 'store-migration-pending',
              detail: `has schema ${version}, and this build brings ${latest}`,
            }
          : {
              state: 'warning',
              id: 'store-schema-newer',
              detail: `has schema ${version}, and this build knows ${latest}`,
            }
      },
    },
  ]
}

/**
 * Why the store cannot be opened. Its sentences about a server begin alike and hold no value. Those about a
 * file name the file, so they are left out.
 */
function faultOf(error: unknown): string {
  if (!(error instanceof Error && error.name === 'StoreOpenError')) throw error
  return /^The PostgreSQL of STORE_URL ([^:.]+)/.exec(error.message)?.[1]?.trim() ?? 'cannot be opened'
}
