import { createEngine } from '../delivery/engine.ts'
import { messageJob, messageSettlement } from '../delivery/messages.ts'
import { ALERT, isAnswer } from '../delivery/retries.ts'
import type { Source } from '../delivery/source.ts'
import type { Host } from '../host.ts'
import type { Held } from '../mail/holds.ts'
import type { SendOutcome } from '../mail/mailer.ts'
import { ABOUT_PAUSES } from './conditions.ts'
import type { AlertClaim, Hearing, IncidentStore, MessageKind, StoredIncident } from './incident.ts'

export interface Alert {
  /** The same for every attempt, so that a receiver can recognize a repeat. */
  readonly id: string
  readonly kind: MessageKind
  readonly incident: StoredIncident
  /** What it is about happened then: the Date of a mail. */
  readonly at: number
}

export interface Channel extends Hearing, Pick<Source<AlertClaim>, 'lines' | 'patienceMs'> {
  /** Never rejects. */
  tell(alert: Alert, signal?: AbortSignal): Promise<SendOutcome>
}

export const alertId = (incident: string, kind: MessageKind) => `alert.${incident}.${kind}`

/** Sends the alerts that a store has queued, each channel in a lane of its own, so that one that hangs holds up no other. */
export function createAlertLanes(
  host: Host,
  store: IncidentStore,
  channels: readonly Channel[],
  held: Held = async () => undefined,
  signal?: AbortSignal,
): readonly (() => Promise<number>)[] {
  const { clock, log } = host
  return channels.map((channel) => {
    const { name, lines, patienceMs } = channel
    async function isQuiet(): Promise<boolean> {
      if ((await store.silenceAt(clock.now())) !== undefined) return true
      // A hold that cannot be read keeps back no alert: its store may be what the alert is about.
      return (await held('alert').catch(() => undefined)) !== undefined
    }
    const source: Source<AlertClaim> = {
      stream: ALERT,
      lines,
      patienceMs,
      jobOf: (claim) => ({ ...messageJob(claim), untilTaken: claim.kind === 'closed' }),
      claim: async (asked) => store.claimAlerts({ ...asked, channel: name, quiet: await isQuiet() }),
      keep: (messages, leaseMs) => store.keepAlerts({ messages, now: clock.now(), leaseMs }),
      async prepare({ incident: id, kind, createdAt: at, said }) {
        const found = await store.find(id)
        if (found === undefined || isPast(kind, found)) return { kind: 'over' }
        const incident = { ...found, ...said }
        // Again, because a silence may begin while a slow channel sends the one before.
        if (!ABOUT_PAUSES.includes(incident.cause) && (await isQuiet())) return { kind: 'untried' }
        return { handOver: (over) => channel.tell({ id: alertId(id, kind), kind, incident, at }, over) }
      },
      settle: (attempted) =>
        store.settleAlerts(
          attempted.map((one) => ({ ...messageSettlement(one), isTried: isAnswer(one.delivery) })),
        ),
      tell({ claim: { incident, kind, channel: by, attempt }, record, delivery }) {
        const facts = { incident, kind, channel: by, attempt }
        const then = record.result === 'over' ? ' and was given up' : '; it is tried again'
        if (delivery.kind === 'sent') log.info('alert_sent', 'an alert was sent', facts)
        else if (isAnswer(delivery))
          log.warn('alert_not_sent', `an alert was not sent${then}`, { ...facts, reason: delivery.reason })
      },
    }
    return createEngine(host, source, signal).wake
  })
}

/** Changed since it was queued: something else is queued in its place. */
const isPast = (kind: MessageKind, { closedAt, acknowledgedAt }: StoredIncident) =>
  (closedAt !== undefined && kind !== 'closed') ||
  (acknowledgedAt !== undefined && kind.startsWith('reminder'))
