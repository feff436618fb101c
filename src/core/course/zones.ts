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
