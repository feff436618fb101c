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

/**
 * When lesson `day` is due, in UTC milliseconds. With `every`, no calendar is asked: confirmation + (day − 1) × every.
 * With `at`, it is the day-th slot from confirmation on. With a spacing, at least that long after the lesson before.
 */
export function dueAt(
  { cadence, spacingMs }: Pick<Plan, 'cadence' | 'spacingMs'>,
  enrolment: Enrolment,
  day: number,
  zones: Zones | undefined,
): number {
  const due =
    cadence.kind === 'every'
      ? enrolment.confirmedAt + (day - 1) * cadence.ms
      : slotAt(cadence, enrolment, day, zones, spacingMs === 0 ? enrolment.dueAt : undefined)
  const { lastSentAt } = enrolment
  if (lastSentAt === undefined || spacingMs === 0) return due
  // After an outage, a short spacing brings no burst either.
  return Math.max(due, lastSentAt + (due <= lastSentAt ? Math.max(spacingMs, HOUR_MS) : spacingMs))
}

type At = Extract<Cadence, { kind: 'at' }>

const isChosen = ({ weekdays }: At, day: number) => weekdays.length === 0 || weekdays.includes(weekdayOf(day))

/** The first chosen day from `day` on whose slot is at `since` or later. */
function slotFrom(cadence: At, day: number, since: number, zone: string, zones: Zones): number {
  let found = day
  while (!isChosen(cadence, found) || zones.instantOf(found, cadence.minute, zone) < since) found += 1
  return found
}

function slotAt(
  cadence: At,
  { confirmedAt, timeZone, dueAt: before }: Enrolment,
  count: number,
  zones: Zones | undefined,
  after = Number.NEGATIVE_INFINITY,
): number {
  if (zones === undefined) throw new TypeError('a course at a local time needs time zones')
  const { minute, zone: fixed, weekdays } = cadence
  const zone = fixed ?? timeZone ?? 'UTC'
  const chosen = (day: number) => isChosen(cadence, day)
  if (before !== undefined) {
    // Another zone moved the lesson before to another slot: go on from there, so that no two share a slot.
    let next = zones.dayAt(before, zone)
    if (chosen(next) && zones.instantOf(next, minute, zone) === before) {
      do next += 1
      while (!chosen(next))
      return zones.instantOf(next, minute, zone)
    }
  }
  // Start one day early: a slot that a clock change moved past midnight still belongs to its own day.
  let day = slotFrom(cadence, zones.dayAt(confirmedAt, zone) - 1, confirmedAt, zone, zones)
  const aWeek = weekdays.length || 7
  day += Math.floor((count - 1) / aWeek) * 7
  for (let left = (count - 1) % aWeek; left > 0; ) {
    day += 1
    if (chosen(day)) left -= 1
  }
  // A reader who moved while the lesson before was due: the slot of that number may be over in the new zone.
  return zones.instantOf(slotFrom(cadence, day, after + 1, zone, zones), minute, zone)
}

/** When a lesson is due after its reader moved: at the same local time, or the next; undefined: as before. */
export function movedDue(
  { cadence, spacingMs }: Pick<Plan, 'cadence' | 'spacingMs'>,
  { dueAt: due, timeZone: from = 'UTC', lastSentAt }: Pick<Enrolment, 'dueAt' | 'timeZone' | 'lastSentAt'>,
  { to, now }: { readonly to: string; readonly now: number },
  zones: Zones | undefined,
): number | undefined {
  if (cadence.kind !== 'at' || cadence.zone !== undefined || zones === undefined) return undefined
  if (due === undefined || due <= now) return undefined
  const day = slotFrom(cadence, zones.dayAt(due, from), now, to, zones)
  return Math.max(zones.instantOf(day, cadence.minute, to), (lastSentAt ?? 0) + spacingMs)
}

/** When the lesson after the first `sent` is due, from `next` on, and when the enrolment would have begun. */
export function arrivalAt(
  { cadence }: Pick<Plan, 'cadence'>,
  { sent, next, timeZone }: { sent: number; next: number; timeZone: string | undefined },
  zones: Zones | undefined,
): { readonly confirmedAt: number; readonly dueAt: number } {
  if (cadence.kind === 'every') return { confirmedAt: next - sent * cadence.ms, dueAt: next }
  if (zones === undefined) throw new TypeError('a course at a local time needs time zones')
  const zone = cadence.zone ?? timeZone ?? 'UTC'
  let day = slotFrom(cadence, zones.dayAt(next, zone) - 1, next, zone, zones)
  const dueAt = zones.instantOf(day, cadence.minute, zone)
  if (sent === 0) return { confirmedAt: next, dueAt }
  for (let left = sent; left > 0; ) {
    day -= 1
    if (isChosen(cadence, day)) left -= 1
  }
  return { confirmedAt: zones.instantOf(day, cadence.minute, zone), dueAt }
}

/** 1, Monday, to 7, Sunday: 1 January 1970 was a Thursday. */
const weekdayOf = (day: number) => ((((day + 3) % 7) + 7) % 7) + 1

export function nextLesson(
  plan: Plan,
  enrolment: Enrolment,
  sent: number,
  zones: Zones | undefined,
): Next | undefined {
  const lessons = plan.lessons.length
  return sent < lessons ? { dueAt: dueAt(plan, enrolment, sent + 1, zones), lessons } : undefined
}
