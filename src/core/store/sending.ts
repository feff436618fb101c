import { withoutAddresses } from '../audit.ts'
import { MINUTE_MS, MOST_SKEW_MS } from '../durations.ts'
import type { ConditionName } from '../incidents/advice.ts'
import * as counting from '../mail/feedback/sending.ts'
import * as holding from '../mail/holds.ts'
import { shortened } from '../sentences.ts'
import { LESSON_DUE, MAY_BE_UNDECIDED, SENT_NOTE, STREAM_SENT_NOTE } from './counts.ts'
import type { JournalEntry } from './journal.ts'
import type { Sql, Steps } from './sql.ts'
import { addAudit, all, first, insertRows, journal, lock, run, SPACE, scalar } from './sql.ts'

/** Limit on the joined reasons of a stream, in characters, so that repeated pauses cannot fill the store. */
const LONGEST_REASON = 1000
const NOW_US = '(@leaseNow * 1000)'
/** The row of a stream's pause. Builds that know the pause of courses alone have it under "mail". */
const rowOf = (stream: holding.StreamName) => (stream === 'course' ? 'mail' : `stream ${stream}`)
/** When mail left, to the minute; of lessons by their own note: counts are written once a minute. */
const SENT = `SELECT max(minute) * ${MINUTE_MS} AS at FROM mail_minute WHERE kind = 'sent'
  UNION ALL SELECT CAST(value AS bigint) FROM meta WHERE name = '${SENT_NOTE}'`

export const TEXTS = {
  countMinutes: addTo('mail_minute', 'minute, kind'),
  countDays: addTo('mail_day', 'day, source, domain, kind'),
  holds: 'SELECT name, paused_at, reason FROM breaker WHERE paused_at IS NOT NULL',
  // The pause, and the sums that decide about one, by one statement; what a clock ahead has written says nothing.
  sums: `SELECT b.paused_at, b.reason, m.kind, CAST(sum(m.count) AS bigint) AS count
    FROM (SELECT 1) AS one LEFT JOIN breaker b ON b.name = 'mail'
      LEFT JOIN mail_minute m ON m.minute BETWEEN @since AND @latest
        AND (m.minute >= coalesce(b.resumed_at, 0) / 60000 OR b.resumed_at / 60000 > @latest)
    GROUP BY 1, 2, 3`,
  pause: `INSERT INTO breaker (name, paused_at, reason) VALUES (@name, @now, @reason)
    ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, reason = excluded.reason`,
  // An incident tells of one pause: the next round finds the later one, which gets an alert of its own.
  endOther: `UPDATE incident SET closed_at = CASE WHEN opened_at < @now THEN @now ELSE opened_at END, resolved_by = @who, resolved_reason = @why
    WHERE cause IN (SELECT value FROM {each @causes}) AND closed_at IS NULL`,
  resume: 'UPDATE breaker SET paused_at = NULL, reason = NULL, resumed_at = @now WHERE name = @name',
  forgive: 'UPDATE mail_minute SET count = 0 WHERE minute = @minute',
  breaker: 'SELECT paused_at, reason, resumed_at FROM breaker WHERE name = @name',
  days: 'SELECT day, source, domain, kind, count FROM mail_day WHERE day >= @since ORDER BY day, source, domain, kind',
  reserve: `INSERT INTO pace (name, next_us) VALUES ('mail', ${NOW_US} + @totalUs)
    ON CONFLICT (name) DO UPDATE SET next_us =
      CASE WHEN pace.next_us BETWEEN ${NOW_US} AND ${NOW_US} + @furthestUs THEN pace.next_us ELSE ${NOW_US} END + @totalUs
    RETURNING next_us - @totalUs - ${NOW_US} AS wait`,
  prune: 'DELETE FROM mail_minute WHERE minute < @before',
  // What is on its way, by stream; `at` is its next attempt, `since` when it became due.
  queue: `SELECT stream,
      CAST(count(*) FILTER (WHERE at <= @now) AS bigint) AS due,
      CAST(count(*) FILTER (WHERE at > @now AND tried) AS bigint) AS waiting,
      CAST(count(*) FILTER (WHERE at IS NULL) AS bigint) AS failed,
      min(since) FILTER (WHERE since <= @now) AS oldest_at, min(at) FILTER (WHERE at > @now) AS next_at
    FROM (
      SELECT stream, CASE WHEN done_at IS NULL THEN next_attempt_at END AS at, attempts > 0 OR coalesce(outcome, '') = 'not_composed' AS tried, created_at AS since FROM message
      UNION ALL SELECT 'course', CASE WHEN claimed_at IS NULL OR problem_kind IS NOT NULL THEN next_attempt_at ELSE claimed_at END,
          problem_kind IS NOT NULL, ${LESSON_DUE}
        FROM subscription
        WHERE next_attempt_at IS NOT NULL OR (${MAY_BE_UNDECIDED})
      UNION ALL SELECT 'alert', NULL, true, m.at
        FROM alert_message m JOIN incident i ON i.id = m.incident
        WHERE m.outcome = 'failed' AND i.closed_at IS NULL) AS queued
    GROUP BY stream`,
  sent: `SELECT max(at) AS at FROM (${SENT}) AS sent`,
  // A stream of which nothing left: with one mail while no other leaves either, with those of three people in any case.
  stalled: `SELECT min(at) AS at FROM (
      SELECT min(created_at) AS at, max(created_at) AS newest_at, count(DISTINCT coalesce(subscription, address, id)) AS people
      FROM message
      WHERE stream <> 'alert' AND (attempts > 0 OR outcome = 'not_composed' OR done_at >= expires_at) AND (done_at IS NULL OR (outcome = 'over' AND done_at > @before)) AND created_at <= @before
        AND created_at > coalesce((SELECT CAST(value AS bigint) FROM meta
          WHERE name = '${STREAM_SENT_NOTE}' || stream AND CAST(value AS bigint) <= @now), 0)
        AND ('stream ' || stream) NOT IN (SELECT name FROM breaker WHERE paused_at IS NOT NULL)
      GROUP BY stream) AS stuck
    WHERE people >= 3 OR newest_at > coalesce((SELECT max(at) FROM (${SENT}) AS sent WHERE at <= @now), 0) + ${MINUTE_MS}`,
  refused: newest(['bounced', 'parked']),
  failed: newest(['failed', 'unknown']),
}

/** Adds counts to those that a table has under the same key. */
function addTo(table: string, key: string): string {
  return `${insertRows(table, `${key}, count`)}
    ON CONFLICT (${key}) DO UPDATE SET count = ${table}.count + excluded.count`
}

function newest(kinds: readonly string[]): string {
  return `SELECT problem_since AS at, problem_reason AS reason FROM subscription {by subscription_problem}
    WHERE problem_kind IS NOT NULL AND problem_kind IN (${kinds.map((kind) => `'${kind}'`).join(', ')})
    ORDER BY problem_since DESC LIMIT 1`
}

type State = { readonly pausedAt: number | undefined; readonly reason: string | undefined }

const pauseOf = (state: State | undefined): holding.Pause | undefined =>
  state?.pausedAt === undefined ? undefined : { at: state.pausedAt, reason: state.reason ?? '' }

/** Adds to the counts of mail, in the transaction of what is counted. */
export function* addCounts(counts: readonly counting.MailCount[]): Steps<void> {
  const { minutes, days } = counting.sumCounts(counts)
  if (minutes.length > 0) yield* run(TEXTS.countMinutes, { rows: minutes })
  if (days.length > 0) yield* run(TEXTS.countDays, { rows: days })
}

function* holdsOf(streams: readonly holding.StreamName[] = holding.STREAMS): Steps<readonly holding.Hold[]> {
  const rows = yield* all<State & { readonly name: string }>(TEXTS.holds)
  return streams.flatMap((stream) => {
    const pause = pauseOf(rows.find(({ name }) => name === rowOf(stream)))
    return pause ? [{ stream, ...pause }] : []
  })
}

/** Pauses streams; gives whether anything changed. A paused one keeps its time and gets the new reason in front. */
function* pauseStreams(
  streams: readonly holding.StreamName[],
  now: number,
  reason: string,
  who: string,
  isKnown = (pause: holding.Pause) => `; ${pause.reason}; `.includes(`; ${reason}; `),
): Steps<boolean> {
  // Two that pause at once must not overwrite each other's reason.
  yield* lock(SPACE.budget, 'holds')
  const causes: ConditionName[] = []
  const held = yield* holdsOf(streams)
  for (const stream of streams) {
    const pause = held.find((one) => one.stream === stream)
    if (pause && isKnown(pause)) continue
    const reasons = pause ? shortened(`${reason}; ${pause.reason}`, LONGEST_REASON) : reason
    const row = { name: rowOf(stream), reason: reasons }
    // With all reasons, because a restore repeats only the last line.
    yield* journal({ what: 'paused', at: now, ...row })
    yield* run(TEXTS.pause, { ...row, now: pause?.at ?? now })
    causes.push(stream === 'course' ? 'courses_paused' : 'mail_paused')
  }
  yield* run(TEXTS.endOther, { causes, now, who, why: `another pause began: ${reason}` })
  return causes.length > 0
}

/** Ends a pause. Clears the counts of this minute, so that only later mail can pause courses again. */
function* resumeStream(name: string, now: number): Steps<number> {
  if (name === rowOf('course')) yield* run(TEXTS.forgive, { minute: counting.minuteOf(now) })
  return yield* run(TEXTS.resume, { name, now })
}

/** Pauses or resumes again what a journal says, unless the store knows something later; gives the changed rows. */
export function* holdAgain({ at: now, ...hold }: Extract<JournalEntry, { what: 'paused' | 'resumed' }>) {
  const found = yield* first<Partial<State> & { resumedAt?: number }>(TEXTS.breaker, { name: hold.name })
  const { pausedAt, reason, resumedAt = 0 } = found ?? {}
  const isLater = pausedAt !== undefined && pausedAt > now
  if (hold.what === 'resumed')
    return pausedAt === undefined || isLater ? 0 : yield* resumeStream(hold.name, now)
  const isKnown = isLater || resumedAt > now || `; ${reason}`.endsWith(`; ${hold.reason}`)
  if (isKnown) return 0
  const isSame = reason !== undefined && `; ${hold.reason}`.endsWith(`; ${reason}`)
  return yield* run(TEXTS.pause, { ...hold, now: isSame ? pausedAt : now })
}

/** What all dispatchers of a store share: the counts, the pause and the pace. */
export function sending({ one, read, write }: Sql): counting.SendingStore {
  return {
    count: (counts) => write(() => addCounts(counts)),
    async check(now) {
      const since = counting.minuteOf(now - counting.BREAKER.windowMs) + 1
      const latest = counting.minuteOf(now + MOST_SKEW_MS)
      const rows = await one(all<State & { kind?: string; count?: number }>(TEXTS.sums, { since, latest }))
      const pause = pauseOf(rows[0])
      const reason = counting.breach((kind) => rows.find((row) => row.kind === kind)?.count ?? 0)
      if (reason === undefined || counting.isBreach(pause)) return pause
      return write(function* () {
        // Two processes that find it at once have counted differently, and one reason is enough.
        yield* pauseStreams(['course'], now, reason, 'the breaker', counting.isBreach)
        return holding.coursePause(yield* holdsOf())
      })
    },
    holds: () => one(holdsOf()),
    queue: (now) => one(all<holding.StreamQueue>(TEXTS.queue, { now })),
    lastMail: () =>
      read(function* (): Steps<holding.LastMail> {
        const sentAt = yield* scalar<number>(TEXTS.sent)
        return { sentAt, refused: yield* first(TEXTS.refused), failed: yield* first(TEXTS.failed) }
      }),
    stalledSince: (at) => one(scalar(TEXTS.stalled, at)),
    pause: ({ streams, reason: given, now, audit }) =>
      write(function* () {
        const changed = yield* pauseStreams(streams, now, withoutAddresses(given), audit.who)
        if (changed) yield* addAudit(audit)
        return yield* holdsOf(streams)
      }),
    resume: ({ streams, now, audit }) =>
      write(function* () {
        // Of two who resume at once, one ends the pause and is in the audit log.
        yield* lock(SPACE.budget, 'holds')
        const ended = yield* holdsOf(streams)
        for (const { stream } of ended) {
          const name = rowOf(stream)
          yield* journal({ what: 'resumed', at: now, name })
          yield* resumeStream(name, now)
        }
        if (ended.length > 0) yield* addAudit(audit)
        return ended
      }),
    days: (since) => one(all<counting.MailDayCount>(TEXTS.days, { since: counting.dayNameOf(since) })),
    reserve: async ({ messages, intervalUs }) => {
      const values = { totalUs: messages * intervalUs, furthestUs: counting.furthestUs(intervalUs) }
      return Math.max(0, (await one(scalar<number>(TEXTS.reserve, values))) ?? 0)
    },
    prune: async (before) => void (await one(run(TEXTS.prune, { before: counting.minuteOf(before) }))),
  }
}
