import type { Clock } from '../core/clock.ts'
import type { IncidentStore, MessageKind, StoredIncident } from '../core/incidents/incident.ts'
import type { Channel } from '../core/incidents/teller.ts'
import { type AlertText, duration, minute } from '../core/incidents/text.ts'
import type { Outage, Seen, Voting } from './votes.ts'

const CAUSE = 'platform'

/** Keeps the outages that this witness announces as incidents of its own store, from which alerts are sent. */
export function openOutages({
  incidents,
  channels,
  self,
  clock,
}: {
  readonly incidents: IncidentStore
  readonly channels: readonly Channel[]
  readonly self: string
  readonly clock: Pick<Clock, 'now'>
}) {
  const open = (id: string, openedAt: number, reason: string | undefined) =>
    incidents.open({
      id,
      cause: CAUSE,
      service: self,
      reason,
      affected: [],
      openedAt,
      seenAt: openedAt,
      closedAt: undefined,
      acknowledgedAt: undefined,
      acknowledgedBy: undefined,
    })
  /** Another witness has sent this message. */
  const sentElsewhere = async (incident: string, kind: MessageKind) => {
    for (const { name: channel } of channels) {
      const [key, now] = [{ incident, kind, channel }, clock.now()]
      await incidents.claim({ ...key, now, leaseMs: 0 })
      await incidents.settle({ ...key, outcome: 'sent', now, nextAt: now, reason: undefined })
    }
  }
  return {
    async follow({
      after,
      announces,
      outage,
      seen,
      reason,
    }: {
      readonly after: Voting
      readonly announces: 'open' | 'closed' | undefined
      readonly outage: Outage | undefined
      readonly seen: Seen
      readonly reason: string | undefined
    }): Promise<void> {
      const now = clock.now()
      await incidents.rewind(now)
      if (announces === 'open' && outage)
        await open(outage.id, Math.min(outage.since, now), reasonOf(seen, self, reason))
      if (announces === 'closed' && outage && outage.by !== self) {
        // The witness that announced it is gone: this one ends it.
        await open(outage.id, Math.min(outage.since, now), undefined)
        await sentElsewhere(outage.id, 'opened')
      }
      for (const { id } of (await incidents.list(0)).filter((one) => one.closedAt === undefined)) {
        if (id === after.outage?.id) continue
        if (announces !== 'closed' && after.closed.includes(id)) await sentElsewhere(id, 'closed')
        await incidents.close({ cause: CAUSE, now, unseenSince: now })
      }
    },
  }
}

function reasonOf(
  { unreachable, reachable, configured }: Seen,
  self: string,
  reason: string | undefined,
): string {
  return [
    `unreachable from ${unreachable.join(', ')}`,
    ...(reachable.length === 0 ? [] : [`reachable from ${reachable.join(', ')}`]),
    `seen by ${unreachable.length} of ${configured}`,
    ...(reason === undefined ? [] : [`from ${self}: ${reason}`]),
  ].join('; ')
}

/** The text of an alert of a witness. */
export function outageText(
  { reason, openedAt, closedAt, seenAt }: StoredIncident,
  kind: MessageKind,
  platform: string,
): AlertText {
  if (kind === 'test')
    return {
      title: `${platform}: test alert`,
      lines: ['Nothing is wrong. Alerts of this witness arrive here.'],
    }
  if (kind === 'closed')
    return {
      title: `${platform} is reachable again`,
      lines: [
        `It was unreachable for ${duration((closedAt ?? seenAt) - openedAt)}, since ${minute(openedAt)}.`,
      ],
    }
  return {
    title: `${platform} is ${kind === 'opened' ? '' : 'still '}unreachable`,
    lines: [...(reason === undefined ? [] : [`Seen: ${reason}.`]), `Since: ${minute(openedAt)}.`],
  }
}
