import { DAY_MS } from '../durations.ts'
import { parsedJson } from '../is-record.ts'
import { nextDay, type Problem, type Subscription } from './subscription.ts'

/** A subscription as a store has it, before anything is believed of it. */
export type StoredSubscription = Pick<
  Subscription,
  'id' | 'state' | 'enrolment' | 'confirmedAt' | 'unsubscribedAt' | 'lessons' | 'lastSentAt' | 'nextAttemptAt'
> & {
  /** JSON. */
  readonly sentDays: string
  /** When the lesson in hand is due; undefined: a day after the one before, from confirmation on. */
  readonly dueAt: number | undefined
  /** It began elsewhere: lessons may have been sent there before they would be due here. */
  readonly isImported: unknown
  readonly problem: Problem['kind'] | undefined
}

/** One sentence for each promise of CONTRACT §5 that a row breaks. `now` in UTC milliseconds. */
export function violations(row: StoredSubscription, now: number): readonly string[] {
  const days = daysOf(row.sentDays, row.lessons)
  if (days === undefined) return [`the days sent are not a list of days 1 to ${row.lessons}`]
  const found: string[] = []
  const hold = (kept: boolean, sentence: string) => {
    if (!kept) found.push(sentence)
  }
  const inOrder = days.every((day, index) => day === index + 1)
  hold(inOrder, `the days sent are not in order: ${days.join(', ')}`)
  if (row.state === 'unconfirmed') {
    hold(row.confirmedAt === undefined, 'it is unconfirmed and has a time of confirmation')
    hold(days.length === 0, 'it is unconfirmed and was sent lessons')
    hold(row.nextAttemptAt === undefined, 'it is unconfirmed and a lesson is planned')
    return found
  }
  hold(row.enrolment >= 1, `it is ${row.state} and was never enrolled`)
  if (row.confirmedAt === undefined) return [...found, `it is ${row.state} and has no time of confirmation`]
  const last = days.at(-1)
  // A row tells only when its next lesson is due. If it has none although a lesson is planned, the course
  // sends one a day; otherwise its cadence is not known here.
  const isDaily = !row.isImported && row.dueAt === undefined && row.nextAttemptAt !== undefined
  const sentDue = isDaily ? row.confirmedAt + ((last ?? 1) - 1) * DAY_MS : row.lastSentAt
  hold(
    last === undefined || sentDue === undefined || sentDue <= now,
    `day ${last} was sent before it was due (or this machine’s clock is behind)`,
  )
  if (row.state === 'unsubscribed') {
    hold(row.unsubscribedAt !== undefined, 'it is unsubscribed and has no time of that')
    hold(row.nextAttemptAt === undefined, 'it is unsubscribed and a lesson is planned')
    return found
  }
  hold(row.unsubscribedAt === undefined, 'it is confirmed and has a time of unsubscribing')
  const next = nextDay({ sentDays: days, lessons: row.lessons })
  if (next === undefined) {
    hold(row.nextAttemptAt === undefined, 'all lessons were sent and another is planned')
  } else if (row.nextAttemptAt === undefined) {
    hold(row.problem === 'parked' || row.problem === 'unknown', `day ${next} is never going to be tried`)
  } else {
    const dueAt = row.dueAt ?? row.confirmedAt + (next - 1) * DAY_MS
    hold(row.nextAttemptAt >= dueAt, `day ${next} is planned before it is due`)
  }
  return found
}

function daysOf(json: string, lessons: number): readonly number[] | undefined {
  const days = parsedJson(json)
  return Array.isArray(days) && days.every((day) => Number.isInteger(day) && day >= 1 && day <= lessons)
    ? (days as number[])
    : undefined
}
