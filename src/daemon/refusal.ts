import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { alertsFiles } from '../core/daemon-places.ts'
import type { Environment } from '../core/env/environment.ts'
import type { Settings, StoreAddress } from '../core/env/settings.ts'
import { readSettings } from '../core/env/settings.ts'
import type { Host } from '../core/host.ts'
import type { ConditionName } from '../core/incidents/conditions.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Places } from '../core/next-step.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { WEB } from '../core/service.ts'
import { openStore } from '../core/store/open.ts'
import { within } from '../core/wait.ts'
import { alertChannels, startAlerts } from './alerts.ts'

/** The store that STORE_URL names, or else the file in the data folder. */
export function storeAddress(settings: Settings, dataFolder: string): StoreAddress {
  return settings.store.address ?? { kind: 'sqlite', file: path.join(dataFolder, 'platform.sqlite') }
}

/** The longest that the message of a refused start may hold up the end of the process. */
const REFUSAL_MS = 25_000

/** Sends an alert that this start was refused, because a process that does not start cannot send one later. */
export async function tellRefusal(
  host: Host,
  {
    env,
    platform,
    places,
    dataFolder,
    pointerFolder,
  }: {
    readonly env: Environment
    readonly platform: ResolvedPlatform
    readonly places: Places
    readonly dataFolder: string
    readonly pointerFolder?: string | undefined
  },
  cause: ConditionName | 'store',
  refused: string,
): Promise<void> {
  const settings = readSettings(platform, env)
  const channels = alertChannels(host.clock, platform, settings, places)
  if (channels.length === 0) return
  const store =
    cause === 'store'
      ? undefined
      : await openStore(storeAddress(settings, dataFolder), { log: host.log }).catch(() => undefined)
  // Without its store, a file remembers the message for the next start.
  const files = alertsFiles(dataFolder, pointerFolder)
  try {
    if (pointerFolder !== undefined) mkdirSync(pointerFolder, { recursive: true, mode: 0o755 })
    mkdirSync(dataFolder, { mode: 0o700 })
  } catch {
    // It is there, or cannot be made.
  }
  const alerts = startAlerts(host, { store: store ?? NO_STORE, platform, settings, channels, files })
  const result = {
    state: 'failing',
    checked: true,
    reason: `${refused}; the daemon refused to start`,
  } as const
  const report = { service: WEB, probes: { [cause]: result } }
  try {
    // An incident needs two failing checks in a row, so report the same result twice.
    await alerts.follow([report])
    // What nothing remembers, a supervisor that starts the daemon again and again would repeat each time.
    if (cause === 'store' && !files.some((file) => existsSync(file))) return
    await alerts.follow([report])
    await within(REFUSAL_MS, alerts.told(), () => {})
  } finally {
    await within(REFUSAL_MS, alerts.stop(), () => {})
    await store?.close()
  }
}

/** Stands in for a store that could not be opened: everything that is asked of it fails. */
const NO_STORE = {
  // Each property is such a function, whichever is read.
  incidents: new Proxy({} as IncidentStore, {
    get: () => () => Promise.reject(new Error('the store is not open')),
  }),
}
