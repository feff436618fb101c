import type { Settings } from '../core/env/settings.ts'
import { within } from '../core/host.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Messages } from '../core/messages/en.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { History, Recorded, RootIncident } from '../core/status/history.ts'

/** The store's part of this machine's record. */
type FromStore = Pick<Recorded, 'shared' | 'announcements' | 'updates'>

/** Another process may write the same file: what is read serves no longer than this. */
const SERVES_MS = 10_000

/**
 * The history for readers: read from the file once a round, however many visitors come. `fromStore` gives what
 * operators announced, and the incidents of a store that several machines share, so that each shows the same; while it
 * cannot be read, the page shows what this machine saw. Without a history of its own, a program shows `shared`.
 */
export function statusSource(
  history: History | undefined,
  fromStore: (now: number) => Promise<FromStore> = async () => ({}),
  shared: (now: number) => Promise<Recorded | undefined> = async () => undefined,
) {
  let cached: { readonly at: number; readonly recorded: Promise<Recorded> } | undefined
  /** What operators said, as last read: visitors need it most while the store fails. */
  let said: Omit<FromStore, 'shared'> = {}
  /** `none`: no daemon records here. `memory`: it does, but the record ends with the process. */
  const recorded: 'none' | 'memory' | 'file' = !history ? 'none' : history.persistent ? 'file' : 'memory'
  return {
    recorded,
    /** UTC milliseconds; what is recorded before is sample data. */
    get sampleUntil() {
      return history?.sampleUntil
    },
    read(now: number): Promise<Recorded> {
      if (cached === undefined || Math.abs(now - cached.at) >= SERVES_MS) {
        const recorded = Promise.all([
          history ? history.read(now) : orNothing(shared(now), NOTHING),
          orNothing(fromStore(now), {}),
        ]).then(([own, { shared, ...stored }]) => {
          said = { ...said, ...stored }
          return { ...own, ...said, ...(shared && { shared }) }
        })
        cached = { at: now, recorded }
        // A failed read is tried again, and the first minute is waited for by nobody.
        const forget = () => {
          if (cached?.recorded === recorded) cached = undefined
        }
        recorded.then(({ series }) => series.length === 0 && forget(), forget)
      }
      return cached.recorded
    },
  }
}

const NOTHING: Recorded = { series: [], incidents: [], builds: [] }
/** The longest wait for a store that hangs, because that is when people open this page. */
const STORE_WITHIN_MS = 1000

async function orNothing<T>(stored: Promise<T | undefined>, nothing: T): Promise<T> {
  const none = () => nothing
  return (await within(STORE_WITHIN_MS, stored, none).catch(none)) ?? nothing
}

const SHARED_SHOWN = 200

/** The stored incidents as the status page shows them: those of probes and services; what is only for operators is left out. */
export async function sharedIncidents(
  store: IncidentStore,
  { probes, contract }: Pick<ResolvedPlatform, 'probes' | 'contract'>,
  now: number,
): Promise<readonly RootIncident[]> {
  const shown = new Set([...probes.map(({ name }) => name), ...contract.services])
  const incidents = (await store.list(SHARED_SHOWN)).filter(({ cause }) => shown.has(cause))
  return incidents.map(({ cause: probe, service, reason, affected: feltBy, openedAt: beganAt, closedAt }) => {
    const lengthMs = Math.max(0, (closedAt ?? now) - beganAt)
    return { service, probe, state: 'failing', reason, beganAt, endedAt: closedAt, lengthMs, feltBy }
  })
}

/** Where a probe looks, for operators: addresses that are not secrets, as an origin without a path. */
export function targetOf({ probes }: ResolvedPlatform, settings: Settings, probe: string) {
  const url = probes.find(({ name, target }) => name === probe && target !== undefined)?.target?.(settings)
  return url === undefined || !URL.canParse(url) ? undefined : new URL(url).origin
}

/** Consequence of leaving a probe, or a whole group, unconfigured. */
export function meaningOf({ probes, contract }: ResolvedPlatform, name: string, { status }: Messages) {
  const probe = probes.find((one) => one.name === name)
  const group = probe?.group ?? name
  const neighbour = probe !== undefined && contract.services.includes(name)
  return (
    (neighbour ? status.addressNotSet : probe?.meaning) ??
    status.absent[group] ??
    contract.group(group)?.absent ??
    status.nothingDependsOnIt
  )
}
