import { Temporal } from 'temporal-polyfill'
import { attempt } from '../is-record.ts'
import type { Zones } from './due.ts'

const EPOCH = Temporal.PlainDate.from('1970-01-01')
/** A zone that is not known here, as the row of another build may have it, is none: one reader must not hold up all. */
const known = (zone: string) => (attempt(() => EPOCH.toZonedDateTime(zone)) ? zone : 'UTC')

const localOf = (instant: number, zone: string) =>
  Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone)

/**
 * Local time by Temporal. `compatible` is RFC 5545 §3.3.5: a local time that is skipped is read with the offset before
 * the gap, so it comes later; of one that occurs twice, the first counts.
 */
export const zones: Zones = {
  dayAt: (instant, zone) => EPOCH.until(localOf(instant, known(zone)).toPlainDate()).days,
  instantOf: (day, minute, zone) =>
    EPOCH.add({ days: day })
      .toPlainDateTime({ hour: Math.floor(minute / 60), minute: minute % 60 })
      .toZonedDateTime(known(zone), { disambiguation: 'compatible' }).epochMilliseconds,
}

/** Milliseconds that a zone's clock is ahead of UTC at a moment. */
export const offsetAt = (instant: number, zone: string) => localOf(instant, zone).offsetNanoseconds / 1e6

export interface ClockChange {
  /** UTC milliseconds of the first moment with the new offset. */
  readonly at: number
  /** Positive: forward. */
  readonly shiftMs: number
  readonly zone: string
}

export function clockChanges(from: number, to: number, zone: string): readonly ClockChange[] {
  const changes: ClockChange[] = []
  for (let at = from; ; ) {
    const next = localOf(at, zone).getTimeZoneTransition('next')?.epochMilliseconds
    if (next === undefined || next > to) return changes
    changes.push({ at: next, shiftMs: offsetAt(next, zone) - offsetAt(next - 1, zone), zone })
    at = next
  }
}
