import { DAY_MS } from '../../durations.ts'
import { dayNameOf, type MailDayCount } from './sending.ts'

/** Mails sent and feedback received on one UTC day. */
export interface DayOfMail {
  /** `2026-11-22` */
  readonly day: string
  readonly sent: number
  readonly hardBounces: number
  readonly softBounces: number
  readonly complaints: number
}

/** A time on the first of the last `days` days, of which today is one. */
export function firstOfDays(days: number, now: number): number {
  return now - (days - 1) * DAY_MS
}

/** The last days, oldest first, over all sources and recipients; a day without mail is there with zeros. */
export function dailyMail(
  counts: readonly MailDayCount[],
  { days, now }: { days: number; now: number },
): readonly DayOfMail[] {
  return Array.from({ length: days }, (_, index) => {
    const day = dayNameOf(firstOfDays(days, now) + index * DAY_MS)
    const of = (kind: MailDayCount['kind']) =>
      counts.reduce((sum, one) => (one.day === day && one.kind === kind ? sum + one.count : sum), 0)
    return {
      day,
      sent: of('sent'),
      hardBounces: of('hard-bounce'),
      softBounces: of('soft-bounce'),
      complaints: of('complaint'),
    }
  })
}
