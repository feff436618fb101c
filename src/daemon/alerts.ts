import { trailing } from '../core/calls.ts'
import { type Places, recordedStore } from '../core/daemon-record.ts'
import { MINUTE_MS, MOST_SKEW_MS } from '../core/durations.ts'
import type { Settings } from '../core/env/settings.ts'
import { faultName } from '../core/errors.ts'
import { heartbeatProbeName } from '../core/heartbeats.ts'
import { type Clock, type Host, newId } from '../core/host.ts'
import { adviceFor, CONDITIONS, type ConditionName } from '../core/incidents/advice.ts'
import { type Cause, followRound, type RoundReport, type Streaks } from '../core/incidents/causes.ts'
import { type Channel, createAlertLanes, openChannels } from '../core/incidents/channels.ts'
import {
  type Changes,
  type IncidentStore,
  type MessageKind,
  SEEN_AT_STARTS,
  type StoredIncident,
  UNATTENDED,
} from '../core/incidents/incident.ts'
import { prerequisitesOf } from '../core/incidents/prerequisites.ts'
import { alertText } from '../core/incidents/text.ts'
import type { Held } from '../core/mail/holds.ts'
import { sha256 } from '../core/network/aws-signature.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { namesakeProbeName } from '../core/service.ts'
import { createLabels } from '../core/status/words.ts'
import type { Store } from '../core/store/store.ts'
import { storeAddress } from './options.ts'
import { type KnownAlerts, keptAlerts, openSpareAlerts, type SpareAlerts } from './spare-alerts.ts'

const ID_BYTES = 9
const REPAIRED = 'the clock was set back: incidents and silences of times to come were repaired'
const NOT_SENT = 'alerts could not be sent; the next round tries again'
/** Another machine that saw the cause fail within this time keeps its incident open. */
const SEEN_ELSEWHERE_MS = 150_000
/** Who runs knows nothing of another whose start was refused, and supervisors wait for minutes before they start it again. */
const unseenMs = (cause: string) => (SEEN_AT_STARTS.includes(cause) ? 10 * MINUTE_MS : SEEN_ELSEWHERE_MS)
/** Every machine looks at its probes at least once within this. */
const SEEN_AGAIN_MS = 2 * MINUTE_MS
/** A silence begins shortly before the store is stopped, often between two rounds. */
const SILENCE_ASKED_MS = 7000

export function alertChannels(
  clock: Pick<Clock, 'now'>,
  platform: ResolvedPlatform,
  settings: Settings,
  places?: Places,
  /** This process ends, because its store could not be opened. */
  isStoreRefused = false,
): readonly Channel[] {
  // The commands and runbooks that an alert names are in English.
  const labels = createLabels({ ...platform, language: 'en' })
  const link = settings.value('NEXT_PUBLIC_SITE_URL') && `${settings.site.siteUrl}/`
  const heartbeats = new Set(platform.heartbeats.map(({ name }) => heartbeatProbeName(name)))
  const textOf = (incident: StoredIncident, kind: MessageKind) => {
    const cause = isStoreRefused && incident.cause === 'store' ? 'store_refused' : incident.cause
    const { group = cause, meaning } = platform.probes.find(({ name }) => name === cause) ?? {}
    const advice = adviceFor(cause, {
      label: labels.probe(cause),
      isService: platform.services.some(({ name }) => [name, namesakeProbeName(name)].includes(cause)),
      isHeartbeat: heartbeats.has(cause),
      meaning,
      absent: platform.contract.group(group)?.absent,
    })
    const { isService } = labels
    const page = advice.isDown ? undefined : link
    return alertText({ incident, kind, platform: platform.name, isService, places, link: page, advice })
  }
  return openChannels(clock, settings, textOf)
}

/** Probes whose failure no visitor notices. */
const UNSEEN = ['sharedstore', 'errortrack', 'analytics']

/** Of which causes visitors hear who subscribed: not of what is only for operators (conditions, heartbeats). */
export function visitorsHear(of: Pick<ResolvedPlatform, 'probes' | 'contract' | 'heartbeats'>) {
  const unseen = new Set([...UNSEEN, ...of.heartbeats.map(({ name }) => heartbeatProbeName(name))])
  const seen = new Set([...of.probes.map(({ name }) => name), ...of.contract.services])
  return (cause: string): boolean => seen.has(cause) && !unseen.has(cause)
}

/**
 * Turns rounds of health checks into incidents, and sends the alerts that are due after each. While the store fails,
 * incidents are kept in memory and in a file, and alerts are sent from there, so that a failing store also raises an alert.
 */
export function startAlerts(
  host: Host,
  parts: {
    readonly store: Pick<Store, 'incidents'>
    readonly platform: Pick<ResolvedPlatform, 'name' | 'probes' | 'services'>
    readonly settings: Settings
    readonly channels: readonly Channel[]
    /** Of which causes subscribers of the status page hear; undefined: nothing is mailed to them. */
    readonly visitorsHear?: (cause: string) => boolean
    readonly held?: Held
    readonly dataFolder: string
    /** Where incidents outlive the process while the store fails: the first that can be written. */
    readonly files?: readonly string[]
    /** Causes that were found failing before the first round, which is the second for them. */
    readonly suspects?: readonly ConditionName[]
    /** This process does not start: what it does not check may still be in the definition of another. */
    readonly isRefused?: boolean
  },
) {
  const { clock, timer, random, log } = host
  const { platform, settings, channels, held, files = [], suspects = [] } = parts
  const own = parts.store.incidents
  const { location } = recordedStore(storeAddress(settings, parts.dataFolder))
  const storeKey = sha256(JSON.stringify([platform.name, location])).slice(0, 8)
  const causes = new Set<string>([...platform.probes.map(({ name }) => name), ...Object.keys(CONDITIONS)])
  const prerequisites = prerequisitesOf(platform, settings)
  const stopping = new AbortController()
  let streaks: Streaks = new Map(suspects.map((cause) => [cause, 1]))
  /** The clocks at the last round, and when the wall clock was last found set. */
  let last: { readonly now: number; readonly monotonic: number } | undefined
  let setAt = Number.NEGATIVE_INFINITY
  let known: KnownAlerts = { incidents: [], messages: [], silence: undefined }
  let spare: Promise<SpareAlerts> | undefined
  let telling: Promise<unknown> | undefined
  let following: Promise<boolean> = Promise.resolve(false)

  function changesOf(
    reports: readonly RoundReport[],
    open: readonly StoredIncident[],
    now: number,
    idOf: (cause: string) => string,
  ): Changes & { readonly streaks: Streaks } {
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
      isKnown: (cause) => parts.isRefused === true || causes.has(cause),
    })
    const openFor = (cause: string) => open.find((one) => one.cause === cause)
    /** With what other processes found, which this one does not check. */
    const affectedBy = ({ cause, service, affected }: Cause) => {
      const { service: first = service, affected: before = [] } = openFor(cause) ?? {}
      const others = before.filter((name) => !looked.has(name))
      return [...new Set([...others, service, ...affected])].filter((name) => name !== first).toSorted()
    }
    /** What is skipped or unknown here does not work again. It ends after twice the time: who still checks it comes first. */
    const end = (cause: string) => {
      const states = reports.flatMap(({ probes }) => probes[cause]?.state ?? [])
      const isChecked = states.length === 0 ? causes.has(cause) : states.some((one) => one !== 'skipped')
      const resolvedReason = isChecked ? undefined : 'is no longer checked'
      return { cause, at: now, unseenSince: now - unseenMs(cause) * (isChecked ? 1 : 2), resolvedReason }
    }
    const seen = (one: Cause, at: number) => ({ ...one, affected: affectedBy(one), at })
    return {
      streaks: round.streaks,
      seen: [
        ...round.failing.map((one) => seen(one, now)),
        // Only the list: when it was last seen failing is for the process that checks it to say.
        ...round.elsewhere.flatMap((one) => {
          const { affected = [], seenAt = now } = openFor(one.cause) ?? {}
          const next = seen(one, seenAt)
          return next.affected.join() === affected.join() ? [] : next
        }),
      ],
      opens: round.opens.map((cause) => ({
        ...cause,
        affected: affectedBy(cause),
        id: idOf(cause.cause),
        openedAt: now,
        seenAt: now,
        ...UNATTENDED,
      })),
      // After the clock was set, what other machines saw a moment ago looks old: give them time to see it again.
      closes: now - setAt < SEEN_AGAIN_MS ? [] : round.closes.map(end),
    }
  }

  /** Records a round and returns the next streaks. Rejects if the store fails, so that the old streaks stay. */
  async function followIn(
    incidents: IncidentStore,
    reports: readonly RoundReport[],
    idOf: (cause: string) => string,
  ): Promise<Streaks> {
    const now = clock.now()
    const monotonic = clock.monotonic()
    if (last && Math.abs(now - last.now - (monotonic - last.monotonic)) > MOST_SKEW_MS) setAt = now
    last = { now, monotonic }
    let next = streaks
    const { repaired } = await incidents.follow({
      now,
      channels,
      // They are mailed from the store itself.
      visitorsHear: incidents === own ? parts.visitorsHear : undefined,
      decide(open) {
        const changes = changesOf(reports, open, now, idOf)
        next = changes.streaks
        return changes
      },
    })
    if (repaired > 0) log.warn('clock_set_back', REPAIRED)
    return next
  }

  async function readKnown(): Promise<void> {
    const now = clock.now()
    known = { ...(await own.unfinished(now)), silence: await own.silenceAt(now) }
  }
  async function hearOfSilences(): Promise<void> {
    while (!stopping.signal.aborted) {
      await timer.sleep(SILENCE_ASKED_MS, stopping.signal).catch(() => {})
      const silence = await own.silenceAt(clock.now()).catch(() => known.silence)
      known = { ...known, silence }
    }
  }
  void hearOfSilences()
  async function openSpare(...before: readonly KnownAlerts[]): Promise<SpareAlerts> {
    // A store that cannot be written can often be read.
    await readKnown().catch(() => {})
    return openSpareAlerts(files, [...before, known], clock.now())
  }

  const failed = (error: unknown) => log.error('alerts_failed', NOT_SENT, { fault: faultName(error) })
  /** Sends what is due in a store, each channel by itself; `note` is called after each. */
  function teller(incidents: IncidentStore, note: () => Promise<void>): () => void {
    const lanes = createAlertLanes(host, incidents, channels, held, stopping.signal)
    const work = [note, ...lanes.map((wake) => () => wake().then(note))]
    return () => {
      const told = Promise.all(work.map((one) => one().catch(failed))).then(() => {
        if (telling === told) telling = undefined
      })
      telling = told
    }
  }
  const tellOwn = teller(own, trailing(readKnown))
  let tell = tellOwn
  const kept = keptAlerts(files)
  if (kept) spare = openSpare(kept)

  async function follow(reports: readonly RoundReport[]): Promise<boolean> {
    let next: Streaks
    try {
      const idOf = () => newId(random, ID_BYTES)
      if (spare !== undefined) {
        // What is in flight is recorded first, and holds up no round.
        if (telling) throw new Error('alerts are in flight')
        const used = await spare
        await used.bringBack(own, clock.now())
        // Should the store be away again at once, what follows begins from what it has now.
        await readKnown()
        await used.close()
        spare = undefined
      }
      next = await followIn(own, reports, idOf)
      tell = tellOwn
    } catch {
      const isNew = spare === undefined || tell === tellOwn
      spare ??= openSpare()
      const { incidents, keep } = await spare
      // All processes of one store make the same id, so that a receiver can deduplicate their messages.
      const idOf = (cause: string) => `${cause}-${Math.floor(clock.now() / 600_000)}-${storeKey}`
      next = await followIn(incidents, reports, idOf)
      const note = () => keep(clock.now())
      await note()
      if (isNew) tell = teller(incidents, trailing(note))
    }
    tell()
    streaks = next
    return [...next.values()].includes(1)
  }

  return {
    /** Takes one round of health checks. Resolves to true if it saw a new fault, which should be checked again soon. */
    async follow(reports: readonly RoundReport[]): Promise<boolean> {
      if (stopping.signal.aborted) return false
      following = follow(reports)
      return following
    },
    told: async () => void (await telling),
    async stop() {
      stopping.abort()
      await following
      await telling
      await (await spare)?.close()
    },
  }
}
