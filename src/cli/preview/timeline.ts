import type { CoursePlan } from '../../core/course/definition.ts'
import { dueAt, type Zones } from '../../core/course/schedule.ts'
import { type ClockChange, clockChanges, minuteAt, repeatOf } from './local-time.ts'

/** One thing that happens in a course, in the order of time. */
export type TimelineEntry =
  | {
      readonly kind: 'lesson'
      /** From 1. */
      readonly day: number
      /** The name of its template. */
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
  plan: CoursePlan,
  { confirmedAt, timeZone }: { readonly confirmedAt: number; readonly timeZone: string },
  zones: Zones,
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
