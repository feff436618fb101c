import { attemptEntry, type HistoryEntry } from '../../course/history.ts'
import type { Claim } from '../../course/store.ts'
import {
  claimOf,
  compareClaims,
  lostAttempt,
  record,
  type SubscriptionRecord,
  setAside,
  take,
} from '../../course/subscription.ts'
import { batchPerTick } from '../../per-tick.ts'
import { gently } from '../counts.ts'
import type { Dispatch } from '../operations.ts'
import type { CourseParts } from '../parts.ts'
import { createSentNote, SENT_NOTE } from '../sent-note.ts'
import { all, first, run, type Sql, type Steps } from '../sql.ts'
import { claimedAs, type Row, recordOf } from '../subscriptions.ts'
import { DIALECT } from './sql.ts'

const due = (which: string, failed: boolean) => `
  SELECT * FROM subscription
  WHERE ${which} next_attempt_at IS NOT NULL AND ${DIALECT.hasFailed(failed)} AND next_attempt_at <= @now AND claimed_at IS NULL AND claimed_by IS DISTINCT FROM @call
  ORDER BY next_attempt_at LIMIT @most FOR UPDATE SKIP LOCKED`
/** A lease that ends later than `longest` was taken before the clock of leases was set back, so it is over. */
const interrupted = (which: string) => `
  SELECT * FROM subscription WHERE ${which} claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS DISTINCT FROM @call
    AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now ELSE lease_until <= @leaseNow OR lease_until > @longest END
  ORDER BY first_attempt_at LIMIT @most FOR UPDATE SKIP LOCKED`
const textsOf = (which: string) => ({
  interrupted: interrupted(which),
  fresh: due(which, false),
  failed: due(which, true),
})
const LESSONS = textsOf('')
/** Without what is overdue and has had a lesson within the hour. */
const GENTLY = {
  ...LESSONS,
  fresh: due(`${gently(DIALECT)} AND`, false),
  failed: due(`${gently(DIALECT)} AND`, true),
}
/** Notices alone, which have an index of their own. */
const NOTICES = textsOf("course = 'status' AND")

export const TEXTS = {
  leaseNow: 'SELECT @leaseNow AS now',
  // Without a next attempt the subscriber has left: don't give them a new one.
  keep: `UPDATE subscription SET lease_until = @leaseNow + @leaseMs,
      next_attempt_at = CASE WHEN subscription.next_attempt_at IS NOT NULL THEN CAST(@nextAttemptAt AS bigint) END
    FROM ${DIALECT.rows('subscription', ['id', 'enrolment'])} AS r
    WHERE subscription.id = r.id AND subscription.enrolment = r.enrolment AND subscription.claimed_by = @call AND subscription.claimed_at IS NOT NULL`,
  holds: `SELECT id, fence FROM subscription WHERE id IN (SELECT value FROM ${DIALECT.each('@ids')}) AND state = 'confirmed'`,
  noteSent: `INSERT INTO meta (name, value) VALUES ('${SENT_NOTE}', @at) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
}

/** What a dispatcher does for every lesson, on PostgreSQL: claims by FOR UPDATE SKIP LOCKED, so that dispatchers on many machines never wait for each other. */
export function postgresDispatch({ one, write }: Sql, { subscriptions, history }: CourseParts): Dispatch {
  const sentNote = createSentNote()
  return {
    claimDue: ({ now, limit, retries, leaseMs, call: name, notices = false, gentle = false }) =>
      write(function* () {
        const call = claimedAs(name)
        const text = notices ? NOTICES : gentle ? GENTLY : LESSONS
        const taken: SubscriptionRecord[] = []
        const leaseUntil = ((yield* first<{ now: number }>(TEXTS.leaseNow))?.now ?? 0) + leaseMs
        function* takeDue(query: string, most: number): Steps<void> {
          if (most <= 0) return
          const rows = yield* all<Row>(query, { now, call, most, longest: leaseUntil + leaseMs })
          const lost: (readonly [string, HistoryEntry])[] = []
          const records = rows.map(recordOf).map((found) => {
            if (found.unreadableDays !== undefined) return setAside(found, now)
            const one = take(found, { now, leaseMs, leaseUntil, call })
            const entry = lostAttempt(found, one)
            if (entry) lost.push([found.id, entry])
            return one
          })
          yield* subscriptions.save(records)
          yield* history.remember(...lost)
          taken.push(...records.filter(({ unreadableDays }) => unreadableDays === undefined))
        }
        yield* takeDue(text.interrupted, limit)
        yield* takeDue(text.failed, Math.min(retries, limit - taken.length))
        yield* takeDue(text.fresh, limit - taken.length)
        yield* takeDue(text.failed, limit - taken.length)
        return taken.flatMap((one) => claimOf(one) ?? []).sort(compareClaims)
      }),
    async keep({ claims, call, now, leaseMs }) {
      const rows = claims.map(({ subscription: id, enrolment }) => ({ id, enrolment }))
      await one(run(TEXTS.keep, { rows, call: claimedAs(call), leaseMs, nextAttemptAt: now + leaseMs }))
    },
    stillHolds: batchPerTick<Claim, boolean>(async (claims) => {
      const ids = claims.map(({ subscription }) => subscription)
      const rows = await one(all<{ id: string; fence: number }>(TEXTS.holds, { ids }))
      const fences = new Map(rows.map(({ id, fence }) => [id, fence]))
      return claims.map((claim) => fences.get(claim.subscription) === claim.fence)
    }),
    async settle(settlements) {
      const sentAt = sentNote.of(settlements)
      await write(function* () {
        if (sentAt !== undefined) yield* run(TEXTS.noteSent, { at: String(sentAt) })
        const rows = yield* subscriptions.lockAll(settlements.map(({ claim }) => claim.subscription))
        const current = new Map(rows.map((row) => [row.id, row]))
        const changed = new Map<string, SubscriptionRecord>()
        for (const settlement of settlements) {
          const before = current.get(settlement.claim.subscription)
          const after = before && record(before, settlement)
          if (after === undefined) continue
          current.set(after.id, after)
          changed.set(after.id, after)
        }
        yield* subscriptions.save([...changed.values()])
        yield* history.remember(
          ...settlements.flatMap((settlement) => {
            const entry = attemptEntry(settlement)
            return entry ? [[settlement.claim.subscription, entry] as const] : []
          }),
        )
      })
      sentNote.written(sentAt)
    },
  }
}
