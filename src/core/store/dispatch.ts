import { batchPerTick } from '../calls.ts'
import type { HistoryEntry } from '../course/history.ts'
import { aboutOf, lessonsKey } from '../course/host.ts'
import type { CourseStore } from '../course/store.ts'
import type { Claim, Settlement, SubscriptionRecord } from '../course/subscription.ts'
import * as claiming from '../course/transitions/claim.ts'
import { ASKED_FOR, IS_GENTLE, SENT_NOTE } from './counts.ts'
import { leaving } from './departures.ts'
import { all, journal, run, type Sql, type Steps, scalar, setMeta } from './sql.ts'
import { history, ROW_COLUMNS, ROW_FORMAT, type Row, recordOf, subscriptions } from './subscriptions.ts'

/** The note of the last lesson is written rarely, so that dispatchers do not wait for each other's row. */
const NOTED_EVERY_MS = 10_000

/** The lessons of an index that a call may claim. */
const lessons = (index: string, which: string, order: string) => `SELECT ${ROW_COLUMNS}{rowid}
  FROM subscription {by ${index}}
  WHERE ${ASKED_FOR} AND holder IS DISTINCT FROM @call AND needs <= ${ROW_FORMAT} AND ${which}
  ORDER BY ${order} LIMIT @most FOR UPDATE SKIP LOCKED`
/** A claim moves the row's next attempt to the end of its lease, so the one index on it hides what is claimed. */
const DUE = `next_attempt_at <= @now AND claimed_at IS NULL AND (CAST(@gentle AS boolean) IS NOT TRUE OR ${IS_GENTLE})`
/** A lease that ends later than `longest` was taken before the clock of leases was set back, so it is over. */
const INTERRUPTED = `claimed_at IS NOT NULL
    AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now ELSE lease_until <= @leaseNow OR lease_until > @longest END`

export const TEXTS = {
  fresh: lessons('subscription_due', `{neverFailed} AND ${DUE}`, 'next_attempt_at'),
  failed: lessons('subscription_due', `{failed} AND ${DUE}`, 'next_attempt_at'),
  interrupted: lessons('subscription_claimed', INTERRUPTED, 'first_attempt_at'),
  leaseNow: 'SELECT @leaseNow AS now',
  // Without a next attempt the subscriber has left: don't give them a new one.
  keep: `UPDATE subscription SET lease_until = @leaseNow + @leaseMs,
      next_attempt_at = CASE WHEN subscription.next_attempt_at IS NOT NULL THEN CAST(@nextAttemptAt AS bigint) END
    FROM {rows subscription: id, enrolment} AS r
    WHERE subscription.id = r.id AND subscription.enrolment = r.enrolment AND subscription.holder = @call AND subscription.claimed_at IS NOT NULL`,
  inherit: `INSERT INTO sent_mail (key, first_attempt_at, content) SELECT @key, @now, content FROM sent_mail WHERE key = @from
    ON CONFLICT DO NOTHING`,
  holds: `SELECT id, fence FROM subscription WHERE id IN (SELECT value FROM {each @ids}) AND state = 'confirmed'`,
}

/** A row that is due; where rows have numbers, with the one that it has within the transaction. */
export type DueRow = Row & { readonly rowid?: number }

/** What a store of one process writes row by row, faster than by the general statements. */
export interface RowByRow {
  /** False: an older build has claimed the row before, so it takes the general statement. */
  readonly claim: (taken: SubscriptionRecord, row: DueRow) => boolean
  /** Records a sent lesson and its attempt without reading its row; false if the claim no longer holds. */
  readonly markSent: (settlement: Settlement) => boolean
}

/** What a dispatcher does for every lesson. Locked rows are skipped, so that dispatchers never wait for each other. */
export function dispatch({ one, read, write }: Sql, rowByRow?: RowByRow) {
  let notedAt = Number.NEGATIVE_INFINITY
  return {
    async claimDue(asked) {
      const { now, limit, retries, leaseMs, call } = asked
      function* find(query: string, most: number, leaseUntil: number): Steps<readonly DueRow[]> {
        // The clock of a server may go back a little between two statements.
        const longest = leaseUntil + (rowByRow ? 0 : leaseMs)
        return yield* all<DueRow>(query, { ...asked, most, longest }, true)
      }
      function* leaseEnd(): Steps<number> {
        return ((yield* scalar<number>(TEXTS.leaseNow)) ?? 0) + leaseMs
      }
      function* isAnyDue(): Steps<boolean> {
        const leaseUntil = yield* leaseEnd()
        for (const query of [TEXTS.interrupted, TEXTS.fresh, TEXTS.failed])
          if ((yield* find(query, 1, leaseUntil)).length > 0) return true
        return false
      }
      // Look before asking for the one write lock of a file, so that a call with nothing to do holds up no writer.
      if (rowByRow && !(await read(isAnyDue))) return []
      return write(function* () {
        const leaseUntil = yield* leaseEnd()
        const taken: SubscriptionRecord[] = []
        function* takeDue(query: string, most: number): Steps<void> {
          if (most <= 0) return
          const changed: SubscriptionRecord[] = []
          const lost: (readonly [string, HistoryEntry])[] = []
          for (const row of yield* find(query, most, leaseUntil)) {
            const found = recordOf(row)
            if (found.unreadableDays !== undefined) {
              changed.push(claiming.setAside(found, now))
              continue
            }
            const one = claiming.take(found, { now, leaseMs, leaseUntil, call })
            taken.push(one)
            if (one.problem !== found.problem || rowByRow?.claim(one, row) !== true) changed.push(one)
            const entry = claiming.lostAttempt(found, one)
            if (entry === undefined) continue
            lost.push([found.id, entry])
            const key = lessonsKey(aboutOf({ ...found, day: entry.day }))
            yield* run(TEXTS.inherit, { key, now, from: lessonsKey(found.claimedBy ?? '') })
          }
          yield* subscriptions.save(changed)
          yield* history.remember(...lost)
        }
        yield* takeDue(TEXTS.interrupted, limit)
        yield* takeDue(TEXTS.failed, Math.min(retries, limit - taken.length))
        yield* takeDue(TEXTS.fresh, limit - taken.length)
        yield* takeDue(TEXTS.failed, limit - taken.length)
        return claiming.inTurn(taken.flatMap((one) => claiming.claimOf(one) ?? []))
      })
    },
    async keep({ claims, call, now, leaseMs }) {
      const rows = claims.map(({ id, enrolment }) => ({ id, enrolment }))
      await one(run(TEXTS.keep, { rows, call, leaseMs, nextAttemptAt: now + leaseMs }))
    },
    stillHolds: batchPerTick<Claim, boolean>(async (claims) => {
      const ids = claims.map(({ id }) => id)
      const rows = await one(all<{ id: string; fence: number }>(TEXTS.holds, { ids }, true))
      const fences = new Map(rows.map(({ id, fence }) => [id, fence]))
      return claims.map((claim) => fences.get(claim.id) === claim.fence)
    }),
    async settle(settlements) {
      const last = settlements.findLast(({ attempt }) => attempt?.outcome === 'sent')
      const sentAt = last && Math.abs(last.now - notedAt) >= NOTED_EVERY_MS ? last.now : undefined
      await write(function* () {
        if (sentAt !== undefined) yield* setMeta(SENT_NOTE, String(sentAt))
        const others: Settlement[] = []
        for (const one of settlements) if (!one.sent || rowByRow?.markSent(one) !== true) others.push(one)
        if (rowByRow) yield* subscriptions.sayNames(settlements.flatMap(({ progress }) => progress ?? []))
        if (others.length === 0) return
        const rows = yield* subscriptions.lockAll(others.map(({ claim }) => claim.id))
        const current = new Map(rows.map((row) => [row.id, row]))
        const changed = new Map<string, SubscriptionRecord>()
        for (const settlement of others) {
          const before = current.get(settlement.claim.id)
          const after = before && claiming.record(before, settlement)
          if (after === undefined) continue
          current.set(after.id, after)
          changed.set(after.id, after)
          if (after.state === 'unsubscribed' && before?.state === 'confirmed')
            yield* journal(...(yield* leaving(settlement.now, after)))
        }
        yield* subscriptions.save([...changed.values()])
        // An outcome that came too late to change the row still belongs in the history.
        yield* history.remember(
          ...others.flatMap((settlement) => {
            const entry = claiming.attemptEntry(settlement)
            return entry ? [[settlement.claim.id, entry] as const] : []
          }),
        )
      })
      notedAt = sentAt ?? notedAt
    },
  } satisfies Partial<CourseStore>
}
