import type { Clock } from '../core/clock.ts'
import { MINUTE_MS, MOST_SKEW_MS } from '../core/durations.ts'
import type { Settings } from '../core/env/settings.ts'
import { heartbeatProbeName } from '../core/heartbeats.ts'
import { adviceFor } from '../core/incidents/advice.ts'
import { type Cause, followRound, type RoundReport, type Streaks } from '../core/incidents/causes.ts'
import { ALERT, mailChannel, webhookChannel } from '../core/incidents/channels.ts'
import { CONDITIONS } from '../core/incidents/conditions.ts'
import type { IncidentStore, MessageKind, StoredIncident } from '../core/incidents/incident.ts'
import { prerequisitesOf } from '../core/incidents/prerequisites.ts'
import { type Channel, sendDueAlerts, unfinishedIn } from '../core/incidents/teller.ts'
import { alertText } from '../core/incidents/text.ts'
import type { Log } from '../core/log.ts'
import type { Held } from '../core/mail/holds.ts'
import { openMailer } from '../core/mail/open.ts'
import type { Places } from '../core/next-step.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Random } from '../core/random.ts'
import { createLabels } from '../core/status/words.ts'
import type { Store } from '../core/store/store.ts'
import { trailing } from '../core/trailing.ts'
import { type KnownAlerts, keptAlerts, openSpareAlerts, type SpareAlerts } from './spare-alerts.ts'
import { meaningOf } from './status.ts'

/** Another machine that saw the cause fail within this time keeps its incident open. */
const SEEN_ELSEWHERE_MS = 150_000
/** Every machine looks at its probes at least once within this. */
const SEEN_AGAIN_MS = 2 * MINUTE_MS

/** The channels that the environment configures. */
export function alertChannels({
  platform,
  settings,
  places,
  clock,
}: {
  readonly platform: ResolvedPlatform
  readonly settings: Settings
  readonly places?: Places
  readonly clock: Clock
}): Channel[] {
  const { alerts, mail } = settings
  const labels = createLabels(platform)
  const link = settings.value('NEXT_PUBLIC_SITE_URL') && `${settings.site.siteUrl}/`
  const heartbeats = new Set(platform.heartbeats.map(({ name }) => heartbeatProbeName(name)))
  const textOf = (incident: StoredIncident, kind: MessageKind) => {
    const advice = adviceFor(incident.cause, {
      label: labels.probe(incident.cause),
      isService: labels.isService(incident.cause),
      isHeartbeat: heartbeats.has(incident.cause),
      absent: meaningOf(platform, incident.cause, labels.messages),
    })
    return alertText({
      incident,
      kind,
      platform: platform.name,
      isService: labels.isService,
      places,
      link,
      advice,
    })
  }
  return [
    ...(alerts.webhook === undefined ? [] : [webhookChannel({ ...alerts.webhook, textOf, clock })]),
    ...(alerts.escalation === undefined
      ? []
      : [webhookChannel({ name: 'escalation', ...alerts.escalation, textOf, clock })]),
    ...(alerts.mailTo === undefined || mail === undefined
      ? []
      : [
          mailChannel({
            open: (compiled) => openMailer({ mail, compiled: async () => ({ [ALERT]: compiled }) }),
            to: alerts.mailTo,
            textOf,
          }),
        ]),
  ]
}

export interface Alerts {
  /** Takes one round of health checks. Resolves to true if it saw a new fault, which should be checked again soon. */
  follow(reports: readonly RoundReport[]): Promise<boolean>
  /** Resolves when the alerts in flight are sent. */
  told(): Promise<void>
  stop(): Promise<void>
}

async function knownOf(
  store: IncidentStore,
  channels: readonly Channel[],
  now: number,
): Promise<KnownAlerts> {
  return { ...(await unfinishedIn(store, channels, now)), silence: await store.silenceAt(now) }
}

/**
 * Turns rounds of health checks into incidents, and sends the alerts that are due after each. While the store fails,
 * incidents are kept in memory and in a file, and alerts are sent from there, so that a failing store also raises an alert.
 */
export function startAlerts({
  store,
  platform,
  settings,
  channels,
  held,
  clock,
  random,
  log,
  files = [],
}: {
  readonly store: Pick<Store, 'incidents'>
  /** Its probes and the conditions can be causes. */
  readonly platform: Pick<ResolvedPlatform, 'probes' | 'services'>
  readonly settings: Settings
  readonly channels: readonly Channel[]
  readonly held?: Held
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Where incidents outlive the process while the store fails: the first that can be written. */
  readonly files?: readonly string[]
}): Alerts {
  const causes = new Set<string>([...platform.probes.map(({ name }) => name), ...CONDITIONS])
  const isKnown = (cause: string) => causes.has(cause)
  const prerequisites = prerequisitesOf(platform, settings)
  let streaks: Streaks = new Map()
  /** The clocks at the last round, and when the wall clock was last found set. */
  let last: { readonly now: number; readonly monotonic: number } | undefined
  let setAt = Number.NEGATIVE_INFINITY
  let telling: Promise<unknown> | undefined
  const kept = keptAlerts(files)
  /** The state of the store when it was last read. */
  let known: KnownAlerts = { incidents: [], messages: [], silence: undefined }
  let spare = kept && openSpare(kept)
  let following: Promise<boolean> = Promise.resolve(false)
  let stopped = false

  /** Records a round and returns the next streaks. Rejects if the store fails, so that the old streaks stay. */
  async function followIn(
    incidents: IncidentStore,
    reports: readonly RoundReport[],
    idOf: (cause: string) => string,
  ) {
    const now = clock.now()
    if ((await incidents.rewind(now)) > 0)
      log.warn(
        'clock_set_back',
        'the clock was set back: incidents and silences of times to come were repaired',
      )
    const monotonic = clock.monotonic()
    if (last && Math.abs(now - last.now - (monotonic - last.monotonic)) > MOST_SKEW_MS) setAt = now
    last = { now, monotonic }
    const open = await incidents.list(0)
    const looked = new Set(reports.flatMap(({ service, probes }) => [service, ...Object.keys(probes)]))
    const round = followRound({
      streaks,
      reports,
      open: open.map(({ cause }) => cause),
      prerequisites,
      elsewhere: open.filter(({ cause, seenAt }) => !looked.has(cause) && now - seenAt <= SEEN_ELSEWHERE_MS),
      isCheckedElsewhere: (probe) =>
        !looked.has(probe) &&
        platform.probes.some(({ name, service }) => name === probe && !looked.has(service)),
      isKnown,
    })
    const openFor = (cause: string) => open.find((one) => one.cause === cause)
    /** With what other processes found, which this one does not check. */
    const affectedBy = ({ cause, affected }: Cause) => {
      const others = openFor(cause)?.affected.filter((name) => !looked.has(name)) ?? []
      return [...new Set([...others, ...affected])].toSorted()
    }
    for (const one of round.failing)
      await incidents.seen({ cause: one.cause, reason: one.reason, affected: affectedBy(one), now })
    for (const one of round.elsewhere) {
      const { affected = [], seenAt = now } = openFor(one.cause) ?? {}
      const names = affectedBy(one)
      // Only the list: when it was last seen failing is for the process that checks it to say.
      if (names.join() !== affected.join())
        await incidents.seen({ cause: one.cause, reason: one.reason, affected: names, now: seenAt })
    }
    for (const cause of round.opens)
      await incidents.open({
        ...cause,
        affected: affectedBy(cause),
        id: idOf(cause.cause),
        openedAt: now,
        seenAt: now,
        closedAt: undefined,
        acknowledgedAt: undefined,
        acknowledgedBy: undefined,
      })
    // After the clock was set, what other machines saw a moment ago looks old: give them time to see it again.
    if (now - setAt < SEEN_AGAIN_MS) return round.streaks
    for (const cause of round.closes)
      await incidents.close({ cause, now, unseenSince: now - SEEN_ELSEWHERE_MS })
    return round.streaks
  }

  async function openSpare(...before: readonly KnownAlerts[]): Promise<SpareAlerts> {
    // A store that cannot be written can often be read.
    known = await knownOf(store.incidents, channels, clock.now()).catch(() => known)
    return openSpareAlerts(files, [...before, known])
  }

  let recordedIn: IncidentStore = store.incidents
  const note = trailing(async () => {
    if (recordedIn === store.incidents) known = await knownOf(recordedIn, channels, clock.now())
    else await (await spare)?.keep(clock.now())
  })
  // Each by itself, because one that hangs must not hold up the others. What a round opens while alerts are being sent
  // is sent right after them, and not a round later.
  const tellers = channels.map((channel) =>
    trailing(() => sendDueAlerts({ store: recordedIn, channels: [channel], held, clock, log }).then(note)),
  )
  const failed = (error: unknown) =>
    log.error('alerts_failed', 'alerts could not be sent; the next round tries again', {
      fault: error instanceof Error ? error.name : 'unknown',
    })
  const tell = (incidents: IncidentStore) => {
    recordedIn = incidents
    telling = Promise.all([note, ...tellers].map((one) => one().catch(failed)))
  }

  async function follow(reports: readonly RoundReport[]): Promise<boolean> {
    let next: Streaks
    try {
      const idOf = () => Buffer.from(random.bytes(9)).toString('base64url')
      if (spare !== undefined) {
        await telling
        const used = await spare
        await used.bringBack(store.incidents, clock.now())
        await used.close()
        spare = undefined
      }
      next = await followIn(store.incidents, reports, idOf)
      tell(store.incidents)
    } catch {
      spare ??= openSpare()
      const { incidents, keep } = await spare
      // Use the same id on every machine, so that a receiver can deduplicate their messages.
      const idOf = (cause: string) => `${cause}-${Math.floor(clock.now() / 600_000)}`
      next = await followIn(incidents, reports, idOf)
      await keep(clock.now())
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
    told: async () => void (await telling),
    async stop() {
      stopped = true
      await following
      await telling
      await (await spare)?.close()
    },
  }
}
