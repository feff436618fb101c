import { existsSync } from 'node:fs'
import type { AnalyticsStore } from '../core/analytics/store.ts'
import { readSettings } from '../core/env/read-settings.ts'
import type { Environment } from '../core/env/settings.ts'
import { analyticsFile, openAnalyticsStore } from '../core/store/open.ts'
import type { Context } from './context.ts'
import { storeAddress, storeFaultError } from './local.ts'

/** The store that ingest writes to, on this machine or a server; or its location, if nothing is stored there yet. */
export type FoundAnalytics =
  | { readonly kind: 'open'; readonly store: AnalyticsStore; readonly location: string }
  | { readonly kind: 'off' }
  | { readonly kind: 'empty'; readonly location: string }

/** Opens the table of analytics; makes no file, so that a mistyped path does not read as "no events". */
export async function findAnalytics(context: Context, env: Environment): Promise<FoundAnalytics> {
  const address = storeAddress(context, env, undefined)
  const { table } = readSettings(context.platform, env).analytics
  if (table === undefined) return { kind: 'off' }
  const location = address.kind === 'sqlite' ? analyticsFile(address.file) : 'postgres'
  if (address.kind === 'sqlite' && !existsSync(location)) return { kind: 'empty', location }
  const store = await openAnalyticsStore(address, { table }).catch((error: unknown) => {
    throw storeFaultError(address, error)
  })
  return { kind: 'open', store, location }
}
