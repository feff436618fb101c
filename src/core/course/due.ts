import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { Cadence, Plan } from './definition.ts'
import type { Next } from './subscription.ts'

/** A confirmation link works for seven days (CONTRACT §4). */
export const TOKEN_LIFE_MS = 7 * DAY_MS
/** An address that was never confirmed is deleted this long after its last link was mailed (docs/guides/privacy.md). */
export const UNCONFIRMED_KEPT_MS = 30 * DAY_MS
/** Local time, as the schedule needs it. A day is counted from 1 January 1970. */
export interface Zones {
  dayAt(instant: number, zone: string): number
  /** The moment of a local time, in UTC milliseconds. */
  instantOf(day: number, minute: number, zone: string): number
}

/** State of an enrolment, as far as the schedule needs it. */
export interface Enrolment {
  readonly confirmedAt: number
  /** The subscriber's own; UTC when it is not known. */
  readonly timeZone?: string | undefined
  readonly lastSentAt?: number | undefined
  readonly dueAt?: number | undefined
}

type Timing = Pick<Plan, 'cadence' | 'spacingMs'>

/**
 * When lesson `day` is due under a cadence that never changed: with `every`, at confirmation + (day − 1) × every; with
 * `at`, in the day-th slot from confirmation on; with a spacing, at least that long after the lesson before.
 */
export function dueAt(timing: Timing, enrolment: Enrolment, day: number, zones: Zones | undefined): number {
  const { cadence } = timing
  const { confirmedAt, timeZone, lastSentAt } = enrolment
  if (cadence.kind === 'every') return spaced(timing, confirmedAt + (day - 1) * cadence.ms, lastSentAt)
  const slots = slotsOf(cadence, timeZone, zones)
  return spaced(timing, slots.at(slots.shift(slots.first(confirmedAt), day - 1)), lastSentAt)
}

function spaced({ spacingMs }: Timing, due: number, lastSentAt: number | undefined): number {
  if (lastSentAt === undefined || spacingMs === 0) return due
  // After an outage, a short spacing brings no burst either.
  return Math.max(due, lastSentAt + (due <= lastSentAt ? Math.max(spacingMs, HOUR_MS) : spacingMs))
}

type At = Extract<Cadence, { kind: 'at' }>

/** The slots of a cadence for a subscriber of that time zone, by their local days. */
function slotsOf({ minute, zone: fixed, weekdays }: At, timeZone?: string, zones?: Zones) {
  if (zones === undefined) throw new TypeError('a course at a local time needs time zones')
  const zone = fixed ?? timeZone ?? 'UTC'
  const isChosen = (day: number) => weekdays.length === 0 || weekdays.includes(weekdayOf(day))
  const at = (day: number) => zones.instantOf(day, minute, zone)
  /** The first chosen day from `day` on whose slot is at `since` or later. */
  function from(day: number, since: number): number {
    for (let found = day; ; found += 1) if (isChosen(found) && at(found) >= since) return found
  }
  return {
    at,
    from,
    // One day early: a slot that a clock change moved past midnight still belongs to its own day.
    first: (since: number) => from(zones.dayAt(since, zone) - 1, since),
    /** The first day after the one whose slot, or part, that moment is. */
    after(instant: number): number {
      const day = zones.dayAt(instant, zone)
      return from(at(day - 1) === instant ? day : day + 1, instant + 1)
    },
    /** The chosen day that is `count` of them after a chosen day, or before it. */
    shift(day: number, count: number): number {
      const aWeek = weekdays.length || 7
      let found = day + Math.trunc(count / aWeek) * 7
      for (let left = Math.abs(count % aWeek); left > 0; ) {
        found += Math.sign(count)
        if (isChosen(found)) left -= 1
      }
      return found
    },
  }
}

/** When a lesson is due after its reader moved: at the same local time, or the next; undefined: as before. */
export function movedDue(
  { cadence, spacingMs }: Timing,
  { dueAt: due, timeZone: from = 'UTC', lastSentAt }: Pick<Enrolment, 'dueAt' | 'timeZone' | 'lastSentAt'>,
  { to, now }: { readonly to: string; readonly now: number },
  zones: Zones | undefined,
): number | undefined {
  if (cadence.kind !== 'at' || cadence.zone !== undefined || zones === undefined) return undefined
  if (due === undefined || due <= now) return undefined
  const slots = slotsOf(cadence, to, zones)
  return Math.max(slots.at(slots.from(zones.dayAt(due, from), now)), (lastSentAt ?? 0) + spacingMs)
}

/** When the lesson after the first `sent` is due, from `next` on, and when the enrolment would have begun. */
export function arrivalAt(
  { cadence }: Pick<Plan, 'cadence'>,
  { sent, next, timeZone }: { sent: number; next: number; timeZone: string | undefined },
  zones: Zones | undefined,
): { readonly confirmedAt: number; readonly dueAt: number } {
  if (cadence.kind === 'every') return { confirmedAt: next - sent * cadence.ms, dueAt: next }
  const slots = slotsOf(cadence, timeZone, zones)
  const day = slots.first(next)
  return { confirmedAt: sent === 0 ? next : slots.at(slots.shift(day, -sent)), dueAt: slots.at(day) }
}

/** 1, Monday, to 7, Sunday: 1 January 1970 was a Thursday. */
const weekdayOf = (day: number) => ((((day + 3) % 7) + 7) % 7) + 1

/**
 * The lesson after the first `sent`, the last of which left at `sentAt`. It counts from when that one was due, so that
 * a changed cadence applies from there on; if that is not known, from the confirmation.
 */
export function nextLesson(
  plan: Plan,
  enrolment: Enrolment,
  sent: number,
  zones: Zones | undefined,
  sentAt = enrolment.lastSentAt,
): Next | undefined {
  const lessons = plan.lessons.length
  if (sent >= lessons) return undefined
  const { dueAt: before } = enrolment
  // A spacing may have put that one off: then the schedule itself is found from the confirmation.
  if (before === undefined || (plan.spacingMs > 0 && before === dueAt(plan, enrolment, sent, zones)))
    return { dueAt: dueAt(plan, { ...enrolment, lastSentAt: sentAt }, sent + 1, zones), lessons }
  // A millisecond more, so that the lesson after it does not count from the confirmation again.
  return { dueAt: spaced(plan, dueAfter(plan, enrolment, before, zones), sentAt && sentAt + 1), lessons }
}

function dueAfter({ cadence }: Plan, { timeZone }: Enrolment, before: number, zones?: Zones): number {
  if (cadence.kind === 'every') return before + cadence.ms
  const slots = slotsOf(cadence, timeZone, zones)
  return slots.at(slots.after(before))
}

/** As `nextLesson`, for an enrolment that a shorter course had ended: when its last lesson was due was not kept. */
export function resumedLesson(plan: Plan, enrolment: Enrolment, sent: number, zones: Zones | undefined) {
  const slot = (day: number) => dueAt({ ...plan, spacingMs: 0 }, enrolment, day, zones)
  const { lastSentAt = slot(sent) } = enrolment
  // A lesson that left outside of its slot: the cadence was another then.
  const isMoved = lastSentAt < slot(sent) || lastSentAt >= slot(sent + 1)
  return nextLesson(plan, { ...enrolment, dueAt: isMoved ? lastSentAt : undefined }, sent, zones)
}
