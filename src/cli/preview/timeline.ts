import type { Plan } from '../../core/course/definition.ts'
import { dueAt } from '../../core/course/schedule.ts'
import { type ClockChange, clockChanges, offsetAt, zones } from '../../core/course/zones.ts'
import { DAY_MS } from '../../core/durations.ts'

const MINUTE_MS = 60_000

/** Minutes after midnight that a zone's clock shows. */
export function minuteAt(instant: number, zone: string): number {
  const local = instant + offsetAt(instant, zone)
  return Math.floor((((local % DAY_MS) + DAY_MS) % DAY_MS) / MINUTE_MS)
}

/** Whether a moment is the first or second with its local time, when the clock goes back; undefined if that time occurs once. */
function repeatOf(instant: number, zone: string): 'first' | 'second' | undefined {
  const offset = offsetAt(instant, zone)
  const [before, after] = [offsetAt(instant - DAY_MS / 2, zone), offsetAt(instant + DAY_MS / 2, zone)]
  // The other moment with this local time has the other offset.
  if (offset > after && offsetAt(instant + offset - after, zone) === after) return 'first'
  if (before > offset && offsetAt(instant + offset - before, zone) === before) return 'second'
  return undefined
}

/** `2026-03-27T10:00` as a zone's clock shows it; undefined for any other text. A day that is none is none. */
export function parseLocal(text: string, zone: string): number | undefined {
  const [, date, hour, minute] = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::\d{2})?$/.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (date === undefined || Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date))
    return undefined
  return zones.instantOf(midnight / DAY_MS, Number(hour) * 60 + Number(minute), zone)
}

/** A moment as `2026-03-27T10:00`, as a zone's clock shows it. */
export function localText(instant: number, zone: string): string {
  return new Date(instant + offsetAt(instant, zone)).toISOString().slice(0, 16)
}

/** One thing that happens in a course, in the order of time. */
export type TimelineEntry =
  | {
      readonly kind: 'lesson'
      /** From 1. */
      readonly day: number
      readonly lesson: string
      /** UTC milliseconds at which it is due, when each lesson before was sent as soon as it was due. */
      readonly at: number
      /** The time that the spacing moves it from. */
      readonly spacedFrom?: number
      /** Minutes after midnight that the course asks for, and that the clock skips on this day. */
      readonly skipped?: number
      /** Set if the clock shows this local time twice: the first or the second of the two moments. */
      readonly repeated?: 'first' | 'second'
      /** The zone of the two above. */
      readonly zone: string
    }
  | ({ readonly kind: 'clock' } & ClockChange)

/**
 * The mails that a course sends after a confirmation at this moment, with the clock changes between. `timeZone` is the
 * subscriber's own; times are shown in it.
 */
export function timelineOf(
  plan: Plan,
  { confirmedAt, timeZone }: { readonly confirmedAt: number; readonly timeZone: string },
): readonly TimelineEntry[] {
  const { cadence } = plan
  const zone = cadence.kind === 'at' ? (cadence.zone ?? timeZone) : timeZone
  const steps: TimelineEntry[] = []
  let lastSentAt: number | undefined
  for (const [index, lesson] of plan.lessons.entries()) {
    const day = index + 1
    const planned = dueAt(plan, { confirmedAt, timeZone }, day, zones)
    const at = plan.spacingMs === 0 ? planned : dueAt(plan, { confirmedAt, timeZone, lastSentAt }, day, zones)
    const repeated = repeatOf(at, zone)
    steps.push({
      kind: 'lesson',
      day,
      lesson,
      at,
      zone,
      ...(at > planned && { spacedFrom: planned }),
      ...(cadence.kind === 'at' &&
        at === planned &&
        minuteAt(at, zone) !== cadence.minute && { skipped: cadence.minute }),
      ...(repeated && { repeated }),
    })
    lastSentAt = at
  }
  const end = steps.at(-1)?.at ?? confirmedAt
  const changes = [...new Set([timeZone, zone])].flatMap((one) => clockChanges(confirmedAt, end, one))
  return [...steps, ...changes.map((change) => ({ kind: 'clock' as const, ...change }))].sort(
    (one, other) => one.at - other.at || (one.kind === 'clock' ? -1 : 1),
  )
}
