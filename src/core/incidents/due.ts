import { HOUR_MS, MINUTE_MS } from '../durations.ts'
import { ABOUT_PAUSES } from './conditions.ts'
import type { Hearing, MessageKind, MessageRecord, QueuedAlert, StoredIncident } from './incident.ts'
import { SUBSCRIBERS } from './incident.ts'

export const REMINDER_MS = 4 * HOUR_MS
/** A cause that opened this often within an hour flaps: alert only once it has lasted, or a reminder would be due. */
const FLAPS = 4
const LASTS_MS = 10 * MINUTE_MS

/** An alert that a channel sends next about an incident, and not before when. */
type PlannedAlert = Omit<QueuedAlert, 'leaves'>

/**
 * The next alert for each incident and channel, if any. `incidents` hold all that opened since the last reminder;
 * `told` has the latest first; `quietUntil` is when the last silence or pause of alerts ended, from which an escalation counts.
 */
export function plannedAlerts(
  incidents: readonly StoredIncident[],
  told: readonly MessageRecord[],
  channels: readonly Hearing[],
  now: number,
  quietUntil = 0,
): readonly PlannedAlert[] {
  // Whoever was told could acknowledge from then on, whatever was silenced since.
  const heldUntil = (id: string) =>
    Math.min(quietUntil, told.findLast((one) => one.incident === id && isBeginning(one))?.at ?? quietUntil)
  return incidents.flatMap((incident) =>
    channels.flatMap((hearing) => {
      const { name: channel, takes = () => true } = hearing
      const heard = told.filter((one) => one.channel === channel)
      const records = heard.filter((one) => one.incident === incident.id)
      const next = nextAlert(
        incident,
        hearing,
        records,
        isFlapping(incident, incidents, heard),
        now,
        heldUntil(incident.id),
      )
      if (next === undefined || !takes(next.kind, incident)) return []
      return { incident: incident.id, channel, ...next }
    }),
  )
}

const isBeginning = ({ kind, outcome, channel }: MessageRecord) =>
  kind === 'opened' && outcome === 'sent' && channel !== SUBSCRIBERS

/** What was tried counts as sent, because it may have arrived; what was not given up is tried again. */
function nextAlert(
  { cause, openedAt, closedAt, acknowledgedAt }: StoredIncident,
  { afterMs }: Hearing,
  records: readonly MessageRecord[],
  isFlapping: boolean,
  now: number,
  quietUntil: number,
): Pick<PlannedAlert, 'kind' | 'at'> | undefined {
  const recordOf = (kind: MessageKind) => records.find((one) => one.kind === kind)
  const isLeft = (kind: MessageKind) => (recordOf(kind)?.outcome ?? 'pending') === 'pending'
  const once = (kind: MessageKind, at: number) => (isLeft(kind) ? { kind, at } : undefined)
  const isTold = recordOf('opened') !== undefined
  // An incident that closed, or that somebody acknowledged, before its first alert was sent raises none.
  if (!isTold && (closedAt ?? acknowledgedAt) !== undefined) return undefined
  if (closedAt !== undefined) return once('closed', closedAt)
  const toldAt =
    afterMs === undefined || ABOUT_PAUSES.includes(cause) ? openedAt : Math.max(openedAt, quietUntil)
  const from = isTold ? openedAt : Math.max(toldAt + (afterMs ?? 0), openedAt + (isFlapping ? LASTS_MS : 0))
  const opened = once('opened', from)
  if (opened) return opened
  if (acknowledgedAt !== undefined) return once('acknowledged', acknowledgedAt)
  if (afterMs !== undefined) return undefined
  const latest = Math.floor((now - openedAt) / REMINDER_MS)
  const number = latest > 0 && isLeft(`reminder-${latest}`) ? latest : Math.max(0, latest) + 1
  return { kind: `reminder-${number}`, at: openedAt + number * REMINDER_MS }
}

/** Whether a cause comes and goes, and the channel heard of it no longer ago than of one that lasts. */
function isFlapping(
  { cause, openedAt }: StoredIncident,
  incidents: readonly StoredIncident[],
  heard: readonly MessageRecord[],
): boolean {
  const within = (ms: number) =>
    incidents.filter((one) => one.cause === cause && one.openedAt <= openedAt && one.openedAt > openedAt - ms)
  const told = within(REMINDER_MS).some(({ id }) => heard.some(({ incident }) => incident === id))
  return told && within(HOUR_MS).length >= FLAPS
}
