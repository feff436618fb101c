import type { Clock } from '../core/clock.ts'
import type { Settings } from '../core/env/settings.ts'
import type { HealthReport } from '../core/health/probe.ts'
import { adviceFor } from '../core/incidents/advice.ts'
import { followRound, type Streaks } from '../core/incidents/causes.ts'
import { ALERT, mailChannel, webhookChannel } from '../core/incidents/channels.ts'
import type { IncidentStore, MessageKind, StoredIncident } from '../core/incidents/incident.ts'
import { type Channel, tellDue } from '../core/incidents/teller.ts'
import { alertText } from '../core/incidents/text.ts'
import type { Log } from '../core/log.ts'
import { openMailer } from '../core/mail/open.ts'
import type { Platform } from '../core/platform.ts'
import type { Random } from '../core/random.ts'
import { createLabels } from '../core/status/words.ts'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { meaningOf } from './status.ts'

/** Another machine that saw the cause fail within this time keeps its incident open. */
const SEEN_ELSEWHERE_MS = 150_000
const OPEN_LOOKED_AT = 200

/** The channels that the environment configures. */
export function alertChannels({
  platform,
  settings,
  clock,
}: {
  readonly platform: Platform
  readonly settings: Settings
  readonly clock: Clock
}): Channel[] {
  const { alerts, mail } = settings
  const labels = createLabels(platform)
  const textOf = (incident: StoredIncident, kind: MessageKind) =>
    alertText({
      incident,
      kind,
      platform: platform.name,
      advice: adviceFor(incident.cause, {
        label: labels.probe(incident.cause),
        isService: labels.isService(incident.cause),
        absent: meaningOf(platform, incident.cause, labels.messages),
      }),
    })
  return [
    ...(alerts.webhook === undefined ? [] : [webhookChannel({ ...alerts.webhook, textOf, clock })]),
    ...(alerts.mailTo === undefined || mail === undefined
      ? []
      : [
          mailChannel({
            open: (compiled) => openMailer({ mail, compiled: async () => ({ [ALERT]: compiled }) }),
            to: alerts.mailTo,
            textOf,
            clock,
          }),
        ]),
  ]
}

export interface Alerts {
  /** Takes a round of looks; true: what it saw for the first time should be looked at again soon. */
  follow(reports: readonly HealthReport[]): Promise<boolean>
  /** Resolves when what is being told has been. */
  told(): Promise<void>
  stop(): Promise<void>
}

/**
 * Turns rounds into incidents, and tells what is due after each. While the store itself fails, incidents are kept in
 * memory and told from there: a fault of the store must not keep the news of it.
 */
export function startAlerts({
  store,
  channels,
  clock,
  random,
  log,
}: {
  readonly store: Store
  readonly channels: readonly Channel[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}): Alerts {
  let streaks: Streaks = new Map()
  let telling: Promise<void> | undefined
  let spare: Promise<Store> | undefined
  let following: Promise<boolean> = Promise.resolve(false)
  let stopped = false

  /** The next streaks are kept only when the store took what they mean. */
  async function followIn(
    incidents: IncidentStore,
    reports: readonly HealthReport[],
    idOf: (cause: string) => string,
  ) {
    const now = clock.now()
    const open = (await incidents.list(OPEN_LOOKED_AT)).filter(({ closedAt }) => closedAt === undefined)
    const round = followRound({ streaks, reports, open: open.map(({ cause }) => cause) })
    for (const { cause, reason, affected } of round.causes)
      await incidents.seen({ cause, reason, affected, now })
    for (const cause of round.opens)
      await incidents.open({
        ...cause,
        id: idOf(cause.cause),
        openedAt: now,
        seenAt: now,
        closedAt: undefined,
        acknowledgedAt: undefined,
        acknowledgedBy: undefined,
      })
    for (const cause of round.closes)
      await incidents.close({ cause, now, unseenSince: now - SEEN_ELSEWHERE_MS })
    return round.streaks
  }

  const tell = (incidents: IncidentStore) => {
    telling ??= tellDue({ store: incidents, channels, clock, log })
      .catch((error: unknown) =>
        log.error('alerts_failed', 'incidents could not be told; the next round tries again', {
          fault: error instanceof Error ? error.name : 'unknown',
        }),
      )
      .finally(() => {
        telling = undefined
      })
  }

  async function follow(reports: readonly HealthReport[]): Promise<boolean> {
    let next: Streaks
    try {
      const idOf = () => Buffer.from(random.bytes(9)).toString('base64url')
      next = await followIn(store.incidents, reports, idOf)
      tell(store.incidents)
    } catch {
      spare ??= openStore(undefined)
      const { incidents } = await spare
      // The same on every machine, so that a receiver takes their messages for one.
      next = await followIn(incidents, reports, (cause) => `${cause}-${Math.floor(clock.now() / 600_000)}`)
      tell(incidents)
    }
    streaks = next
    return [...next.values()].includes(1)
  }

  return {
    async follow(reports) {
      if (stopped) return false
      following = follow(reports)
      return following
    },
    told: async () => telling,
    async stop() {
      stopped = true
      await following
      await telling
      await (await spare)?.close()
    },
  }
}
