import { BREAKER, breach, dayOfFeedback } from '../mail/feedback/breaker.ts'
import {
  dayNameOf,
  furthestUs,
  type MailCount,
  type MailDayCount,
  minuteOf,
  type SendingStore,
  sumCounts,
} from '../mail/feedback/sending.ts'
import { coursePause, type Hold, type Pause, STREAMS, type StreamName } from '../mail/holds.ts'
import { addAudit } from './audit.ts'
import { readLastMail, readQueue } from './queue.ts'
import { all, type Dialect, first, run, type Sql, type Steps } from './sql.ts'

const NOW_US = '(@leaseNow * 1000)'
/** The row of a stream's pause. Builds that know the pause of courses alone have it under "mail". */
const rowOf = (stream: StreamName) => (stream === 'course' ? 'mail' : `stream ${stream}`)

export const TEXTS = ({ rows }: Dialect) => ({
  countMinutes: `INSERT INTO mail_minute (minute, kind, count)
    SELECT minute, kind, count FROM ${rows('mail_minute', ['minute', 'kind', 'count'])} AS r WHERE true
    ON CONFLICT (minute, kind) DO UPDATE SET count = mail_minute.count + excluded.count`,
  countDays: `INSERT INTO mail_day (day, source, domain, kind, count)
    SELECT day, source, domain, kind, count FROM ${rows('mail_day', ['day', 'source', 'domain', 'kind', 'count'])} AS r WHERE true
    ON CONFLICT (day, source, domain, kind) DO UPDATE SET count = mail_day.count + excluded.count`,
  holds: 'SELECT name, paused_at, reason FROM breaker WHERE paused_at IS NOT NULL',
  // The pause, and the sums that decide about one, by one statement.
  sums: `SELECT b.paused_at, b.reason, m.kind, CAST(sum(m.count) AS bigint) AS count
    FROM (SELECT 1) AS one LEFT JOIN breaker b ON b.name = 'mail'
      LEFT JOIN mail_minute m ON m.minute >= @since AND m.minute > coalesce(b.resumed_at, 0) / 60000
    GROUP BY 1, 2, 3`,
  pause: `INSERT INTO breaker (name, paused_at, reason) VALUES (@name, @now, @reason)
    ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, reason = excluded.reason WHERE breaker.paused_at IS NULL`,
  resume: 'UPDATE breaker SET paused_at = NULL, reason = NULL, resumed_at = @now WHERE name = @name',
  days: 'SELECT day, source, domain, kind, count FROM mail_day WHERE day >= @since ORDER BY day, source, domain, kind',
  reserve: `INSERT INTO pace (name, next_us) VALUES ('mail', ${NOW_US} + @totalUs)
    ON CONFLICT (name) DO UPDATE SET next_us =
      CASE WHEN pace.next_us BETWEEN ${NOW_US} AND ${NOW_US} + @furthestUs THEN pace.next_us ELSE ${NOW_US} END + @totalUs
    RETURNING next_us - @totalUs - ${NOW_US} AS wait`,
  prune: 'DELETE FROM mail_minute WHERE minute < @before',
})

interface State {
  readonly pausedAt: number | undefined
  readonly reason: string | undefined
}

const pauseOf = (state: State | undefined): Pause | undefined =>
  state?.pausedAt === undefined ? undefined : { at: state.pausedAt, reason: state.reason ?? '' }

/** The steps that count mail. */
export function countSteps(dialect: Dialect) {
  const text = TEXTS(dialect)
  return {
    /** Adds to the counts, in the transaction of what is counted. */
    *addCounts(counts: readonly MailCount[]): Steps<void> {
      const { minutes, days } = sumCounts(counts)
      if (minutes.length > 0) yield* run(text.countMinutes, { rows: minutes })
      if (days.length > 0) yield* run(text.countDays, { rows: days })
    },
  }
}

/** What all dispatchers of a store share: the counts, the pause and the pace. */
export function sending({ dialect, one, read, write }: Sql): SendingStore {
  const text = TEXTS(dialect)
  const { addCounts } = countSteps(dialect)
  function* holds(streams: readonly StreamName[] = STREAMS): Steps<readonly Hold[]> {
    const rows = yield* all<State & { readonly name: string }>(text.holds)
    return streams.flatMap((stream) => {
      const pause = pauseOf(rows.find(({ name }) => name === rowOf(stream)))
      return pause ? [{ stream, ...pause }] : []
    })
  }
  return {
    count: (counts) => write(() => addCounts(counts)),
    check: (now) =>
      read(function* () {
        const since = minuteOf(now - BREAKER.windowMs) + 1
        const rows = yield* all<State & { kind?: string; count?: number }>(text.sums, { since })
        const pause = pauseOf(rows[0])
        if (pause) return pause
        const reason = breach(dayOfFeedback((kind) => rows.find((row) => row.kind === kind)?.count ?? 0))
        if (reason === undefined) return undefined
        yield* run(text.pause, { name: rowOf('course'), now, reason })
        return coursePause(yield* holds())
      }),
    holds: () => one(holds()),
    queue: (now) => one(readQueue(dialect, now)),
    lastMail: () => read(() => readLastMail(dialect)),
    pause: ({ streams, reason, now, audit }) =>
      write(function* () {
        let changed = 0
        for (const stream of streams) changed += yield* run(text.pause, { name: rowOf(stream), now, reason })
        if (changed > 0) yield* addAudit(audit)
        return yield* holds(streams)
      }),
    resume: ({ streams, now, audit }) =>
      write(function* () {
        const ended = yield* holds(streams)
        for (const { stream } of ended) yield* run(text.resume, { name: rowOf(stream), now })
        if (ended.length > 0) yield* addAudit(audit)
        return ended
      }),
    days: (since) => one(all<MailDayCount>(text.days, { since: dayNameOf(since) })),
    reserve: async ({ messages, intervalUs }) => {
      const values = { totalUs: messages * intervalUs, furthestUs: furthestUs(intervalUs) }
      return Math.max(0, (await one(first<{ wait: number }>(text.reserve, values)))?.wait ?? 0)
    },
    prune: async (before) => void (await one(run(text.prune, { before: minuteOf(before) }))),
  }
}
