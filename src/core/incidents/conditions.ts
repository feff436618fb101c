import { DAY_MS, HOUR_MS, MINUTE_MS } from '../durations.ts'
import { given } from '../given.ts'
import { failing, ok, skipped } from '../health/probe.ts'
import { dayNameOf } from '../mail/feedback/sending.ts'
import { type Hold, heldTogether } from '../mail/holds.ts'
import { counted, minute } from '../sentences.ts'
import { WEB } from '../service.ts'
import type { ConditionName } from './advice.ts'
import type { MessageRecord } from './incident.ts'

/** The daemon's observations about itself that no health probe reports. Parts that could not be checked are left out. */
export interface SelfObservations {
  readonly certificates: readonly CertificateCheck[]
  /** False: one has not been read since the start, and may be the bad one of an alert that is open. */
  readonly areCertificatesRead?: boolean
  readonly lessonsLate?: LateLessons | undefined
  /** How many wait for an operator's decision. */
  readonly lessonsUndecided?: number | undefined
  readonly disk?: { readonly freeBytes: number; readonly bytes: number } | undefined
  readonly writeMs?: number | undefined
  /** The build that each service reports; null is unstamped. Undefined: no other service was reached. */
  readonly builds: ReadonlyMap<string, string | null> | undefined
  readonly halfConfigured: readonly string[]
  /** Why the mail provider refused this platform at the last attempt; false: it takes mail; null: mail is not configured. */
  readonly mailRefused: string | false | null | undefined
  readonly outcomes?: Readonly<Partial<Record<ConditionName, string | undefined>>> | undefined
  readonly holds?: readonly Hold[] | undefined
  /** Undefined: the schedule does not run here. */
  readonly scheduleStalledMs?: number | undefined
  /** What channels were told of incidents that are not over. */
  readonly alerts?: readonly MessageRecord[] | undefined
  /** How far the clock of this machine is ahead of another that is trusted more. */
  readonly clock?: { readonly aheadMs: number; readonly of: string } | undefined
  /** When this daemon started last, in UTC milliseconds. */
  readonly starts?: readonly number[] | undefined
}

/** Times at which lessons became due, in UTC milliseconds. */
export interface LateLessons {
  /** The first that nobody tries; one of several overdue lessons may leave an hour after the one before. */
  readonly at?: number | undefined
  /** What that one waits for, if it is known. */
  readonly why?: string | undefined
  /** One that failed, if nobody's lesson was sent since: one mailbox is not enough. */
  readonly stalledAt?: number | undefined
}

export interface CertificateCheck {
  readonly variable: string
  /** UTC milliseconds. */
  readonly validFrom: number
  readonly validTo: number
  /** Why programs refuse it, as OpenSSL or Node names it (`CERT_HAS_EXPIRED`); undefined if they accept it. */
  readonly fault: string | undefined
}

const CERTIFICATE_MS = 7 * DAY_MS
const GB = 1024 ** 3

/** Each condition that could be checked, as the result of a probe. A failing one becomes an incident. */
export function conditionsReport(observed: SelfObservations, now: number) {
  const { lessonsLate, lessonsUndecided, holds, halfConfigured, outcomes = {}, starts = [] } = observed
  const certificate = certificateReason(observed.certificates, now)
  const paused = holds && pauseReasons(holds)
  // Lessons of a paused course are late on purpose, and the pause has an alert of its own.
  const late = holds?.some(({ stream }) => stream === 'course') ? undefined : lessonsLate
  return {
    service: WEB,
    probes: given({
      certificate_expiring:
        certificate || observed.areCertificatesRead !== false ? result(certificate) : undefined,
      lessons_late: known(late, lateReason),
      lessons_undecided: known(lessonsUndecided, (n) => when(n > 0, `given up: ${counted(n, 'lesson')}`)),
      disk_nearly_full: known(observed.disk, diskReason),
      disk_slow: known(observed.writeMs, (ms) => when(ms > WRITE_MS, `a write took ${seconds(ms)}`)),
      build_skew: known(observed.builds, skewReason),
      half_configured: known(halfConfigured.join(', '), (all) => when(all !== '', `half-configured: ${all}`)),
      mail_refused: known(observed.mailRefused, (reason) => reason || undefined),
      ...Object.fromEntries(Object.entries(outcomes).map(([name, reason]) => [name, result(reason)])),
      // A process that looks has started.
      start_refused: ok(true),
      restart_loop: result(restartReason(starts, now)),
      schedule_stalled: known(observed.scheduleStalledMs, (ms) =>
        when(ms >= STALLED_MS, `no progress for ${minutes(ms)}`),
      ),
      alerts_unheard: known(observed.alerts, unheardReason),
      clock_wrong: known(observed.clock, clockReason),
      courses_paused: known(paused, ({ courses }) => courses),
      mail_paused: known(paused, ({ mail }) => mail),
    }),
  }
}

const result = (reason: string | undefined) => (reason === undefined ? ok(true) : failing(reason))
const when = (fails: boolean, reason: string) => (fails ? reason : undefined)
const known = <T>(seen: T | null | undefined, reasonOf: (seen: T) => string | undefined) =>
  seen === undefined ? undefined : seen === null ? skipped('off') : result(reasonOf(seen))

/** Courses that were paused together with other mail are part of that pause, so that one pause is one incident. */
function pauseReasons(holds: readonly Hold[]): { courses: string | undefined; mail: string | undefined } {
  const pauses = heldTogether(holds)
  const courses = pauses.find(({ streams }) => streams.join() === 'course')
  const mail = pauses.flatMap((one) => (one === courses ? [] : `${one.streams.join(', ')}: ${one.reason}`))
  return { courses: courses?.reason, mail: mail.join('; ') || undefined }
}

/** Causes whose alerts leave also while alerts are paused: somebody must hear of every pause. */
export const ABOUT_PAUSES: readonly string[] = ['courses_paused', 'mail_paused'] satisfies ConditionName[]

function certificateReason(certificates: readonly CertificateCheck[], now: number): string | undefined {
  const reasons = certificates.flatMap(({ variable, validFrom, validTo, fault }) => {
    const left = validTo - now
    if (left <= 0) return [`that of ${variable} has expired (${dayNameOf(validTo)})`]
    if (fault !== undefined) return [`that of ${variable} is refused by programs (${fault})`]
    // A certificate that lives only for days is renewed in its last third.
    const soon = Math.min(CERTIFICATE_MS, (validTo - validFrom) / 3)
    return left <= soon
      ? [`that of ${variable} ends in ${counted(Math.floor(left / DAY_MS), 'day')} (${dayNameOf(validTo)})`]
      : []
  })
  return reasons.length === 0 ? undefined : reasons.join('; ')
}

/** Longer than a health client waits: what answers from this disk looks like an outage. */
const WRITE_MS = 2000
/** Longer than the dispatcher is without any outcome: it may wait fourteen minutes for an answer by SMTP. */
export const STALLED_MS = 21 * MINUTE_MS
/** Leases and signatures allow for more, certificates and tokens for less. */
const CLOCK_MS = 30_000
const RESTARTS = { most: 5, withinMs: 15 * MINUTE_MS }

/** So many attempts at an alert take twenty minutes. One that was given up needs no more. */
const UNHEARD_ATTEMPTS = 5

/** Which channels take no alerts, going by those that were not followed by one that they took. */
export function unheardReason(alerts: readonly MessageRecord[]): string | undefined {
  const unheard = new Map<string, string>()
  for (const { channel, outcome, attempts, reason } of alerts.toSorted((a, b) => a.at - b.at))
    if (outcome === 'sent') unheard.delete(channel)
    else if (attempts >= UNHEARD_ATTEMPTS || outcome === 'failed')
      unheard.set(channel, `by ${channel}${reason === undefined ? '' : `: ${reason}`}`)
  return unheard.size === 0 ? undefined : [...unheard.values()].join('; ')
}

const seconds = (ms: number) => counted(Math.round(ms / 1000), 'second')
const minutes = (ms: number) => counted(Math.floor(ms / MINUTE_MS), 'minute')

function clockReason({ aheadMs, of }: NonNullable<SelfObservations['clock']>): string | undefined {
  const apartMs = Math.abs(aheadMs)
  return when(apartMs > CLOCK_MS, `${seconds(apartMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} ${of}`)
}

/** The starts that count: a loop of restarts is over when the last one is this long ago. */
export const recentStarts = (starts: readonly number[], now: number) =>
  starts.filter((at) => Math.abs(now - at) < RESTARTS.withinMs)

export function restartReason(starts: readonly number[], now: number): string | undefined {
  const { length } = recentStarts(starts, now)
  return when(length >= RESTARTS.most, `started ${length} times within ${minutes(RESTARTS.withinMs)}`)
}

/** A lesson is late one hour after the full hour that follows its time: an outage that ends is made up for by then. */
export const lateBefore = (now: number) => Math.floor(now / HOUR_MS) * HOUR_MS - HOUR_MS

type Lessons = {
  late(asked: { readonly now: number; readonly before: number }): Promise<LateLessons>
  lastSentAt(): Promise<number | undefined>
}

/** Lessons that left by mail are missed, also where a deploy has lost the settings of mail. */
export const lateLessons = async (lessons: Lessons, sendsMail: boolean, now: number): Promise<LateLessons> =>
  sendsMail || (await lessons.lastSentAt()) !== undefined
    ? lessons.late({ now, before: lateBefore(now) })
    : {}

function lateReason({ at, why, stalledAt }: LateLessons): string | undefined {
  const since = (due: number) => `a lesson has been due since ${minute(due)}`
  if (stalledAt !== undefined)
    return `${since(stalledAt)}; every attempt failed, and no lesson has been sent since`
  return at === undefined ? undefined : [`${since(at)} and has not been sent`, why].filter(Boolean).join(': ')
}

function diskReason({ freeBytes, bytes }: { readonly freeBytes: number; readonly bytes: number }) {
  return freeBytes < 0.2 * GB || (freeBytes < 2 * GB && freeBytes < bytes * 0.05)
    ? `${Math.floor(freeBytes / 1024 ** 2)} MB of ${(bytes / GB).toFixed(1)} GB are left on the disk of the data folder`
    : undefined
}

function skewReason(builds: ReadonlyMap<string, string | null>): string | undefined {
  const stamped = [...builds].filter(([, build]) => build !== null)
  const reason = stamped.map(([service, build]) => `${service} ${build}`).join(', ')
  return when(new Set(stamped.map(([, build]) => build)).size > 1, reason)
}
