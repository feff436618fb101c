import { Temporal } from 'temporal-polyfill'
import type { Zones } from './schedule.ts'

const EPOCH = Temporal.PlainDate.from('1970-01-01')

/**
 * Local time by Temporal. Its `compatible` rule is that of RFC 5545, section 3.3.5: a local time that is skipped is read
 * with the offset before the gap, so it comes later by as much; of one that occurs twice, the first counts.
 */
export const zones: Zones = {
  dayAt: (instant, zone) =>
    EPOCH.until(Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone).toPlainDate()).days,
  instantOf: (day, minute, zone) =>
    EPOCH.add({ days: day })
      .toPlainDateTime({ hour: Math.floor(minute / 60), minute: minute % 60 })
      .toZonedDateTime(zone, { disambiguation: 'compatible' }).epochMilliseconds,
}

/** Milliseconds that a zone's clock is ahead of UTC at a moment. */
export function offsetAt(instant: number, zone: string): number {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone).offsetNanoseconds / 1e6
}

/** A clock that goes forward or back. */
export interface ClockChange {
  /** UTC milliseconds of the first moment with the new offset. */
  readonly at: number
  /** Positive: forward. */
  readonly shiftMs: number
  readonly zone: string
}

/** The changes of a zone's clock after `from` and up to `to`. */
export function clockChanges(from: number, to: number, zone: string): readonly ClockChange[] {
  const changes: ClockChange[] = []
  for (let at = from; ; ) {
    const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone)
    const next = local.getTimeZoneTransition('next')?.epochMilliseconds
    if (next === undefined || next > to) return changes
    changes.push({ at: next, shiftMs: offsetAt(next, zone) - offsetAt(next - 1, zone), zone })
    at = next
  }
}
