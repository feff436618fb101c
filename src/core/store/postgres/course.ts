import type { AuditEntry } from '../../audit.ts'
import { FIRST_COURSE } from '../../course/definition.ts'
import { attemptEntry, type HistoryEntry } from '../../course/history.ts'
import { nextDay, TOKEN_LIFE_MS } from '../../course/schedule.ts'
import type {
  Backlog,
  Claim,
  CourseStore,
  EnrolAnswer,
  Problem,
  SubscriptionState,
} from '../../course/store.ts'
import {
  claimOf,
  compareClaims,
  enrol,
  enrolRefusal,
  lostAttempt,
  newSubscription,
  readConfirmation,
  recentWindow,
  record,
  resolve,
  revise,
  type SubscriptionRecord,
  setAside,
  take,
  undoUnsubscribe,
  unsubscribe,
  wantsConfirmation,
} from '../../course/subscription.ts'
import { DAY_MS, HOUR_MS } from '../../durations.ts'
import { batchPerTick } from '../../per-tick.ts'
import { countsOf } from '../counts.ts'
import { pastEntry } from '../history-rows.ts'
import { type MailboxRow, mailboxOf } from '../mailbox-rows.ts'
import { messageSteps as queue } from '../messages.ts'
import { plansToCheck } from '../plan-rows.ts'
import {
  COURSES,
  COURSES_FROM,
  claimedAs,
  columnsOf,
  earliest,
  enrolmentKey,
  type Row,
  recordOf,
} from '../rows.ts'
import { createSentNote, SENT_NOTE } from '../sent-note.ts'
import { addAudit } from './audit.ts'
import { guarded, NOW_MS, type Pool, type Queryable, transaction } from './connection.ts'
import { remember } from './course-history.ts'
import { MIGRATIONS } from './migrations.ts'
import { findPlan, findText, followedVersions, keepPlan, listPlans, prunePlans } from './plans.ts'
import { performer } from './sql.ts'
import { ROWS_A_STEP, statements } from './statements.ts'

/** Where a list of problems starts: before every problem. */
const FIRST = { since: Number.MIN_SAFE_INTEGER, id: '' }
const TABLE = 'platformctl.subscription'
/** The number of lessons sent; none for a row damaged by hand. */
const LESSONS_SENT = `CASE jsonb_typeof(sent_days) WHEN 'array' THEN jsonb_array_length(sent_days) ELSE 0 END`
/** When the lesson in hand became due, as `recordOf` reads it. */
const LESSON_DUE = `coalesce(due_at, confirmed_at + ${DAY_MS} * (${LESSONS_SENT})::bigint)`
/** The predicates of the two partial indexes, word for word: the planner takes an index only for its own words. */
const HALVES = ['failures = 0', 'failures > 0']
const bothHalves = (select: string, bounds: string) =>
  HALVES.map(
    (half) => `(${select} FROM ${TABLE} WHERE next_attempt_at IS NOT NULL AND ${half} AND ${bounds})`,
  ).join(' UNION ALL ')

/** Selects lessons that are due. `which` narrows them to notices, which have an index of their own. */
const dueOf = (which: string) =>
  HALVES.map(
    (half) => `
  SELECT * FROM ${TABLE}
  WHERE ${which} next_attempt_at IS NOT NULL AND ${half} AND next_attempt_at <= $1 AND claimed_at IS NULL AND claimed_by IS DISTINCT FROM $2
  ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED`,
  )
const ONLY_NOTICES = "course = 'status' AND"
const [FRESH = '', FAILED = ''] = dueOf('')
const [FRESH_NOTICES = '', FAILED_NOTICES = ''] = dueOf(ONLY_NOTICES)
/** A lease that ends later than `longest` was taken before the clock of leases was set back, so it is over. */
const interrupted = (leaseNow: string, longest: number, which: string) => `
  SELECT * FROM ${TABLE} WHERE ${which} claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS DISTINCT FROM $2
    AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= $1 ELSE lease_until <= ${leaseNow} OR lease_until > ${longest} END
  ORDER BY first_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED`

const SAVE = `
  UPDATE ${TABLE} s SET state = r.state, enrolment = r.enrolment, confirmed_at = r.confirmed_at, unsubscribed_at = r.unsubscribed_at,
    course_version = r.course_version, lessons = r.lessons, due_at = r.due_at, last_sent_at = r.last_sent_at,
    time_zone = r.time_zone, language = r.language, sent_days = r.sent_days, sent_lessons = r.sent_lessons, needs = r.needs, promised = r.promised, next_attempt_at = r.next_attempt_at, first_attempt_at = r.first_attempt_at, claimed_at = r.claimed_at, lease_until = r.lease_until, claimed_by = r.claimed_by, fence = r.fence,
    failures = r.failures, problem_kind = r.problem_kind, problem_reason = r.problem_reason, problem_since = r.problem_since
  FROM jsonb_to_recordset($1::jsonb) AS r (id text, state text, enrolment integer, confirmed_at bigint, unsubscribed_at bigint,
    course_version text, lessons integer, due_at bigint, last_sent_at bigint, time_zone text, language text, sent_days jsonb, sent_lessons jsonb, needs integer, promised integer, next_attempt_at bigint, first_attempt_at bigint, claimed_at bigint, lease_until bigint, claimed_by text, fence integer, failures integer,
    problem_kind text, problem_reason text, problem_since bigint)
  WHERE s.id = r.id`

const INSERT = `INSERT INTO ${TABLE} (id, identity, address, state, created_at, mailbox_key, person, course) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (identity) DO NOTHING`
/** The oldest schema whose builds know lessons by name. */
export const NAMES_FROM = MIGRATIONS.findIndex((step) => step.includes('ADD COLUMN sent_lessons')) + 1
/** Closes the store to builds that know only older schemas; one that is closed to more builds stays so. */
export const sayReadableFrom = (schema: number) => `
  INSERT INTO platformctl.meta (name, value)
  SELECT 'readable_from', version || ':' || greatest(${schema}, substring(value from ':([0-9]+)$')::integer)
  FROM platformctl.schema_version LEFT JOIN platformctl.meta ON name = 'readable_from'
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`

/** The course on PostgreSQL: claims by FOR UPDATE SKIP LOCKED, so that dispatchers on many machines never wait for each other. */
export function postgresCourse(pool: Pool, leaseClock?: () => number): CourseStore {
  const statement = statements(pool)
  const sentNote = createSentNote()
  const perform = performer(leaseClock)
  /** The current time by the clock of leases, as an SQL expression. */
  const leaseNow = () => (leaseClock === undefined ? NOW_MS : String(Math.floor(leaseClock())))
  const one = async (on: Queryable, where: string, value: string | undefined, lock = '') => {
    const { rows } = await on.query<Row>(`SELECT * FROM ${TABLE} WHERE ${where} = $1 ${lock}`, [value])
    return rows[0] && recordOf(rows[0])
  }
  const readToken = async (on: Queryable, tokenHash: string, now: number, lock = '') => {
    const { rows } = await on.query<{
      created_at: number
      used_at: number | null
      replaced: boolean
      subscription: string
      time_zone: string | null
      language: string | null
    }>(
      `SELECT created_at, used_at, replaced, subscription, time_zone, language FROM platformctl.confirmation WHERE token_hash = $1 ${lock}`,
      [tokenHash],
    )
    const [token] = rows
    const known = token && {
      createdAt: token.created_at,
      usedAt: token.used_at ?? undefined,
      replaced: token.replaced,
    }
    return {
      verdict: readConfirmation(known, now),
      subscription: token?.subscription,
      timeZone: token?.time_zone ?? undefined,
      language: token?.language ?? undefined,
    }
  }
  const suppressionOf = async (on: Queryable, identity: string) => {
    const { rows } = await on.query<MailboxRow>(
      'SELECT * FROM platformctl.mailbox WHERE identity = $1 AND cause IS NOT NULL',
      [identity],
    )
    return rows[0] && mailboxOf(rows[0]).suppression
  }
  const save = async (on: Queryable, changed: readonly SubscriptionRecord[]) => {
    await on.query(SAVE, [JSON.stringify(changed.map(columnsOf))])
    if (changed.some(({ needs }) => needs > COURSES)) await on.query(sayReadableFrom(NAMES_FROM))
  }
  const write = <T>(work: (on: Queryable) => Promise<T>) => guarded(() => transaction(pool, work))
  const change = (
    id: string,
    transition: (record: SubscriptionRecord) => SubscriptionRecord | undefined,
    entry: (before: SubscriptionRecord) => HistoryEntry,
    audit?: AuditEntry,
    /** Another statement to run if something changed; `$1` is the subscription's id. */
    also?: string,
  ) =>
    write(async (on) => {
      const current = await one(on, 'id', id, 'FOR UPDATE')
      const changed = current && transition(current)
      if (current && changed) {
        await save(on, [changed])
        await remember(on, [[id, entry(current)]])
        await addAudit(on, audit)
        if (also !== undefined) await on.query(also, [id])
      }
      return changed !== undefined
    })
  const backlog = async (on: Queryable, now: number): Promise<Backlog> => {
    const { rows } = await on.query<{ count: number; oldest: number | null }>(
      `SELECT sum(n)::bigint AS count, min(oldest) AS oldest FROM (${bothHalves('SELECT count(*) AS n, min(next_attempt_at) AS oldest', 'next_attempt_at <= $1')}) AS halves`,
      [now],
    )
    const due = rows[0]
    // Lessons with a problem or out for sending: attempts moved their next attempt, but not the time they
    // became due.
    const inHand = await on.query<{
      waiting: number
      retries: number
      next: number | null
      oldest: number | null
    }>(
      `SELECT count(*) FILTER (WHERE problem_kind IS NOT NULL AND next_attempt_at > $1) AS waiting,
         count(*) FILTER (WHERE problem_kind IS NOT NULL AND next_attempt_at <= $1) AS retries,
         min(next_attempt_at) FILTER (WHERE problem_kind IS NOT NULL AND next_attempt_at > $1) AS next,
         min(${LESSON_DUE}) AS oldest
       FROM (
         SELECT * FROM ${TABLE} WHERE problem_kind IS NOT NULL AND next_attempt_at IS NOT NULL
         UNION ALL SELECT * FROM ${TABLE} WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND problem_kind IS NULL
       ) AS in_hand`,
      [now],
    )
    const hand = inHand.rows[0]
    return {
      due: due?.count ?? 0,
      waiting: hand?.waiting ?? 0,
      retries: hand?.retries ?? 0,
      nextTryAt: hand?.next ?? undefined,
      oldestDueAt: earliest([due?.oldest ?? null, hand?.oldest ?? null]),
    }
  }
  const findPerson = (identity: string) =>
    statement.all(
      recordOf,
      `SELECT * FROM ${TABLE} WHERE identity = $1 OR person = $1 ORDER BY created_at, course`,
      [identity],
    )
  const holds = batchPerTick<Claim, boolean>(async (claims) => {
    const { rows } = await pool.query<{ id: string; fence: number }>(
      `SELECT id, fence FROM ${TABLE} WHERE id = ANY($1) AND state = 'confirmed'`,
      [claims.map((claim) => claim.subscription)],
    )
    const fences = new Map(rows.map(({ id, fence }) => [id, fence]))
    return claims.map((claim) => fences.get(claim.subscription) === claim.fence)
  })

  return {
    requestConfirmation: ({
      identity,
      mailboxKey = identity,
      address,
      course,
      timeZone,
      language,
      id,
      tokenHash,
      now,
      mostADay = Number.MAX_SAFE_INTEGER,
      suppressed = false,
      withoutMail = false,
      message,
    }) =>
      write(async (on) => {
        // One at a time for a mailbox: two spellings at once would each find room for one more.
        await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [mailboxKey])
        const created = newSubscription({ id, identity, address, course, now })
        const key = enrolmentKey(identity, course)
        const inserted = await on.query(INSERT, [
          id,
          key,
          address,
          created.state,
          now,
          mailboxKey,
          key === identity ? null : identity,
          course,
        ])
        const current = (await one(on, 'identity', key, 'FOR UPDATE')) ?? created
        // Rows written by earlier builds get their mailbox key when somebody asks for the course again.
        await on.query(
          `UPDATE ${TABLE} SET mailbox_key = $1 WHERE id = $2 AND mailbox_key IS DISTINCT FROM $1`,
          [mailboxKey, current.id],
        )
        // One at a time for the platform from here on: all who ask at once would each find room in its budget.
        await on.query("SELECT pg_advisory_xact_lock(hashtextextended('confirmations', 2))")
        const { rows } = await on.query<{ count: number; newest: number | null; of_all: number }>(
          `SELECT count(*) AS count, max(c.created_at) FILTER (WHERE s.course = $5) AS newest,
             (SELECT count(*) FROM (SELECT 1 FROM platformctl.confirmation WHERE created_at > $2 LIMIT $3) AS any_address) AS of_all
           FROM ${TABLE} s JOIN platformctl.confirmation c ON c.subscription = s.id
           WHERE s.mailbox_key = $1 AND c.created_at > $2 AND c.created_at < $4`,
          [mailboxKey, recentWindow(now).after, mostADay, recentWindow(now).before, course],
        )
        const exhausted = (rows[0]?.of_all ?? 0) >= mostADay
        const recent = { count: rows[0]?.count ?? 0, newestAt: rows[0]?.newest ?? undefined }
        const wanted = !exhausted && wantsConfirmation(current, recent, now) && !suppressed && !withoutMail
        // A new link keeps the time zone and language of the previous one unless this request names others.
        const asked = await on.query<{ time_zone: string | null; language: string | null }>(
          'SELECT time_zone, language FROM platformctl.confirmation WHERE subscription = $1 ORDER BY created_at DESC LIMIT 1',
          [current.id],
        )
        const spoken = language ?? asked.rows[0]?.language ?? null
        await on.query(
          'DELETE FROM platformctl.confirmation WHERE subscription = $1 AND created_at < $2 AND used_at IS NULL AND $3',
          [current.id, now - TOKEN_LIFE_MS, wanted],
        )
        await on.query(
          'UPDATE platformctl.confirmation SET replaced = true WHERE subscription = $1 AND used_at IS NULL AND $2',
          [current.id, wanted],
        )
        await on.query(
          'INSERT INTO platformctl.confirmation (token_hash, subscription, created_at, time_zone, language) VALUES ($1, $2, $3, $4, $5)',
          [tokenHash, current.id, now, timeZone ?? asked.rows[0]?.time_zone ?? null, spoken],
        )
        const cause = { subscription: current.id, address: current.address, course, now }
        const queued =
          message && (await perform(on, queue.queue(message, { ...cause, language: spoken ?? undefined })))
        if (queued) await perform(on, queue.decide(queued, wanted))
        // Insert the rows and delete them again if no mail is wanted: both cases then cost the same commit.
        await on.query('DELETE FROM platformctl.confirmation WHERE token_hash = $1 AND NOT $2', [
          tokenHash,
          wanted,
        ])
        if (!wanted && inserted.rowCount === 1 && (suppressed || exhausted || !withoutMail))
          await on.query(`DELETE FROM ${TABLE} WHERE identity = $1`, [key])
        if (wanted && course !== FIRST_COURSE) await on.query(sayReadableFrom(COURSES_FROM))
        return wanted
          ? {
              mail: true,
              address: current.address,
              id: current.id,
              language: spoken ?? undefined,
              ...(queued && { message: queued }),
            }
          : { mail: false, exhausted }
      }),
    checkToken: ({ tokenHash, now }) => guarded(async () => (await readToken(pool, tokenHash, now)).verdict),
    pruneUnconfirmed: (before) =>
      statement.inSteps(
        `DELETE FROM ${TABLE} WHERE id IN (
               SELECT id FROM ${TABLE} AS old WHERE state = 'unconfirmed' AND created_at < $1 AND NOT EXISTS
                 (SELECT 1 FROM platformctl.confirmation WHERE subscription = old.id AND created_at >= $1)
               LIMIT ${ROWS_A_STEP} FOR UPDATE SKIP LOCKED)`,
        [before],
      ),
    confirm: ({ begin, tokenHash, now }) =>
      write(async (on) => {
        const { verdict, subscription, timeZone, language } = await readToken(
          on,
          tokenHash,
          now,
          'FOR UPDATE',
        )
        if (verdict !== 'use') return verdict
        const current = await one(on, 'id', subscription, 'FOR UPDATE')
        const start = current && begin({ course: current.course, confirmedAt: now, timeZone })
        if (current === undefined || start === undefined) return 'invalid'
        if (start.pinned) await keepPlan(on, current.course, start.pinned)
        await on.query('UPDATE platformctl.confirmation SET used_at = $1 WHERE token_hash = $2', [
          now,
          tokenHash,
        ])
        const suppression = await suppressionOf(on, current.identity)
        const enrolled = enrol(current, { now, start, timeZone, language, suppression })
        await save(on, [enrolled])
        await remember(on, [
          [enrolled.id, { at: now, kind: 'confirmed', enrolment: enrolled.enrolment, day: 0 }],
        ])
        return 'confirmed'
      }),
    enrol: ({ begin, identity, mailboxKey, address, course, timeZone, language, id, now, key, audit }) =>
      write(async (on): Promise<EnrolAnswer> => {
        // One at a time for a mailbox, and for a key: the second of two calls finds what the first did.
        await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [mailboxKey])
        if (key !== undefined) {
          await on.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 2))', [key])
          const { rows } = await on.query<{ id: string; enrolment: number }>(
            'SELECT subscription AS id, enrolment FROM platformctl.enrol_request WHERE key = $1',
            [key],
          )
          if (rows[0]) return { enrolled: true, ...rows[0] }
        }
        const rowKey = enrolmentKey(identity, course)
        const known = await one(on, 'identity', rowKey, 'FOR UPDATE')
        const suppressed = (await suppressionOf(on, identity)) !== undefined
        const reason = suppressed ? 'suppressed' : known && enrolRefusal(known)
        if (reason !== undefined) return { enrolled: false, reason }
        const start = begin({ course, confirmedAt: now, timeZone })
        if (start === undefined) return { enrolled: false, reason: 'no_such_course' }
        const current = known ?? newSubscription({ id, identity, address, course, now })
        if (known === undefined)
          await on.query(INSERT, [
            id,
            rowKey,
            address,
            current.state,
            now,
            mailboxKey,
            rowKey === identity ? null : identity,
            course,
          ])
        if (course !== FIRST_COURSE) await on.query(sayReadableFrom(COURSES_FROM))
        if (start.pinned) await keepPlan(on, course, start.pinned)
        const enrolled = enrol(current, { now, start, timeZone, language, suppression: undefined })
        await save(on, [enrolled])
        await on.query(
          'UPDATE platformctl.confirmation SET replaced = true WHERE subscription = $1 AND used_at IS NULL',
          [enrolled.id],
        )
        if (key !== undefined)
          await on.query(
            'INSERT INTO platformctl.enrol_request (key, subscription, enrolment) VALUES ($1, $2, $3)',
            [key, enrolled.id, enrolled.enrolment],
          )
        await remember(on, [
          [enrolled.id, { at: now, kind: 'confirmed', enrolment: enrolled.enrolment, day: 0 }],
        ])
        await addAudit(on, audit?.(enrolled.id))
        return { enrolled: true, id: enrolled.id, enrolment: enrolled.enrolment }
      }),
    unsubscribe: async ({ id, enrolment, now, audit }) => {
      await change(
        id,
        (current) => unsubscribe(current, enrolment, now),
        (before) => ({
          at: now,
          kind: 'unsubscribed',
          enrolment: before.enrolment,
          day: 0,
        }),
        audit,
      )
    },
    undoUnsubscribe: async ({ id, enrolment, now }) => {
      await change(
        id,
        (current) => undoUnsubscribe(current, enrolment, now),
        (before) => ({
          at: now,
          kind: 'undone',
          enrolment: before.enrolment,
          day: 0,
        }),
      )
    },
    claimDue: ({ now, limit, retries, leaseMs, call: name, notices = false }) =>
      write(async (on) => {
        const call = claimedAs(name)
        const [fresh, failed] = notices ? [FRESH_NOTICES, FAILED_NOTICES] : [FRESH, FAILED]
        const taken: SubscriptionRecord[] = []
        const at = leaseNow()
        const { rows: clocks } = await on.query<{ now: number }>(`SELECT ${at}::bigint AS now`)
        const leaseUntil = (clocks[0]?.now ?? 0) + leaseMs
        const takeDue = async (due: string, most: number) => {
          if (most <= 0) return
          const { rows } = await on.query<Row>(due, [now, call, most])
          if (rows.length === 0) return
          const found = rows.map(recordOf)
          const records = found.map((record) =>
            record.unreadableDays === undefined
              ? take(record, { now, leaseMs, leaseUntil, call })
              : setAside(record, now),
          )
          await save(on, records)
          await remember(
            on,
            found.flatMap((record, index): [string, HistoryEntry][] => {
              const lost = lostAttempt(record, records[index] ?? record)
              return lost ? [[record.id, lost]] : []
            }),
          )
          taken.push(...records.filter((one) => one.unreadableDays === undefined))
        }
        await takeDue(interrupted(at, leaseUntil + leaseMs, notices ? ONLY_NOTICES : ''), limit)
        await takeDue(failed, Math.min(retries, limit - taken.length))
        await takeDue(fresh, limit - taken.length)
        await takeDue(failed, limit - taken.length)
        return taken.flatMap((one) => claimOf(one) ?? []).sort(compareClaims)
      }),
    keep: ({ claims, call, now, leaseMs }) =>
      guarded(async () => {
        // Without a next attempt the subscriber has left: don't give them a new one.
        await pool.query(
          `UPDATE ${TABLE} s SET next_attempt_at = CASE WHEN s.next_attempt_at IS NOT NULL THEN $4::bigint END, lease_until = ${leaseNow()} + $5
           FROM unnest($1::text[], $2::integer[]) AS c (id, enrolment)
           WHERE s.id = c.id AND s.enrolment = c.enrolment AND s.claimed_by = $3 AND s.claimed_at IS NOT NULL`,
          [
            claims.map((one) => one.subscription),
            claims.map((one) => one.enrolment),
            claimedAs(call),
            now + leaseMs,
            leaseMs,
          ],
        )
      }),
    stillHolds: (claim) => guarded(() => holds(claim)),
    settle: async (settlements) => {
      const sentAt = sentNote.of(settlements)
      await write(async (on) => {
        if (sentAt !== undefined)
          await on.query(
            `INSERT INTO platformctl.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
            [SENT_NOTE, String(sentAt)],
          )
        // In the order of their ids, so that two groups cannot wait for each other in a circle.
        const { rows } = await on.query<Row>(
          `SELECT * FROM ${TABLE} WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
          [settlements.map(({ claim }) => claim.subscription)],
        )
        const current = new Map(rows.map((row) => [row.id, recordOf(row)]))
        const changed = new Map<string, SubscriptionRecord>()
        for (const settlement of settlements) {
          const before = current.get(settlement.claim.subscription)
          const after = before && record(before, settlement)
          if (after) {
            current.set(after.id, after)
            changed.set(after.id, after)
          }
        }
        if (changed.size > 0) await save(on, [...changed.values()])
        await remember(
          on,
          settlements.flatMap((settlement): [string, HistoryEntry][] => {
            const entry = attemptEntry(settlement)
            return entry ? [[settlement.claim.subscription, entry]] : []
          }),
        )
      })
      sentNote.written(sentAt)
    },
    stalledSince: ({ now, before }) =>
      guarded(async () => {
        const { rows } = await pool.query<{ due: number }>(
          `WITH last AS (SELECT coalesce((SELECT value::bigint FROM platformctl.meta WHERE name = $3), (SELECT max(last_sent_at) FROM ${TABLE}), 0) AS at)
           SELECT ${LESSON_DUE} AS due FROM ${TABLE}
           WHERE problem_kind IS NOT NULL AND problem_kind IN ('failed', 'unknown', 'parked') AND state = 'confirmed' AND course <> 'status'
             AND ${LESSON_DUE} <= $2 AND ${LESSON_DUE} > (SELECT CASE WHEN at <= $1 THEN at ELSE 0 END FROM last)
           LIMIT 1`,
          [now, before, SENT_NOTE],
        )
        return rows[0]?.due
      }),
    backlog: (now) => guarded(() => backlog(pool, now)),
    listDue: (now, limit) =>
      statement.all(
        recordOf,
        `SELECT * FROM (${bothHalves('SELECT *', 'next_attempt_at <= $1 ORDER BY next_attempt_at LIMIT $2')}) AS halves ORDER BY next_attempt_at LIMIT $2`,
        [now, limit],
      ),
    counts: (now, lessons) =>
      guarded(async () => {
        const states = await pool.query<{
          course: string
          state: SubscriptionState
          lessons: number
          count: number
        }>(
          `SELECT course, state, ${LESSONS_SENT} AS lessons, count(*) AS count FROM ${TABLE} GROUP BY 1, 2, 3`,
        )
        const problems = await pool.query<{ kind: Problem['kind']; count: number }>(
          `SELECT problem_kind AS kind, count(*) AS count FROM ${TABLE} WHERE problem_kind IS NOT NULL GROUP BY 1`,
        )
        const hours = await pool.query<{ hour: number; count: number }>(
          `SELECT (next_attempt_at - $1) / ${HOUR_MS} AS hour, count(*) AS count FROM (${bothHalves('SELECT next_attempt_at', `next_attempt_at > $1 AND next_attempt_at < $1 + ${DAY_MS}`)}) AS halves GROUP BY 1`,
          [now],
        )
        return countsOf({
          states: states.rows,
          problems: problems.rows,
          hours: hours.rows,
          backlog: await backlog(pool, now),
          lessons,
        })
      }),
    find: async (identity, course) =>
      (await findPerson(identity)).find((one) => course === undefined || one.course === course),
    findPerson,
    review: async ({ after, cut, revise: revisionOf }) => {
      const revised = (one: SubscriptionRecord) => {
        const revision = revisionOf(one)
        return (revision && revise(one, revision)) ?? []
      }
      const found = await statement.all(
        recordOf,
        `SELECT * FROM ${TABLE} WHERE ${cut ? 'promised IS NOT NULL AND' : ''} id > $1 ORDER BY id LIMIT ${ROWS_A_STEP}`,
        [after],
      )
      const ids = found.flatMap(revised).map(({ id }) => id)
      if (ids.length > 0)
        await write(async (on) => {
          const { rows } = await on.query<Row>(
            `SELECT * FROM ${TABLE} WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
            [ids],
          )
          const changed = rows.map(recordOf).flatMap(revised)
          if (changed.length > 0) await save(on, changed)
        })
      return found.length < ROWS_A_STEP ? undefined : found.at(-1)?.id
    },
    sentNames: (course) =>
      guarded(async () => {
        const { rows } = await pool.query<{ name: string; people: number }>(
          `SELECT name, count(*) AS people FROM ${TABLE}, jsonb_array_elements_text(sent_lessons) AS name
           WHERE course = $1 AND state = 'confirmed' AND ${LESSONS_SENT} < lessons GROUP BY 1`,
          [course],
        )
        return new Map(rows.map(({ name, people }) => [name, people]))
      }),
    pinnedPlan: ({ course, version }) => guarded(() => findPlan(pool, course, version)),
    lessonText: (hash) => guarded(() => findText(pool, hash)),
    async prunePlans({ keep, now }) {
      const others = plansToCheck(await guarded(() => listPlans(pool)), { keep, now })
      if (others.length === 0) return
      const versions = others.map(({ version }) => version)
      const followed = await guarded(() => followedVersions(pool, versions))
      await write((on) => prunePlans(on, others, followed, now))
    },
    findById: (id) => guarded(() => one(pool, 'id', id)),
    listProblems: (limit, { since, id } = FIRST) =>
      statement.all(
        recordOf,
        `SELECT * FROM ${TABLE} WHERE problem_kind IS NOT NULL AND (problem_since, id) > ($2, $3) ORDER BY problem_since, id LIMIT $1`,
        [limit, since, id],
      ),
    // Look before beginning a transaction: nearly always, none is due.
    claimMessages: async (input) =>
      (await guarded(() => perform(pool, queue.due(input)))).length === 0
        ? []
        : write((on) => perform(on, queue.claim(input))),
    keepMessages: ({ messages, leaseMs }) =>
      write(async (on) => {
        for (const message of messages) await perform(on, queue.keep(message, leaseMs))
      }),
    settleMessage: (settlement) =>
      write(async (on) => {
        await perform(on, queue.settle(settlement))
        const { message, entry } = settlement
        if (entry) await remember(on, [[message.subscription, entry]])
      }),
    renewConfirmation: ({ id, tokenHash, now }) =>
      write(async (on) => {
        const { rowCount } = await on.query(
          'UPDATE platformctl.confirmation SET token_hash = $1 WHERE subscription = $2 AND used_at IS NULL AND NOT replaced AND created_at > $3',
          [tokenHash, id, now - TOKEN_LIFE_MS],
        )
        return rowCount === 1
      }),
    remember: (subscription, entry) => write((on) => remember(on, [[subscription, entry]])),
    history: (subscription) =>
      statement.all(
        pastEntry,
        'SELECT at, kind, enrolment, day, attempt, outcome, reason, message_id, provider_id, source FROM platformctl.subscription_event WHERE subscription = $1 ORDER BY at, kind, day',
        [subscription],
      ),
    erase: ({ identity, spellings, recipients, suppressionHash, now, audit }) =>
      write(async (on) => {
        await on.query(
          'INSERT INTO platformctl.suppression (hash, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [suppressionHash, now],
        )
        const { rowCount } = await on.query(`DELETE FROM ${TABLE} WHERE identity = $1 OR person = $1`, [
          identity,
        ])
        let related = 0
        for (const table of ['organisation_invite', 'login_request']) {
          // The letters that it can lower-case depend on the database's locale.
          const { rows } = await on.query<{ id: string; address: string }>(
            `SELECT id, address FROM platformctl.${table} WHERE lower(address) = ANY ($1) OR address ~ '[^ -~]'`,
            [spellings],
          )
          const theirs = rows.filter(({ address }) => spellings.includes(address.toLowerCase()))
          await on.query(`DELETE FROM platformctl.${table} WHERE id = ANY ($1)`, [theirs.map(({ id }) => id)])
          related += theirs.length
        }
        await on.query('DELETE FROM platformctl.mailbox WHERE identity = $1', [identity])
        const mails = await on.query('DELETE FROM platformctl.sent_mail WHERE recipient = ANY ($1)', [
          recipients,
        ])
        await addAudit(on, audit)
        // The server reuses the room in its own time; VACUUM and its logs are its administrator's.
        return { existed: (rowCount ?? 0) > 0, related: related + (mails.rowCount ?? 0), bytesGone: true }
      }),
    isSuppressed: (hash) => statement.hits('SELECT 1 FROM platformctl.suppression WHERE hash = $1', [hash]),
    resolve: ({ id, as, now, next, progress, audit }) =>
      change(
        id,
        (current) => resolve(current, { as, now, next, progress }),
        (current) => ({
          at: now,
          kind: 'resolved',
          enrolment: current.enrolment,
          day: nextDay(current.sentDays, current.lessons) ?? 0,
          outcome: as,
        }),
        audit,
        // An operator who retries a lesson vouches that its address can be mailed.
        `UPDATE platformctl.mailbox SET cause = NULL, suppressed_at = NULL, source = NULL, reason = NULL
         WHERE identity = (SELECT coalesce(person, identity) FROM ${TABLE} WHERE id = $1) AND cause = 'hard-bounce'`,
      ),
  }
}
