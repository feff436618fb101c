import { type Clock, systemClock, type Timer } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Held } from '../mail/holds.ts'
import { isAboutPause } from './conditions.ts'
import { dueMessages, FLAP_WINDOW_MS } from './due.ts'
import type { IncidentStore, MessageKind, MessageRecord, StoredIncident } from './incident.ts'

/** Outcome of one attempt; `transient` is retried. */
export type AlertOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'transient' | 'permanent'; readonly reason: string }

/** A way to send alerts. `tell` never rejects, and uses the same `id` for every attempt. */
export interface Channel {
  readonly name: string
  /** It hears only of incidents that nobody acknowledges within this time. */
  readonly afterMs?: number
  /** It publishes what others send, so that a pause of alerts does not concern it. */
  readonly publishes?: true
  /** Selects the messages it sends; all when left out. */
  readonly takes?: (kind: MessageKind, incident: StoredIncident) => boolean
  tell(message: {
    readonly id: string
    readonly kind: MessageKind
    readonly incident: StoredIncident
  }): Promise<AlertOutcome>
}

/** A crash leaves a message to others after this. A mail server may take longer: meanwhile the claim is renewed. */
const LEASE_MS = 90_000
const RENEW_MS = 30_000
/** The pause after each failed attempt. When they are used up, the message is given up. */
const BACKOFF_MS = [15_000, 60_000, 5 * 60_000, 15 * 60_000, 60 * 60_000, 3 * 60 * 60_000, 6 * 60 * 60_000]

/** The same for every attempt, so that a receiver can recognize a repeat. */
export function alertMessageId(incident: string, kind: MessageKind): string {
  return `alert.${incident}.${kind}`
}

/** All that decides which messages are due on these channels. */
export async function unfinishedIn(
  store: Pick<IncidentStore, 'unfinished' | 'messages'>,
  channels: readonly Pick<Channel, 'name'>[],
  now: number,
): Promise<{ readonly incidents: readonly StoredIncident[]; readonly messages: readonly MessageRecord[] }> {
  const names = channels.map(({ name }) => name)
  const incidents = await store.unfinished({ channels: names, since: now - FLAP_WINDOW_MS })
  return { incidents, messages: await store.messages(incidents.map(({ id }) => id)) }
}

/** Sends what is due on every channel: each message once, however many processes share the store. */
export async function sendDueAlerts({
  store,
  channels,
  held = async () => undefined,
  clock,
  timer = systemClock,
  log,
}: {
  readonly store: IncidentStore
  readonly channels: readonly Channel[]
  readonly held?: Held | undefined
  readonly clock: Pick<Clock, 'now'>
  readonly timer?: Pick<Timer, 'sleep'>
  readonly log: Log
}): Promise<void> {
  if (channels.length === 0) return
  const { incidents, messages } = await unfinishedIn(store, channels, clock.now())
  await Promise.all(
    channels.map(async (channel) => {
      const { name, afterMs } = channel
      const due = dueMessages({ incidents, messages, channel: name, afterMs, now: clock.now() })
      // In order: the end of an incident is never sent before its beginning.
      for (const { incident, kind } of due) {
        // Before each, because a silence may begin while a slow channel sends the one before.
        const leaves = isAboutPause(incident.cause)
        if (!leaves && (await store.silenceAt(clock.now())) !== undefined) continue
        // A hold that cannot be read keeps back no alert: its store may be what the alert is about.
        const hold = leaves || channel.publishes ? undefined : await held('alert').catch(() => undefined)
        if (hold === undefined && (channel.takes?.(kind, incident) ?? true))
          await tellOne({ store, channel, incident, kind, clock, timer, log })
      }
    }),
  )
}

/** Claims one message, sends it and records what became of it. A crash in between leaves it to the next claim, under the same id. */
async function tellOne({
  store,
  channel,
  incident,
  kind,
  clock,
  timer,
  log,
}: {
  readonly store: IncidentStore
  readonly channel: Channel
  readonly incident: StoredIncident
  readonly kind: MessageKind
  readonly clock: Pick<Clock, 'now'>
  readonly timer: Pick<Timer, 'sleep'>
  readonly log: Log
}): Promise<AlertOutcome | undefined> {
  const key = { incident: incident.id, kind, channel: channel.name }
  const attempt = await store.claim({ ...key, now: clock.now(), leaseMs: LEASE_MS })
  if (attempt === undefined) return undefined
  const over = new AbortController()
  const renewing = (async () => {
    for (;;) {
      await timer.sleep(RENEW_MS, over.signal)
      // A store that fails for a moment is asked again before the lease ends.
      await store.renew({ ...key, attempt, leaseMs: LEASE_MS }).catch(() => {})
    }
  })().catch(() => {})
  const outcome = await channel.tell({ id: alertMessageId(incident.id, kind), kind, incident })
  over.abort()
  await renewing
  const now = clock.now()
  const pause = outcome.kind === 'transient' ? BACKOFF_MS[attempt - 1] : undefined
  const recorded = outcome.kind === 'sent' ? 'sent' : pause === undefined ? 'failed' : 'pending'
  const reason = outcome.kind === 'sent' ? undefined : outcome.reason
  await store.settle({ ...key, attempt, outcome: recorded, now, nextAt: now + (pause ?? 0), reason })
  const facts = { ...key, attempt, ...(reason !== undefined && { reason }) }
  if (recorded === 'sent') log.info('alert_sent', 'an alert was sent', facts)
  else
    log.warn(
      'alert_not_sent',
      recorded === 'failed'
        ? 'an alert could not be sent and was given up'
        : 'an alert could not be sent; it is tried again',
      facts,
    )
  return outcome
}
