import { statfs } from 'node:fs/promises'
import { alertsFiles } from '../core/daemon-record.ts'
import { HOUR_MS } from '../core/durations.ts'
import type { Settings } from '../core/env/settings.ts'
import { faultName } from '../core/errors.ts'
import { ok } from '../core/health/probe.ts'
import { type Clock, type Host, systemClock, within } from '../core/host.ts'
import { CONDITIONS } from '../core/incidents/advice.ts'
import type { RoundReport } from '../core/incidents/causes.ts'
import {
  conditionsReport,
  lateBefore,
  lateLessons,
  restartReason,
  type SelfObservations,
} from '../core/incidents/conditions.ts'
import type { Hearing } from '../core/incidents/incident.ts'
import { NOT_CONFIGURED } from '../core/mail/mailer.ts'
import { reportError } from '../core/reporting/facade.ts'
import { minute } from '../core/sentences.ts'
import { type Service, WEB } from '../core/service.ts'
import type { History } from '../core/status/history.ts'
import type { Store } from '../core/store/store.ts'
import { alertChannels, startAlerts, visitorsHear } from './alerts.ts'
import { watchCertificates } from './certificates.ts'
import type { watchOutcomes } from './metrics/outcomes.ts'
import { isRefusalOver } from './open/mail.ts'
import { type Closing, type DaemonOptions, placesOf } from './options.ts'
import type { OpenedPlatform } from './platform.ts'
import { startRecorder } from './recorder.ts'
import { forgetOld } from './schedule.ts'

const NOT_FORGOTTEN = 'what is old could not be deleted; it is tried again in an hour'
const NOT_SENT = 'queued mails could not be sent; the next round tries again'

/** Records health each minute, with what else can be wrong, and sends alerts and notices about it. */
export function keepWatch(
  host: Host,
  options: DaemonOptions,
  /** Of the environment alone, without the addresses of our own listeners. */
  settings: Settings,
  opened: {
    readonly store: Store
    readonly history: History
    readonly platform: OpenedPlatform
    readonly scheduleStalledMs: () => number | undefined
    /** When the daemon of this folder started lately. */
    readonly starts: readonly number[]
  },
  closing: Closing,
) {
  const { platform: definition, services, dataFolder, pointerFolder, freeSpace } = options
  const { clock, log } = host
  const { store, history, platform, starts } = opened
  const { metrics, mailService, neighbours, course } = platform
  metrics.expectRounds(services)
  closing.eventLoop = metrics.watch()
  const isWeb = services.includes(WEB)
  const channels = alertChannels(clock, definition, settings, placesOf(options))
  const certificates = isWeb ? watchCertificates(host, settings, definition.services, metrics) : undefined
  closing.certificates = () => certificates?.stop()
  const looks =
    certificates &&
    createConditions(clock, {
      settings,
      store,
      dataFolder,
      services,
      neighbours,
      channels,
      known: () => ({
        certificates: certificates.found(),
        areCertificatesRead: certificates.areRead(),
        mailRefused: mailService.refused(),
        scheduleStalledMs: opened.scheduleStalledMs(),
        starts,
      }),
      mailFailure: mailService.failure,
      outcomes: metrics.watchOutcomes(),
      // A program that brings a clock of its own does not keep the time of the world.
      ...(clock === systemClock && {
        clockAheadMs: platform.clockWatch.aheadMs,
        ...(store.kind === 'postgres' && { storeTime: store.time }),
      }),
      freeSpace,
    })
  // Without web, nothing else ends what a start that was refused has told; replicas of a server's store have one.
  const opens = { start_refused: ok(true), half_configured: ok(true), store: ok(true) }
  const started = store.kind === 'sqlite' ? { service: services.join(), probes: opens } : undefined
  const mailsVisitors = settings.mail !== undefined && isWeb
  const alerts = startAlerts(host, {
    store,
    platform: definition,
    settings,
    channels,
    ...(mailsVisitors && { visitorsHear: visitorsHear(definition) }),
    held: mailService.held,
    dataFolder,
    files: alertsFiles(dataFolder, pointerFolder),
    // A process that ends again soon looks only once, and an incident needs two looks.
    suspects: isWeb && restartReason(starts, clock.now()) !== undefined ? ['restart_loop'] : [],
  })
  closing.alerts = (deadlineMs) => within(deadlineMs, alerts.stop(), () => {})
  let forgotAt = clock.monotonic()
  const recorder = startRecorder(host, {
    health: services.flatMap((name) => platform.services.get(name)?.health ?? []),
    neighbours,
    history,
    onRecorded: metrics.recorded,
    async follow(reports, writeMs) {
      // Counts that are lost make a day's rates look higher, and nothing else.
      await mailService.tally.flush().catch(() => {})
      const looked = (await looks?.(reports, writeMs)) ?? started
      const again = await alerts.follow(looked ? [...reports, looked] : reports)
      // Waited for by nobody.
      if (mailsVisitors)
        course()
          .then(({ wake }) => wake())
          .catch((error: unknown) => log.warn('mails_failed', NOT_SENT, { fault: faultName(error) }))
      // Where something else calls for the lessons, no hour of the schedule does it.
      if (isWeb && !options.schedule && clock.monotonic() - forgotAt >= HOUR_MS) {
        forgotAt = clock.monotonic()
        forgetOld(platform, store, { clock, log }).catch((error: unknown) => {
          log.error('forgetting_failed', NOT_FORGOTTEN, { fault: faultName(error) })
          reportError(error)
        })
      }
      return again
    },
  })
  closing.history = async () => {
    await recorder.stop()
    await history.close()
  }
  return recorder
}

export interface ConditionsOptions extends Pick<DaemonOptions, 'dataFolder' | 'freeSpace'> {
  readonly settings: Settings
  readonly store: Pick<Store, 'course' | 'incidents' | 'persistent' | 'sending'>
  readonly services: readonly Service[]
  readonly neighbours: ReadonlyMap<Service, string | null>
  readonly channels: readonly Pick<Hearing, 'name'>[]
  readonly known: () => Pick<SelfObservations, 'certificates' | 'mailRefused'> & Partial<SelfObservations>
  readonly outcomes?: ReturnType<typeof watchOutcomes>
  /** Why the last message that was not sent was not, and when. */
  readonly mailFailure?: () => { readonly reason: string; readonly at: number } | undefined
  readonly storeTime?: () => Promise<number>
  /** How far the clock is ahead of most servers; undefined: nobody knows. */
  readonly clockAheadMs?: () => number | undefined
}

/** Checks what no health probe covers: certificates, late, undecided or paused lessons, disk, builds, configuration and refused mail. */
export function createConditions(clock: Pick<Clock, 'now'>, options: ConditionsOptions) {
  const { settings, store, services, neighbours, channels, outcomes: judge, freeSpace = spaceOf } = options
  const own = settings.site.buildStamp ?? null
  /** As last reported: a service that does not answer may still run another build. */
  const builds = new Map<Service, string | null>(services.map((name) => [name, own]))
  const isAlone = [...settings.addresses.keys()].every((name) => services.includes(name))
  const halfConfigured = [...settings.groups].flatMap(([name, state]) =>
    state === 'half-configured' ? [name] : [],
  )
  const sendsMail = store.persistent && settings.mail !== undefined
  return async (reports: readonly RoundReport[] = [], writeMs?: number) => {
    const now = clock.now()
    const known = options.known()
    const failure = options.mailFailure?.()
    for (const [name, build] of neighbours) if (!services.includes(name)) builds.set(name, build)
    const isFailing = (name: string) => reports.some(({ probes }) => probes[name]?.state === 'failing')
    const asked = { now, before: lateBefore(now) }
    const [late, undecided, holds, told, disk, outcomes, storeTime, lastMail] = await Promise.all([
      // A read error is not reported here: the store and the disk have their own probes.
      lateLessons(store.course, sendsMail, now).catch(() => undefined),
      store.persistent ? store.course.undecided().catch(() => undefined) : undefined,
      store.persistent ? store.sending.holds().catch(() => undefined) : [],
      store.persistent ? store.incidents.unfinished(now).catch(() => undefined) : undefined,
      freeSpace(options.dataFolder).catch(() => undefined),
      judge?.((name) => CONDITIONS[name].dependsOn?.some(isFailing) ?? false),
      options.storeTime?.().catch(() => undefined),
      known.mailRefused && store.persistent ? store.sending.lastMail().catch(() => undefined) : undefined,
    ])
    // Where many fail, the counts say it, and no queue is read.
    const isQueueRead = sendsMail && outcomes?.mail_failing === undefined
    const stalledAt = isQueueRead ? await store.sending.stalledSince(asked).catch(() => undefined) : undefined
    const failing =
      stalledAt === undefined
        ? outcomes?.mail_failing
        : `a message has waited since ${minute(stalledAt)}, and no mail of its stream has been sent since`
    // Leases and all other processes of the store go by its clock.
    const of = storeTime === undefined ? 'that of most servers it asks' : 'the store’s'
    const aheadMs = storeTime === undefined ? options.clockAheadMs?.() : clock.now() - storeTime
    return conditionsReport(
      {
        ...known,
        ...(isRefusalOver(failure, lastMail?.sentAt) && { mailRefused: false }),
        lessonsLate: late && (sendsMail ? late : { ...late, why: NOT_CONFIGURED }),
        lessonsUndecided: undecided,
        disk,
        writeMs,
        builds: isAlone || builds.size > services.length ? builds : undefined,
        halfConfigured,
        outcomes: {
          ...outcomes,
          ...(failing && { mail_failing: [failing, failure?.reason].filter(Boolean).join(': ') }),
        },
        clock: aheadMs === undefined ? undefined : { aheadMs, of },
        holds,
        // One that was taken out of the settings is waited for by nobody.
        alerts: told?.messages.filter(({ channel }) => channels.some(({ name }) => name === channel)),
      },
      now,
    )
  }
}

async function spaceOf(folder: string) {
  const { bavail, bfree, blocks, bsize } = await statfs(folder)
  // Blocks reserved for root count as free only for root.
  return { freeBytes: (process.getuid?.() === 0 ? bfree : bavail) * bsize, bytes: blocks * bsize }
}
