import { setImmediate } from 'node:timers/promises'
import { FIRST_COURSE } from '../../course/definition.ts'
import { attemptEntry } from '../../course/history.ts'
import { nextDay, TOKEN_LIFE_MS } from '../../course/schedule.ts'
import type {
  Backlog,
  Claim,
  CourseStore,
  EnrolAnswer,
  Problem,
  Settlement,
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
  sentBy,
  setAside,
  take,
  undoUnsubscribe,
  unsubscribe,
  wantsConfirmation,
} from '../../course/subscription.ts'
import { DAY_MS, HOUR_MS } from '../../durations.ts'
import { batchPerTick } from '../../per-tick.ts'
import { countsOf } from '../counts.ts'
import { type MailboxRow, mailboxOf } from '../mailbox-rows.ts'
import { messageSteps as queue } from '../messages.ts'
import { plansToCheck } from '../plan-rows.ts'
import { COURSES, COURSES_FROM, claimedAs, columnsOf, dueColumn, earliest, enrolmentKey } from '../rows.ts'
import { createSentNote, SENT_NOTE } from '../sent-note.ts'
import { addAudit } from './audit.ts'
import type { Guarded, SqliteDatabase } from './connection.ts'
import { sqliteHistory } from './course-history.ts'
import { eraseRows, scrubFile } from './erase.ts'
import { type Journal, openJournal } from './journal.ts'
import { MIGRATIONS } from './migrations.ts'
import { sqlitePlans } from './plans.ts'
import { performer } from './sql.ts'
import { recordOfRow, type SqliteRow } from './subscription-rows.ts'

/** A step of pruning holds the writer for a few milliseconds at the most. */
const ROWS_A_STEP = 500
/** Where a list of problems starts: before every problem. */
const FIRST = { since: Number.MIN_SAFE_INTEGER, id: '' }
const DUE = 'next_attempt_at IS NOT NULL AND next_attempt_at'
/** The number of lessons sent; none for a row damaged by hand. */
const LESSONS_SENT = 'CASE WHEN json_valid(sent_days) THEN json_array_length(sent_days) ELSE 0 END'
/** When the lesson in hand became due, as `recordOf` reads it. */
const LESSON_DUE = `coalesce(due_at, confirmed_at + ${DAY_MS} * ${LESSONS_SENT})`
/** Both halves of the one index: lessons that never failed, and those that did. */
const bothHalves = (select: string, bounds: string) =>
  [0, 1].map((failed) => `${select} WHERE (failures > 0) = ${failed} AND ${bounds}`).join(' UNION ALL ')

/** The oldest schema whose builds know lessons by name. */
export const NAMES_FROM = MIGRATIONS.findIndex((step) => step.includes('ADD COLUMN sent_lessons')) + 1
/** Closes the store to builds that know only older schemas; one that is closed to more builds stays so. */
export const sayReadableFrom = (schema: number) => `
  INSERT OR REPLACE INTO meta (name, value)
  SELECT 'readable_from', user_version || ':' || max(${schema}, coalesce(CAST(substr(value, instr(value, ':') + 1) AS INTEGER), 0))
  FROM pragma_user_version LEFT JOIN meta ON name = 'readable_from'`

/**
 * The course on SQLite. A claim moves the row's next attempt to the end of its lease, so that the one index on
 * `next_attempt_at` finds what is due, hides what is claimed and brings back what a crash left behind.
 */
export function sqliteCourse(
  database: SqliteDatabase,
  guarded: Guarded,
  leaseNow: () => number,
  {
    file,
    journal = openJournal(database, file),
  }: { readonly file?: string | undefined; readonly journal?: Journal } = {},
): CourseStore {
  const history = sqliteHistory(database)
  const plans = sqlitePlans(database)
  const sentNote = createSentNote()
  const perform = performer(database, leaseNow)
  const prepare = (sql: string) => database.prepare(sql)
  const sql = {
    byKey: prepare('SELECT * FROM subscription WHERE identity = ?'),
    byPerson: prepare(
      'SELECT * FROM subscription WHERE identity = @identity OR person = @identity ORDER BY created_at, course',
    ),
    sayCoursesFrom: prepare(sayReadableFrom(COURSES_FROM)),
    sayNamesFrom: prepare(sayReadableFrom(NAMES_FROM)),
    page: prepare('SELECT * FROM subscription WHERE id > ? ORDER BY id LIMIT ?'),
    pageOfCut: prepare(
      'SELECT * FROM subscription INDEXED BY subscription_cut WHERE promised IS NOT NULL AND id > ? ORDER BY id LIMIT ?',
    ),
    sentNames: prepare(`
      SELECT value AS name, count(*) AS people FROM subscription, json_each(sent_lessons)
      WHERE course = ? AND state = 'confirmed' AND sent_lessons IS NOT NULL AND ${LESSONS_SENT} < lessons GROUP BY 1`),
    requested: prepare('SELECT subscription AS id, enrolment FROM enrol_request WHERE key = ?'),
    keepRequest: prepare('INSERT INTO enrol_request (key, subscription, enrolment) VALUES (?, ?, ?)'),
    byId: prepare('SELECT * FROM subscription WHERE id = ?'),
    insert: prepare(
      'INSERT INTO subscription (id, identity, person, course, mailbox_key, address, state, created_at) VALUES (@id, @key, @person, @course, @mailboxKey, @address, @state, @createdAt)',
    ),
    // Rows written by earlier builds get their mailbox key when somebody asks for the course again.
    setMailboxKey: prepare('UPDATE subscription SET mailbox_key = ? WHERE id = ? AND mailbox_key IS NOT ?'),
    save: prepare(`
      UPDATE subscription SET state = @state, enrolment = @enrolment, confirmed_at = @confirmed_at, unsubscribed_at = @unsubscribed_at,
        course_version = @course_version, lessons = @lessons, due_at = @due_at, last_sent_at = @last_sent_at, time_zone = @time_zone, language = @language,
        sent_days = @sent_days, sent_lessons = @sent_lessons, needs = @needs, promised = @promised, next_attempt_at = @next_attempt_at, first_attempt_at = @first_attempt_at, claimed_at = @claimed_at, lease_until = @lease_until, claimed_by = @claimed_by, fence = @fence, failures = @failures,
        problem_kind = @problem_kind, problem_reason = @problem_reason, problem_since = @problem_since
      WHERE id = @id`),
    suppressed: prepare('SELECT 1 FROM suppression WHERE hash = ?'),
    recentConfirmations: prepare(
      `SELECT count(*) AS count, max(CASE WHEN s.course = @course THEN c.created_at END) AS newest
       FROM subscription s JOIN confirmation c ON c.subscription = s.id
       WHERE s.mailbox_key = @mailboxKey AND c.created_at > @after AND c.created_at < @before`,
    ),
    // Counts no further than the budget.
    confirmationsOfAll: prepare(
      'SELECT count(*) FROM (SELECT 1 FROM confirmation WHERE created_at > ? LIMIT ?)',
    ).pluck(),
    pruneUnconfirmed: prepare(`
      DELETE FROM subscription WHERE id IN (
        SELECT id FROM subscription AS old WHERE state = 'unconfirmed' AND created_at < @before AND NOT EXISTS
          (SELECT 1 FROM confirmation WHERE subscription = old.id AND created_at >= @before)
        LIMIT ${ROWS_A_STEP})`),
    replaceConfirmations: prepare(
      'UPDATE confirmation SET replaced = 1 WHERE subscription = ? AND used_at IS NULL AND replaced = 0',
    ),
    insertConfirmation: prepare(
      'INSERT INTO confirmation (token_hash, subscription, created_at, time_zone, language) VALUES (?, ?, ?, ?, ?)',
    ),
    // A new link keeps the time zone and language of the previous one unless this request names others.
    asked: prepare(
      'SELECT time_zone, language FROM confirmation WHERE subscription = ? ORDER BY created_at DESC LIMIT 1',
    ),
    dropConfirmation: prepare('DELETE FROM confirmation WHERE token_hash = ?'),
    dropOldConfirmations: prepare(
      'DELETE FROM confirmation WHERE subscription = ? AND created_at < ? AND used_at IS NULL',
    ),
    confirmation: prepare(
      'SELECT created_at, used_at, replaced, subscription, time_zone, language FROM confirmation WHERE token_hash = ?',
    ),
    renewConfirmation: prepare(
      'UPDATE confirmation SET token_hash = ? WHERE subscription = ? AND used_at IS NULL AND replaced = 0 AND created_at > ?',
    ),
    useConfirmation: prepare('UPDATE confirmation SET used_at = ? WHERE token_hash = ?'),
    due: prepare(`
      SELECT rowid, * FROM subscription INDEXED BY subscription_due
      WHERE (failures > 0) = @failed AND ${DUE} <= @now AND claimed_at IS NULL AND claimed_by IS NOT @call
      ORDER BY next_attempt_at LIMIT @limit`),
    dueNotices: prepare(`
      SELECT rowid, * FROM subscription INDEXED BY subscription_notice
      WHERE course = 'status' AND (failures > 0) = @failed AND ${DUE} <= @now AND claimed_at IS NULL AND claimed_by IS NOT @call
      ORDER BY next_attempt_at LIMIT @limit`),
    interrupted: prepare(`
      SELECT rowid, * FROM subscription INDEXED BY subscription_claimed
      WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL AND claimed_by IS NOT @call
        AND (@notices = 0 OR course = 'status')
        AND CASE WHEN lease_until IS NULL THEN next_attempt_at <= @now
          ELSE lease_until <= @lease OR lease_until > @lease + @leaseMs END
      ORDER BY first_attempt_at LIMIT @limit`),
    claim: prepare(`
      UPDATE subscription SET next_attempt_at = ?, first_attempt_at = ?, claimed_at = ?, lease_until = ?, claimed_by = ?, fence = ?
      WHERE rowid = ?`),
    markSent: prepare(`
      UPDATE subscription SET sent_days = ?, sent_lessons = coalesce(?, sent_lessons), needs = coalesce(?, needs), next_attempt_at = ?, due_at = ?, lessons = coalesce(?, lessons), last_sent_at = ?, first_attempt_at = NULL, claimed_at = NULL, lease_until = NULL,
        failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL, fence = fence + 1
      WHERE id = ? AND fence = ?`),
    // Without a next attempt the subscriber has left: don't give them a new one.
    keep: prepare(`
      UPDATE subscription SET next_attempt_at = iif(next_attempt_at IS NULL, NULL, @nextAttemptAt), lease_until = @leaseUntil
      WHERE id = @id AND enrolment = @enrolment AND claimed_by = @call AND claimed_at IS NOT NULL`),
    holds: prepare(`SELECT 1 FROM subscription WHERE id = ? AND fence = ? AND state = 'confirmed'`).pluck(),
    backlog: prepare(
      `SELECT sum(n) AS count, min(oldest) AS oldest FROM (${bothHalves('SELECT count(*) AS n, min(next_attempt_at) AS oldest FROM subscription INDEXED BY subscription_due', `${DUE} <= @now`)})`,
    ),
    inTrouble: prepare(
      `SELECT total(next_attempt_at > @now) AS waiting, total(next_attempt_at <= @now) AS retries, min(CASE WHEN next_attempt_at > @now THEN next_attempt_at END) AS next, min(${LESSON_DUE}) AS oldest
       FROM subscription INDEXED BY subscription_problem WHERE problem_kind IS NOT NULL AND next_attempt_at IS NOT NULL`,
    ),
    oldestClaimed: prepare(
      `SELECT min(${LESSON_DUE}) FROM subscription INDEXED BY subscription_claimed WHERE claimed_at IS NOT NULL AND next_attempt_at IS NOT NULL`,
    ).pluck(),
    dueByHour: prepare(
      `SELECT CAST((next_attempt_at - @now) / ${HOUR_MS} AS INTEGER) AS hour, count(*) AS count FROM (${bothHalves('SELECT next_attempt_at FROM subscription INDEXED BY subscription_due', `${DUE} > @now AND next_attempt_at < @now + ${DAY_MS}`)}) GROUP BY 1`,
    ),
    listDue: prepare(
      `SELECT * FROM subscription WHERE id IN (SELECT id FROM (${bothHalves('SELECT id, next_attempt_at FROM subscription INDEXED BY subscription_due', `${DUE} <= @now`)}) ORDER BY next_attempt_at LIMIT @limit) ORDER BY next_attempt_at`,
    ),
    noteSent: prepare(
      `INSERT INTO meta (name, value) VALUES ('${SENT_NOTE}', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    ),
    stalled: prepare(`
      WITH last AS (SELECT coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = '${SENT_NOTE}'), (SELECT max(last_sent_at) FROM subscription), 0) AS at)
      SELECT ${LESSON_DUE} AS due FROM subscription INDEXED BY subscription_problem
      WHERE problem_kind IS NOT NULL AND problem_kind IN ('failed', 'unknown', 'parked') AND state = 'confirmed' AND course <> 'status'
        AND due <= @before AND due > (SELECT iif(at <= @now, at, 0) FROM last)
      LIMIT 1`).pluck(),
    byState: prepare(
      `SELECT course, state, ${LESSONS_SENT} AS lessons, count(*) AS count FROM subscription GROUP BY 1, 2, 3`,
    ),
    byProblem: prepare(
      'SELECT problem_kind AS kind, count(*) AS count FROM subscription WHERE problem_kind IS NOT NULL GROUP BY problem_kind',
    ),
    problems: prepare(
      'SELECT * FROM subscription WHERE problem_kind IS NOT NULL AND (problem_since, id) > (@since, @id) ORDER BY problem_since, id LIMIT @limit',
    ),
    dropSubscription: prepare('DELETE FROM subscription WHERE id = ?'),
    mailbox: prepare('SELECT * FROM mailbox WHERE identity = ? AND cause IS NOT NULL'),
    releaseMailbox: prepare(
      "UPDATE mailbox SET cause = NULL, suppressed_at = NULL, source = NULL, reason = NULL WHERE identity = ? AND cause = 'hard-bounce'",
    ),
    suppress: prepare('INSERT OR IGNORE INTO suppression (hash, created_at) VALUES (?, ?)'),
  }
  // better-sqlite3 types rows as unknown. The cast is safe: the tables are STRICT and the queries above name
  // these columns.
  const found = (row: unknown) => (row === undefined ? undefined : recordOfRow(row as SqliteRow))
  const recordsOf = (rows: unknown[]) => (rows as SqliteRow[]).map(recordOfRow)
  const save = (changed: SubscriptionRecord | undefined) => {
    if (changed) {
      const columns = columnsOf(changed)
      const { unreadableDays } = changed
      sql.save.run({
        ...columns,
        sent_days: unreadableDays === undefined ? JSON.stringify(columns.sent_days) : String(unreadableDays),
        sent_lessons: changed.sentLessons === undefined ? null : JSON.stringify(changed.sentLessons),
      })
      if (changed.needs > COURSES) sql.sayNamesFrom.run()
    }
    return changed !== undefined
  }
  /**
   * Writes a claimed row by its row number. A claim changes only these columns, and this saves looking up a
   * key.
   */
  const saveTaken = (taken: SubscriptionRecord, rowid: number) =>
    sql.claim.run(
      taken.nextAttemptAt,
      taken.firstAttemptAt,
      taken.claimedAt,
      taken.leaseUntil,
      taken.claimedBy,
      taken.fence,
      rowid,
    )
  /** Records a sent lesson without reading its row first; false if the claim no longer holds. */
  const markSent = (settlement: Settlement) => {
    const { sentDays, nextAttemptAt, dueAt, lessons, progress, lastSentAt } = sentBy(settlement)
    const { subscription, fence, confirmedAt } = settlement.claim
    const due = dueColumn({ dueAt, confirmedAt, sentDays })
    const { changes } = sql.markSent.run(
      JSON.stringify(sentDays),
      progress === undefined ? null : JSON.stringify(progress.sentLessons),
      progress?.needs ?? null,
      nextAttemptAt ?? null,
      due,
      lessons ?? null,
      lastSentAt,
      subscription,
      fence,
    )
    if (progress !== undefined && progress.needs > COURSES) sql.sayNamesFrom.run()
    return changes === 1
  }
  /** IMMEDIATE: takes the write lock first, so that a transaction never fails half-way for want of it. */
  const write = <T>(work: () => T): Promise<T> =>
    settleSync(() => guarded(() => database.transaction(work).immediate()))
  const read = <T>(work: () => T): Promise<T> => settleSync(() => guarded(work))
  // One read transaction for all: each statement alone would take and give back the file's lock.
  const holdAll = database.transaction((claims: readonly Claim[]) =>
    claims.map((claim) => sql.holds.get(claim.subscription, claim.fence) !== undefined),
  )
  const stillHolds = batchPerTick<Claim, boolean>((claims) => read(() => holdAll(claims)))
  const backlog = (now: number): Backlog => {
    const due = sql.backlog.get({ now }) as { count: number; oldest: number | null }
    const trouble = sql.inTrouble.get({ now }) as {
      waiting: number
      retries: number
      next: number | null
      oldest: number | null
    }
    return {
      due: due.count,
      waiting: trouble.waiting,
      retries: trouble.retries,
      nextTryAt: trouble.next ?? undefined,
      oldestDueAt: earliest([due.oldest, trouble.oldest, sql.oldestClaimed.get() as number | null]),
    }
  }
  const suppressionOf = (identity: string) => {
    const row = sql.mailbox.get(identity) as MailboxRow | undefined
    return row && mailboxOf(row).suppression
  }
  const readToken = (tokenHash: string, now: number) => {
    const token = sql.confirmation.get(tokenHash) as
      | {
          created_at: number
          used_at: number | null
          replaced: 0 | 1
          subscription: string
          time_zone: string | null
          language: string | null
        }
      | undefined
    const known = token && {
      createdAt: token.created_at,
      usedAt: token.used_at ?? undefined,
      replaced: token.replaced === 1,
    }
    return {
      verdict: readConfirmation(known, now),
      subscription: token?.subscription,
      timeZone: token?.time_zone ?? undefined,
      language: token?.language ?? undefined,
    }
  }
  const change = (id: string, transition: (record: SubscriptionRecord) => SubscriptionRecord | undefined) =>
    write(() => {
      const current = found(sql.byId.get(id))
      return current !== undefined && save(transition(current))
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
      write(() => {
        const key = enrolmentKey(identity, course)
        let current = found(sql.byKey.get(key))
        const isNew = current === undefined
        if (current === undefined) {
          current = newSubscription({ id, identity, address, course, now })
          const person = key === identity ? null : identity
          const { state } = current
          sql.insert.run({ id, key, person, course, mailboxKey, address, state, createdAt: now })
        }
        sql.setMailboxKey.run(mailboxKey, current.id, mailboxKey)
        const { count, newest } = sql.recentConfirmations.get({
          mailboxKey,
          course,
          ...recentWindow(now),
        }) as {
          count: number
          newest: number | null
        }
        const exhausted = Number(sql.confirmationsOfAll.get(recentWindow(now).after, mostADay)) >= mostADay
        const wanted =
          !exhausted &&
          wantsConfirmation(current, { count, newestAt: newest ?? undefined }, now) &&
          !suppressed &&
          !withoutMail
        const asked = sql.asked.get(current.id) as
          | { time_zone: string | null; language: string | null }
          | undefined
        const spoken = language ?? asked?.language ?? null
        if (wanted) {
          sql.dropOldConfirmations.run(current.id, now - TOKEN_LIFE_MS)
          sql.replaceConfirmations.run(current.id)
        }
        sql.insertConfirmation.run(tokenHash, current.id, now, timeZone ?? asked?.time_zone ?? null, spoken)
        const cause = { subscription: current.id, address: current.address, course, now }
        const queued = message && perform(queue.queue(message, { ...cause, language: spoken ?? undefined }))
        if (queued) perform(queue.decide(queued, wanted))
        if (!wanted) {
          // Insert the rows and delete them again if no mail is wanted: both cases then cost the same commit.
          sql.dropConfirmation.run(tokenHash)
          if (isNew && (suppressed || exhausted || !withoutMail)) sql.dropSubscription.run(id)
          return { mail: false, exhausted }
        }
        if (course !== FIRST_COURSE) sql.sayCoursesFrom.run()
        const mail = { address: current.address, id: current.id, language: spoken ?? undefined }
        return { mail: true, ...mail, ...(queued && { message: queued }) }
      }),
    checkToken: ({ tokenHash, now }) => read(() => readToken(tokenHash, now).verdict),
    async pruneUnconfirmed(before) {
      while ((await write(() => sql.pruneUnconfirmed.run({ before }).changes)) === ROWS_A_STEP)
        await setImmediate()
    },
    confirm: ({ begin, tokenHash, now }) =>
      write(() => {
        const { verdict, subscription, timeZone, language } = readToken(tokenHash, now)
        if (verdict !== 'use') return verdict
        const current = found(sql.byId.get(subscription))
        const start = current && begin({ course: current.course, confirmedAt: now, timeZone })
        if (current === undefined || start === undefined) return 'invalid'
        sql.useConfirmation.run(now, tokenHash)
        if (start.pinned) plans.keep(current.course, start.pinned)
        const suppression = suppressionOf(current.identity)
        const enrolled = enrol(current, { now, start, timeZone, language, suppression })
        save(enrolled)
        history.add(enrolled.id, { at: now, kind: 'confirmed', enrolment: enrolled.enrolment, day: 0 })
        return 'confirmed'
      }),
    enrol: ({ begin, identity, mailboxKey, address, course, timeZone, language, id, now, key, audit }) =>
      write((): EnrolAnswer => {
        const before = key === undefined ? undefined : sql.requested.get(key)
        if (before !== undefined) return { enrolled: true, ...(before as { id: string; enrolment: number }) }
        const rowKey = enrolmentKey(identity, course)
        const known = found(sql.byKey.get(rowKey))
        const suppressed = suppressionOf(identity) !== undefined
        const reason = suppressed ? 'suppressed' : known && enrolRefusal(known)
        if (reason !== undefined) return { enrolled: false, reason }
        const start = begin({ course, confirmedAt: now, timeZone })
        if (start === undefined) return { enrolled: false, reason: 'no_such_course' }
        const current = known ?? newSubscription({ id, identity, address, course, now })
        if (known === undefined) {
          const person = rowKey === identity ? null : identity
          const { state } = current
          sql.insert.run({ id, key: rowKey, person, course, mailboxKey, address, state, createdAt: now })
        }
        if (course !== FIRST_COURSE) sql.sayCoursesFrom.run()
        if (start.pinned) plans.keep(course, start.pinned)
        const enrolled = enrol(current, { now, start, timeZone, language, suppression: undefined })
        save(enrolled)
        sql.replaceConfirmations.run(enrolled.id)
        if (key !== undefined) sql.keepRequest.run(key, enrolled.id, enrolled.enrolment)
        history.add(enrolled.id, { at: now, kind: 'confirmed', enrolment: enrolled.enrolment, day: 0 })
        addAudit(database, journal, audit?.(enrolled.id))
        return { enrolled: true, id: enrolled.id, enrolment: enrolled.enrolment }
      }),
    unsubscribe: async ({ id, enrolment, now, audit }) => {
      await change(id, (current) => {
        const ended = unsubscribe(current, enrolment, now)
        if (ended) {
          // Write the journal before the commit: a spare line does no harm, but an unsubscribe missing from
          // the journal would be lost in a restore.
          journal.add({ what: 'unsubscribed', at: now, id, enrolment: ended.enrolment })
          history.add(id, { at: now, kind: 'unsubscribed', enrolment: ended.enrolment, day: 0 })
          addAudit(database, journal, audit)
        }
        return ended
      })
    },
    undoUnsubscribe: async ({ id, enrolment, now }) => {
      let undone: SubscriptionRecord | undefined
      await change(id, (current) => {
        undone = undoUnsubscribe(current, enrolment, now)
        if (undone) history.add(id, { at: now, kind: 'undone', enrolment: undone.enrolment, day: 0 })
        return undone
      })
      const line = undone && ({ what: 'undone', at: now, id, enrolment: undone.enrolment } as const)
      // Take the write lock again: an erasure in another process may be rewriting the journal.
      if (line) await write(() => journal.add(line))
    },
    claimDue: async ({ now, limit, retries, leaseMs, call: name, notices = false }) => {
      const call = claimedAs(name)
      const lines = notices ? sql.dueNotices : sql.due
      const due = (failed: 0 | 1, most: number) =>
        most > 0 ? (lines.all({ now, call, failed, limit: most }) as DueRow[]) : []
      const lease = leaseNow()
      const leaseUntil = lease + leaseMs
      const interrupted = (most: number) =>
        sql.interrupted.all({ now, call, lease, leaseMs, notices: Number(notices), limit: most }) as DueRow[]
      // Look before asking for the write lock, so that a call with nothing to do holds up no writer.
      const nothing = () => interrupted(1).length === 0 && due(0, 1).length === 0 && due(1, 1).length === 0
      if (await read(nothing)) return []
      return write(() => {
        const first = interrupted(limit)
        const left = limit - first.length
        const failed = due(1, Math.min(retries, left))
        const fresh = due(0, left - failed.length)
        const rest = left - failed.length - fresh.length
        const more = rest > 0 ? due(1, rest + failed.length).slice(failed.length) : []
        return [...first, ...failed, ...fresh, ...more]
          .flatMap((row) => {
            const found = recordOfRow(row)
            if (found.unreadableDays !== undefined) {
              save(setAside(found, now))
              return []
            }
            const taken = take(found, { now, leaseMs, leaseUntil, call })
            if (taken.problem === found.problem) saveTaken(taken, row.rowid)
            else {
              save(taken)
              const lost = lostAttempt(found, taken)
              if (lost) history.add(taken.id, lost)
            }
            return claimOf(taken) ?? []
          })
          .sort(compareClaims)
      })
    },
    keep: ({ claims, call, now, leaseMs }) =>
      write(() => {
        const [nextAttemptAt, leaseUntil] = [now + leaseMs, leaseNow() + leaseMs]
        for (const { subscription: id, enrolment } of claims)
          sql.keep.run({ id, enrolment, call: claimedAs(call), nextAttemptAt, leaseUntil })
      }),
    stillHolds,
    settle: async (settlements) => {
      const sentAt = sentNote.of(settlements)
      await write(() => {
        if (sentAt !== undefined) sql.noteSent.run(String(sentAt))
        for (const settlement of settlements) {
          const { subscription } = settlement.claim
          const entry = attemptEntry(settlement)
          if (settlement.sent && markSent(settlement)) {
            if (entry) history.add(subscription, entry)
            continue
          }
          const current = found(sql.byId.get(subscription))
          const changed = current && record(current, settlement)
          // An outcome that came too late to change the row still belongs in the history.
          if (entry && current) history.add(subscription, entry)
          if (changed?.state === 'unsubscribed' && current?.state === 'confirmed')
            journal.add({
              what: 'unsubscribed',
              at: settlement.now,
              id: subscription,
              enrolment: changed.enrolment,
            })
          save(changed)
        }
      })
      sentNote.written(sentAt)
    },
    stalledSince: (at) => read(() => sql.stalled.get(at) as number | undefined),
    backlog: (now) => read(() => backlog(now)),
    listDue: (now, limit) => read(() => recordsOf(sql.listDue.all({ now, limit }))),
    counts: (now, lessons) =>
      read(() =>
        countsOf({
          states: sql.byState.all() as {
            course: string
            state: SubscriptionState
            lessons: number
            count: number
          }[],
          problems: sql.byProblem.all() as { kind: Problem['kind']; count: number }[],
          hours: sql.dueByHour.all({ now }) as { hour: number; count: number }[],
          backlog: backlog(now),
          lessons,
        }),
      ),
    find: (identity, course) =>
      read(() =>
        recordsOf(sql.byPerson.all({ identity })).find(
          (one) => course === undefined || one.course === course,
        ),
      ),
    findPerson: (identity) => read(() => recordsOf(sql.byPerson.all({ identity }))),
    review: async ({ after, cut, revise: revisionOf }) => {
      const page = () => recordsOf((cut ? sql.pageOfCut : sql.page).all(after, ROWS_A_STEP))
      const revised = (one: SubscriptionRecord) => {
        const revision = revisionOf(one)
        return revision && revise(one, revision)
      }
      const found = await read(page)
      // Take the write lock only if something changes.
      if (found.some((one) => revised(one) !== undefined))
        await write(() => {
          for (const one of page()) save(revised(one))
        })
      return found.length < ROWS_A_STEP ? undefined : found.at(-1)?.id
    },
    sentNames: (course) =>
      read(() => {
        const rows = sql.sentNames.all(course) as { name: string; people: number }[]
        return new Map(rows.map(({ name, people }) => [name, people]))
      }),
    pinnedPlan: ({ course, version }) => read(() => plans.find(course, version)),
    lessonText: (hash) => read(() => plans.text(hash)),
    async prunePlans({ keep, now }) {
      const others = plansToCheck(await read(plans.all), { keep, now })
      if (others.length === 0) return
      const followed = new Set<string>()
      for (let after: string | undefined = ''; after !== undefined && followed.size < others.length; ) {
        const page = await read(() => plans.followedAfter(after ?? ''))
        for (const version of page.versions)
          if (others.some((plan) => plan.version === version)) followed.add(version)
        after = page.last
        await setImmediate()
      }
      await write(() => plans.prune(others, followed, now))
    },
    findById: (id) => read(() => found(sql.byId.get(id))),
    listProblems: (limit, after = FIRST) => read(() => recordsOf(sql.problems.all({ limit, ...after }))),
    erase: async ({ suppressionHash, now, audit, ...person }) => {
      const { rows, sentMail, written, forgotten } = await write(() => {
        sql.suppress.run(suppressionHash, now)
        const erased = eraseRows(database, person)
        const forgotten = journal.forget(person.identity)
        journal.add({ what: 'erased', at: now, hash: suppressionHash, rows: erased.rows })
        addAudit(database, journal, audit)
        return { ...erased, forgotten }
      })
      return {
        existed: rows.subscription !== undefined,
        related: rows.invites.length + rows.logins.length + sentMail,
        bytesGone: (await read(() => scrubFile(database, file, written))) && forgotten,
      }
    },
    // Look before asking for the write lock: nearly always, none is due.
    claimMessages: async (input) =>
      (await read(() => perform(queue.due(input)))).length === 0
        ? []
        : write(() => perform(queue.claim(input))),
    keepMessages: ({ messages, leaseMs }) =>
      write(() => {
        for (const message of messages) perform(queue.keep(message, leaseMs))
      }),
    settleMessage: (settlement) =>
      write(() => {
        perform(queue.settle(settlement))
        const { message, entry } = settlement
        if (entry && sql.byId.get(message.subscription) !== undefined)
          history.add(message.subscription, entry)
      }),
    renewConfirmation: ({ id, tokenHash, now }) =>
      write(() => sql.renewConfirmation.run(tokenHash, id, now - TOKEN_LIFE_MS).changes === 1),
    remember: (subscription, entry) =>
      write(() => {
        if (sql.byId.get(subscription) !== undefined) history.add(subscription, entry)
      }),
    history: (subscription) => read(() => history.of(subscription)),
    isSuppressed: (hash) => read(() => sql.suppressed.get(hash) !== undefined),
    resolve: ({ id, as, now, next, progress, audit }) =>
      change(id, (current) => {
        const resolved = resolve(current, { as, now, next, progress })
        const day = nextDay(current.sentDays, current.lessons) ?? 0
        if (resolved) {
          history.add(id, { at: now, kind: 'resolved', enrolment: current.enrolment, day, outcome: as })
          addAudit(database, journal, audit)
          // An operator who retries a lesson vouches that its address can be mailed.
          sql.releaseMailbox.run(current.identity)
        }
        return resolved
      }),
  }
}

/** better-sqlite3 answers at once; the port is asynchronous, so a throw becomes a rejection. */
async function settleSync<T>(work: () => T): Promise<T> {
  return work()
}

/** A due row with its row number, which is valid only within the transaction that read it. */
type DueRow = SqliteRow & { readonly rowid: number }
