import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { ProbeResult } from '../health/probe.ts'
import { type Hold, heldTogether } from '../mail/holds.ts'
import { WEB } from '../service.ts'

/**
 * The daemon's observations about itself that no health probe reports. Parts that could not be checked are left out.
 */
export interface SelfObservations {
  readonly certificates: readonly CertificateCheck[]
  /** When lessons became due that are not sent yet. */
  readonly lessonsDueSince?: {
    /** The first that waits for an attempt; undefined: none does. */
    readonly at: number | undefined
    /** One that failed while no lesson was sent at all; undefined: none did. */
    readonly stalledAt: number | undefined
  }
  readonly disk?: { readonly freeBytes: number; readonly bytes: number }
  /** The build that each service reports; null is unstamped. */
  readonly builds: ReadonlyMap<string, string | null>
  readonly halfConfigured: readonly string[]
  /** Why the mail provider refused this platform at the last attempt. */
  readonly mailRefused: string | undefined
  /** Why the alerts by outcome are raised. */
  readonly outcomes?: Readonly<Partial<Record<ConditionName, string | undefined>>>
  /** The streams of mail that are paused. */
  readonly holds?: readonly Hold[]
}

export interface CertificateCheck {
  /** The variable that holds the address. */
  readonly variable: string
  /** UTC milliseconds. */
  readonly validFrom: number
  readonly validTo: number
  /** Why programs refuse it. */
  readonly fault: string | undefined
}

/** Names of the conditions: causes of incidents beside those of probes. */
export const CONDITIONS = [
  'certificate_expiring',
  'lessons_late',
  'disk_nearly_full',
  'build_skew',
  'half_configured',
  'mail_refused',
  'courses_paused',
  'mail_paused',
  'start_refused',
  'feedback_refused',
  'mail_failing',
  'requests_failing',
  'calls_refused',
] as const
export type ConditionName = (typeof CONDITIONS)[number]

/** What explains a condition. */
export const CONDITION_DEPENDS_ON: Readonly<Partial<Record<ConditionName, readonly string[]>>> = {
  lessons_late: ['store', 'mail', 'mail_refused'],
  mail_refused: ['mail'],
  mail_failing: ['store', 'mail', 'mail_refused'],
  requests_failing: ['store', 'job_store', 'datastore', 'payments', 'mail'],
  calls_refused: ['store', 'requests_failing', 'feedback_refused'],
}

const CERTIFICATE_MS = 7 * DAY_MS
const GB = 1024 ** 3

/** Each condition that could be checked, as the result of a probe. A failing one becomes an incident. */
export function conditionsReport(
  observed: SelfObservations,
  now: number,
): {
  readonly service: string
  readonly probes: Readonly<Partial<Record<ConditionName, ProbeResult>>>
} {
  const { lessonsDueSince, disk, holds, outcomes = {} } = observed
  const paused = holds && pauseReasons(holds)
  return {
    service: WEB,
    probes: {
      certificate_expiring: result(certificateReason(observed.certificates, now)),
      // Paused lessons wait on purpose, and the pause itself is told.
      ...(lessonsDueSince &&
        !holds?.some(({ stream }) => stream === 'course') && {
          lessons_late: result(lateReason(lessonsDueSince, now)),
        }),
      ...(disk && { disk_nearly_full: result(diskReason(disk)) }),
      build_skew: result(skewReason(observed.builds)),
      half_configured: result(
        observed.halfConfigured.length === 0
          ? undefined
          : `half-configured: ${observed.halfConfigured.join(', ')}`,
      ),
      mail_refused: result(observed.mailRefused),
      ...Object.fromEntries(Object.entries(outcomes).map(([name, reason]) => [name, result(reason)])),
      // A process that looks has started.
      start_refused: result(undefined),
      ...(paused && { courses_paused: result(paused.courses), mail_paused: result(paused.mail) }),
    },
  }
}

function result(reason: string | undefined): ProbeResult {
  return reason === undefined ? { state: 'ok', checked: true } : { state: 'failing', checked: true, reason }
}

/** Courses that were paused together with other mail are part of that pause, so that one pause is one incident. */
function pauseReasons(holds: readonly Hold[]): { courses: string | undefined; mail: string | undefined } {
  const [courses = [], mail = []] = [true, false].map((alone) =>
    heldTogether(holds).filter(({ streams }) => (streams.join() === 'course') === alone),
  )
  const said = mail.map(({ streams, reason }) => `${streams.join(', ')}: ${reason}`)
  return { courses: courses[0]?.reason, mail: said.length === 0 ? undefined : said.join('; ') }
}

/** Causes whose alerts leave also while alerts are paused: somebody must hear of every pause. */
export const ABOUT_PAUSES: readonly string[] = ['courses_paused', 'mail_paused'] satisfies ConditionName[]

function certificateReason(certificates: readonly CertificateCheck[], now: number): string | undefined {
  const reasons = certificates.flatMap(({ variable, validFrom, validTo, fault }) => {
    const left = validTo - now
    if (left <= 0) return [`that of ${variable} has expired (${day(validTo)})`]
    if (fault !== undefined) return [`that of ${variable} is refused by programs (${fault})`]
    // A certificate that lives only for days is renewed in its last third.
    const soon = Math.min(CERTIFICATE_MS, (validTo - validFrom) / 3)
    return left <= soon
      ? [`that of ${variable} ends in ${count(Math.floor(left / DAY_MS), 'day')} (${day(validTo)})`]
      : []
  })
  return reasons.length === 0 ? undefined : reasons.join('; ')
}

/** The schedule sends at each full hour: a lesson is late one hour after the hour that should have sent it. */
export function lateBefore(now: number): number {
  return Math.floor(now / HOUR_MS) * HOUR_MS - HOUR_MS
}

function lateReason(
  { at, stalledAt }: NonNullable<SelfObservations['lessonsDueSince']>,
  now: number,
): string | undefined {
  const since = (due: number) =>
    `a lesson has been due since ${new Date(due).toISOString().slice(0, 16).replace('T', ' ')} UTC`
  const before = lateBefore(now)
  if (stalledAt !== undefined && stalledAt <= before)
    return `${since(stalledAt)}; every attempt failed, and no lesson has been sent since`
  return at !== undefined && at <= before ? `${since(at)} and has not been sent` : undefined
}

function diskReason({ freeBytes, bytes }: { readonly freeBytes: number; readonly bytes: number }) {
  const isFull = freeBytes < 0.2 * GB || (freeBytes < 2 * GB && freeBytes < bytes * 0.05)
  return isFull
    ? `${Math.floor(freeBytes / 1024 ** 2)} MB of ${(bytes / GB).toFixed(1)} GB are left on the disk of the data folder`
    : undefined
}

function skewReason(builds: ReadonlyMap<string, string | null>): string | undefined {
  const stamped = [...builds].filter(([, build]) => build !== null)
  return new Set(stamped.map(([, build]) => build)).size < 2
    ? undefined
    : stamped.map(([service, build]) => `${service} ${build}`).join(', ')
}

const count = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`
const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
