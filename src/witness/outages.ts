import type { Clock } from '../core/host.ts'
import {
  type Hearing,
  type IncidentStore,
  type MessageKind,
  type StoredIncident,
  UNATTENDED,
} from '../core/incidents/incident.ts'
import { type AlertText, FAILS_AGAIN } from '../core/incidents/text.ts'
import { duration } from '../core/messages/en.ts'
import { minute } from '../core/sentences.ts'
import { isOutage, type Outage, type Round, type Seen } from './votes.ts'

/** Keeps the outages that this witness announces as incidents of its own store, from which alerts are sent. */
export function followOutages(
  clock: Clock,
  incidents: IncidentStore,
  channels: readonly Hearing[],
  self: string,
) {
  /** On every channel; another witness has sent it. */
  const sentElsewhere = (incident: string, kind: MessageKind, at: number) =>
    channels.map(({ name: channel }) => ({ incident, kind, channel, at }))
  return async (
    { after, announces, seen }: Round,
    outage: Outage | undefined,
    /** Why this witness could not reach the platform. */
    reason: string | undefined,
  ): Promise<void> => {
    const now = clock.now()
    /** It was told from elsewhere: by a witness that is gone, or by this one while its disk was full. */
    const isUnknown = outage?.phase === 'open' && (await incidents.find(outage.id)) === undefined
    const isOurs = announces === 'closed' || (announces === undefined && outage?.by === self)
    const inherited = isUnknown && isOurs ? outage : undefined
    const begun = announces === 'open' ? outage : inherited
    const openedAt = Math.min(begun?.since ?? now, now)
    const opened = begun && {
      id: begun.id,
      cause: 'platform',
      service: self,
      reason: inherited ? undefined : reasonOf(seen, self, reason),
      affected: [],
      openedAt,
      seenAt: openedAt,
      ...UNATTENDED,
      closedAt: inherited && announces === 'closed' ? now : undefined,
    }
    // An outage may be over while those whom its end needs are gone, so that nobody may announce it.
    const hearing = isOutage(after) ? channels : channels.map((one) => ({ ...one, takes: isNoReminder }))
    await incidents.follow({
      now,
      channels: hearing,
      decide(open) {
        const over = open.filter(({ id }) => id !== after.outage?.id)
        const closed = over.filter(({ id }) => announces !== 'closed' && after.closed.includes(id))
        return {
          opens: opened ? [opened] : [],
          // At once, also where the clock was set back by more than the outage lasted.
          closes: over.map(({ cause, seenAt }) => ({ cause, at: now, unseenSince: Math.max(now, seenAt) })),
          told: [
            ...(inherited ? sentElsewhere(inherited.id, 'opened', now) : []),
            ...closed.flatMap(({ id }) => sentElsewhere(id, 'closed', now)),
          ],
        }
      },
    })
  }
}

const isNoReminder = (kind: MessageKind) => !kind.startsWith('reminder')

function reasonOf({ unreachable, reachable, configured }: Seen, self: string, reason: string | undefined) {
  return [
    `unreachable from ${unreachable.join(', ')}`,
    ...(reachable.length === 0 ? [] : [`reachable from ${reachable.join(', ')}`]),
    `seen by ${unreachable.length} of ${configured}`,
    ...(reason === undefined ? [] : [`from ${self}: ${reason}`]),
  ].join('; ')
}

export function outageText(
  { reason, openedAt, closedAt, seenAt, failsAgain }: StoredIncident,
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
      title: `${platform}${failsAgain ? FAILS_AGAIN : ' is reachable again'}`,
      lines: [
        `It was unreachable for ${duration((closedAt ?? seenAt) - openedAt)}, since ${minute(openedAt)}.`,
      ],
    }
  return {
    title: `${platform} is ${kind === 'opened' ? '' : 'still '}unreachable`,
    lines: [...(reason === undefined ? [] : [`Seen: ${reason}.`]), `Since: ${minute(openedAt)}.`],
  }
}
