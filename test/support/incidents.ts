import { type Host, type Log, silentLog, systemClock, systemRandom, type Timer } from '../../src/core/host.ts'
import { type Channel, createAlertLanes } from '../../src/core/incidents/channels.ts'
import type { Changes, Hearing, IncidentStore, StoredIncident } from '../../src/core/incidents/incident.ts'
import type { Held } from '../../src/core/mail/holds.ts'

/** An open incident of the mail, unless the parts say otherwise. */
export const incidentWith = (
  parts: Partial<StoredIncident> & { readonly openedAt: number },
): StoredIncident => ({
  id: 'one',
  cause: 'mail',
  service: 'web',
  reason: undefined,
  affected: [],
  seenAt: parts.openedAt,
  closedAt: undefined,
  acknowledgedAt: undefined,
  acknowledgedBy: undefined,
  ...parts,
})

/** What a round changes, whatever it finds open, with the alerts that follow on these channels. */
export const change = (
  incidents: IncidentStore,
  now: number,
  changes: Changes,
  channels: readonly Hearing[] = [],
) => incidents.follow({ now, channels, decide: () => changes })

/** Opens an incident at its time; false if one with its cause is open. */
export async function openIncident(incidents: IncidentStore, incident: StoredIncident): Promise<boolean> {
  await change(incidents, incident.seenAt, { opens: [incident] })
  return (await incidents.find(incident.id))?.cause === incident.cause
}

export async function closeIncident(
  incidents: IncidentStore,
  cause: string,
  at: number,
  unseenSince = at,
): Promise<void> {
  await change(incidents, at, { closes: [{ cause, at, unseenSince }] })
}

export const channelOf = (
  name: string,
  tell: Channel['tell'] = async ({ id }) => ({ kind: 'sent', id }),
  more: Partial<Channel> = {},
): Channel => ({ ...{ name, tell, lines: 5, patienceMs: 60_000 }, ...more })

export const hostAt = (now: () => number, log: Partial<Log> = {}, timer: Timer = systemClock): Host => ({
  clock: { ...systemClock, now },
  timer,
  random: systemRandom,
  log: { ...silentLog, ...log },
})

/** A round that finds nothing new, and all that it tells. */
export async function tellDue(
  host: Host,
  incidents: IncidentStore,
  channels: readonly Channel[],
  held?: Held,
): Promise<void> {
  await change(incidents, host.clock.now(), {}, channels)
  await Promise.all(createAlertLanes(host, incidents, channels, held).map((wake) => wake()))
}
