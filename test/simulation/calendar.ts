import type { CourseDefinition } from '../../src/core/course/definition.ts'
import { UNKNOWN_ZONE } from './courses.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/**
 * When lessons are due, worked out from the offsets of a time zone and from RFC 5545 alone: the schedule under
 * simulation must agree, though it is made in another way.
 */
export interface Calendar {
  /** Lesson `day` of an enrolment; spacing is left out. */
  dueAt(
    course: Pick<CourseDefinition, 'cadence'>,
    enrolment: { readonly confirmedAt: number; readonly timeZone: string | undefined },
    day: number,
  ): number
  /** The lesson after one that was due at `before`, under the cadence of now: on a later day, in that zone. */
  dueAfter(
    course: Pick<CourseDefinition, 'cadence'>,
    enrolment: { readonly timeZone: string | undefined },
    before: number,
  ): number
}

interface Offset {
  readonly from: number
  readonly ms: number
}

/** For moments between the two. */
export function createCalendar(from: number, to: number): Calendar {
  const byZone = new Map<string, readonly Offset[]>()
  const offsetsOf = (zone: string) => {
    let found = byZone.get(zone)
    if (found === undefined) {
      found = offsetsBetween(zone, from, to)
      byZone.set(zone, found)
    }
    return found
  }
  /** The slots from some days before `since` on. */
  function* slots(
    { minute, weekdays, zone }: Extract<CourseDefinition['cadence'], { kind: 'at' }>,
    timeZone: string | undefined,
    since: number,
  ) {
    const wanted = zone ?? timeZone ?? 'UTC'
    const offsets = offsetsOf(wanted === UNKNOWN_ZONE ? 'UTC' : wanted)
    const today = Math.floor((since + offsetAt(since, offsets)) / DAY) * DAY
    for (let midnight = Math.floor(since / DAY) * DAY - 3 * DAY; ; midnight += DAY) {
      const weekday = new Date(midnight).getUTCDay() || 7
      const isChosen = weekdays.length === 0 || weekdays.includes(weekday)
      yield { isChosen, isLater: midnight > today, instant: instantOf(midnight + minute * MINUTE, offsets) }
    }
  }
  return {
    dueAt({ cadence }, { confirmedAt, timeZone }, day) {
      if (cadence.kind === 'every') return confirmedAt + (day - 1) * cadence.ms
      let left = day
      for (const { isChosen, instant } of slots(cadence, timeZone, confirmedAt)) {
        if (isChosen && instant >= confirmedAt) left -= 1
        if (left === 0) return instant
      }
      return Number.NaN
    },
    dueAfter({ cadence }, { timeZone }, before) {
      if (cadence.kind === 'every') return before + cadence.ms
      // A slot that a clock change moved past midnight was that of the day before.
      let wasSlot = false
      for (const { isChosen, isLater, instant } of slots(cadence, timeZone, before)) {
        if (isChosen && (isLater || wasSlot) && instant > before) return instant
        wasSlot ||= instant === before
      }
      return Number.NaN
    },
  }
}

/**
 * The instant of a local time. If it occurs twice, the first; if it is skipped, it is read with the offset before the
 * gap.
 */
function instantOf(local: number, offsets: readonly Offset[]): number {
  for (const [index, { ms }] of offsets.entries()) {
    const next = offsets[index + 1]
    const instant = local - ms
    if (next === undefined || instant < next.from) return instant
    // In the gap: after the change by the old offset, and before it by the new one.
    if (local - next.ms < next.from) return instant
  }
  return local
}

const offsetAt = (instant: number, offsets: readonly Offset[]) =>
  offsets.findLast(({ from }) => from <= instant)?.ms ?? 0

function offsetsBetween(zone: string, from: number, to: number): readonly Offset[] {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  const offsetAt = (at: number) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = part
    return Date.UTC(year, month - 1, day, hour, minute) - at
  }
  const start = Math.floor(from / DAY) * DAY
  const found: Offset[] = [{ from: Number.NEGATIVE_INFINITY, ms: offsetAt(start) }]
  for (let at = start; at < to; at += DAY) {
    const ms = offsetAt(at + DAY)
    if (ms === found.at(-1)?.ms) continue
    let [before, after] = [at, at + DAY]
    while (after - before > MINUTE) {
      const middle = before + Math.floor((after - before) / 2 / MINUTE) * MINUTE
      if (offsetAt(middle) === ms) after = middle
      else before = middle
    }
    found.push({ from: after, ms })
  }
  return found
}
