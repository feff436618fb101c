import { existsSync, mkdirSync } from 'node:fs'
import { alertsFiles, recordRefusal } from '../core/daemon-record.ts'
import { readSettings } from '../core/env/settings.ts'
import { faultName, storeFault, storeFaultReason } from '../core/errors.ts'
import { type Host, within } from '../core/host.ts'
import type { ConditionName } from '../core/incidents/advice.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import { attempt } from '../core/is-record.ts'
import { WEB } from '../core/service.ts'
import { openStore } from '../core/store/open.ts'
import { alertChannels, startAlerts } from './alerts.ts'
import { InvalidEnvironmentError } from './announce.ts'
import { placesOf, type Started, storeAddress } from './options.ts'

/** The longest that the message of a refused start may hold up the end of the process. */
const REFUSAL_MS = 25_000
/** Errors whose text holds no value. */
const SAYS_WHY = ['CommandError', 'DefinitionError', 'ListenError', 'StoreOpenError', 'TemplateError']

/** Sends an alert that this start was refused, because a process that does not start cannot send one later. */
export async function tellRefusal(host: Host, options: Started, error: unknown, isStore: boolean) {
  // No alert about a store of another platform: its channels are the other platform's too.
  if (isStore && storeFault(error) === 'other_platform') return
  const [cause, refused] = refusalOf(error, isStore)
  const { env, platform, dataFolder, pointerFolder } = options
  const settings = readSettings(platform, env)
  const channels = alertChannels(host.clock, platform, settings, placesOf(options), isStore)
  // It is there, or cannot be made.
  if (channels.length > 0) attempt(() => mkdirSync(dataFolder, { mode: 0o700 }))
  const startedAt = new Date(host.clock.now()).toISOString()
  recordRefusal(dataFolder, `the start of ${startedAt} was refused: ${refused}`)
  if (channels.length === 0) return
  const store =
    cause === 'store' || settings.store.malformed.length > 0
      ? undefined
      : await openStore(storeAddress(settings, dataFolder), { log: host.log }).catch(() => undefined)
  const owner = await store?.owner.name().catch(() => undefined)
  if (owner !== undefined && owner !== platform.name) return store?.close()
  // Without its store, a file remembers the message for the next start.
  const files = alertsFiles(dataFolder, pointerFolder)
  if (pointerFolder !== undefined) attempt(() => mkdirSync(pointerFolder, { recursive: true, mode: 0o755 }))
  const parts = { store: store ?? NO_STORE, platform, settings, channels, dataFolder, files }
  const holds = async () => store?.sending.holds().catch(() => undefined)
  const held = async (stream: string) => (await holds())?.find((one) => one.stream === stream)
  const alerts = startAlerts(host, { ...parts, held, isRefused: true })
  const reason = `${refused}; the daemon refused to start`
  const report = { service: WEB, probes: { [cause]: { state: 'failing', checked: true, reason } as const } }
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

function refusalOf(error: unknown, isStore: boolean): readonly [ConditionName | 'store', string] {
  if (error instanceof InvalidEnvironmentError) {
    const groups = [...new Set(error.findings.map(({ group }) => group))].join(', ')
    return ['half_configured', `half-configured: ${groups}`]
  }
  const cause = isStore ? 'store' : 'start_refused'
  // Not a fault's own text elsewhere: it can quote anything.
  if (error instanceof Error && SAYS_WHY.includes(error.name))
    return [cause, error.message.split('\n', 1).join().replace(/\.$/, '')]
  return [cause, isStore ? storeFaultReason(error) : `it met a fault (${faultName(error)}): see its output`]
}

/** Stands in for a store that could not be opened: everything that is asked of it fails. */
const NO_STORE = {
  // Each property is such a function, whichever is read.
  incidents: new Proxy({} as IncidentStore, {
    get: () => () => Promise.reject(new Error('the store is not open')),
  }),
}
