import { HOUR_MS } from '../durations.ts'
import { isAboutPause } from './conditions.ts'
import type { MessageKind, MessageRecord, StoredIncident } from './incident.ts'

export const REMINDER_MS = 4 * HOUR_MS
/** A cause that opened this often within the window flaps: alert only once it has lasted. */
const FLAPS = 4
export const FLAP_WINDOW_MS = HOUR_MS
const LASTS_MS = 10 * 60 * 1000

export interface DueMessage {
  readonly incident: StoredIncident
  readonly kind: MessageKind
}

/** The messages due for one channel, oldest incident first. */
export function dueMessages({
  incidents,
  messages,
  channel,
  afterMs,
  now,
}: {
  readonly incidents: readonly StoredIncident[]
  readonly messages: readonly MessageRecord[]
  readonly channel: string
  /** The channel hears only of incidents that nobody acknowledges within this time. */
  readonly afterMs?: number | undefined
  readonly now: number
}): DueMessage[] {
  const recordOf = (id: string, kind: MessageKind) =>
    messages.find((one) => one.incident === id && one.kind === kind && one.channel === channel)
  return incidents
    .toSorted((a, b) => a.openedAt - b.openedAt)
    .flatMap((incident): DueMessage[] =>
      kindsOf(incident, {
        incidents,
        afterMs,
        now,
        wasSent: (kind) => recordOf(incident.id, kind) !== undefined,
      })
        .filter((kind) => (recordOf(incident.id, kind)?.outcome ?? 'pending') === 'pending')
        .map((kind) => ({ incident, kind })),
    )
}

/** The messages due on these channels, and whether a silence or a pause of alerts holds them back. */
export function dueAlerts({
  channels,
  isQuiet,
  ...known
}: Omit<Parameters<typeof dueMessages>[0], 'channel' | 'afterMs'> & {
  readonly channels: readonly { readonly name: string; readonly afterMs?: number }[]
  /** A silence or a pause of alerts holds. */
  readonly isQuiet: boolean
}): readonly (DueMessage & { readonly channel: string; readonly held: boolean })[] {
  return channels.flatMap(({ name: channel, afterMs }) =>
    dueMessages({ ...known, channel, afterMs }).map((message) => ({
      ...message,
      channel,
      held: isQuiet && !isAboutPause(message.incident.cause),
    })),
  )
}

function kindsOf(
  incident: StoredIncident,
  {
    incidents,
    afterMs,
    now,
    wasSent,
  }: {
    readonly incidents: readonly StoredIncident[]
    readonly afterMs: number | undefined
    readonly now: number
    readonly wasSent: (kind: MessageKind) => boolean
  },
): MessageKind[] {
  const { closedAt, openedAt, acknowledgedAt } = incident
  const opened = wasSent('opened')
  // Skip an incident that closed before its first alert was sent.
  if (closedAt !== undefined) return opened ? ['closed'] : []
  if (!opened && isFlapping(incident, incidents) && now - openedAt < LASTS_MS) return []
  if (afterMs !== undefined) {
    if (acknowledgedAt !== undefined) return opened ? ['acknowledged'] : []
    return now - openedAt >= afterMs ? ['opened'] : []
  }
  if (acknowledgedAt !== undefined) return opened ? ['opened', 'acknowledged'] : []
  const reminder = Math.floor((now - openedAt) / REMINDER_MS)
  return reminder > 0 && opened ? ['opened', `reminder-${reminder}`] : ['opened']
}

function isFlapping({ cause, openedAt }: StoredIncident, incidents: readonly StoredIncident[]): boolean {
  const recent = incidents.filter(
    (one) => one.cause === cause && one.openedAt <= openedAt && one.openedAt > openedAt - FLAP_WINDOW_MS,
  )
  return recent.length >= FLAPS
}
