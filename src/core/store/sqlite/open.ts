import { mayExceed } from '../../course/history.ts'
import { attemptEntry } from '../../course/transitions/claim.ts'
import { codeError, PlatformError, storeFault } from '../../errors.ts'
import { forSqlite } from '../dialect.ts'
import type { RowByRow } from '../dispatch.ts'
import { UNAVAILABLE } from '../errors.ts'
import { BACKUP_AT } from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { readSchema } from '../schema.ts'
import { boundValue, getTime, ping } from '../sql.ts'
import { operations, type Store, type StoreOptions } from '../store.ts'
import { dueColumn, TEXTS as SUBSCRIPTIONS } from '../subscriptions.ts'
import { closeFile, guard, IN_MEMORY, type SqliteDatabase } from './connection.ts'
import { isDiskFull, sizeOf } from './files.ts'
import { openJournal } from './journal.ts'
import { createPageCheck } from './page-check.ts'
import { openDatabase, sqliteSql } from './sql.ts'

/** Since the machine started: all processes on a file share this clock, nobody sets it, and a reboot puts it behind every lease. */
const sinceBoot = () => Number(process.hrtime.bigint() / 1_000_000n)

/** The store in an SQLite file, or (`file` undefined) in memory: the same code, but nothing outlives the process. */
export async function openSqlite(file: string | undefined, options: StoreOptions = {}) {
  const { onLost, leaseClock = sinceBoot, onMigrate } = options
  const database = await openDatabase(file ?? IN_MEMORY, 'FULL', SQLITE_STEPS, onMigrate)
  // Damage met in daily work. Remembered, so that a later ping that happens to succeed cannot hide it.
  let damaged: unknown
  let full = false
  const guarded = guard(database, onLost, (error) => {
    const fault = storeFault(error)
    if (fault === 'damaged') damaged ??= error
    if (fault === 'disk_full') full = true
  })
  const journal = file === undefined ? undefined : openJournal(database, file)
  const pages = file === undefined ? undefined : createPageCheck(file)
  const steps = sqliteSql({ database, guarded, leaseClock, journal, file })
  const kind = file === undefined ? 'memory' : 'sqlite'
  return {
    kind,
    persistent: file !== undefined,
    ...operations(steps, rowByRow(database)),
    async ping({ pages: everyPage = false } = {}) {
      if (damaged !== undefined) throw unavailable(damaged)
      if (file !== undefined && isDiskFull(file)) throw unavailable(codeError('ENOSPC'))
      // After a full disk, call the store healthy only once there is room for more than a row that exists already.
      if (full) await steps.read(() => ping(GROWTH_BYTES))
      await steps.read(() => ping())
      full = false
      const catchUp = database.transaction(() => journal?.catchUp())
      try {
        catchUp.immediate()
      } catch (error) {
        // Not an error of the store itself, which goes on.
        throw unavailable(error)
      }
      if (everyPage && (await pages?.check()) === false) {
        damaged = codeError('SQLITE_CORRUPT')
        throw unavailable(damaged)
      }
    },
    status: () =>
      steps.read(function* () {
        const { version, latest } = yield* readSchema(SQLITE_STEPS.length)
        const bytes = file === undefined ? undefined : sizeOf(file)
        return { kind, version, latest, bytes, backupAt: yield* getTime(BACKUP_AT) }
      }),
    async close() {
      await pages?.close()
      closeFile(database)
    },
  } satisfies Store
}

const GROWTH_BYTES = 64 * 1024

const unavailable = (cause: unknown) => new PlatformError('store_unavailable', UNAVAILABLE, { cause })

/** What a dispatcher writes for every lesson. Statements take their values by position: by name they take twice as long. */
export function rowByRow(database: SqliteDatabase): RowByRow {
  // By its row number: this saves looking up a key. For both: SQLite compiles a trigger into each statement that sets a
  // column of it, whatever the value, so these set none of them.
  const claim = database.prepare(`
    UPDATE subscription SET next_attempt_at = ?, first_attempt_at = ?, claimed_at = ?, lease_until = ?, holder = ?, fence = ?
    WHERE rowid = ? AND claimed_by IS NULL`)
  const markSent = database.prepare(`
    UPDATE subscription SET sent_days = ?, sent_lessons = coalesce(?, sent_lessons), needs = coalesce(?, needs), next_attempt_at = ?, due_at = ?, last_sent_at = ?, first_attempt_at = NULL, claimed_at = NULL, lease_until = NULL,
      failures = 0, problem_kind = NULL, problem_reason = NULL, problem_since = NULL, fence = fence + 1
    WHERE id = ? AND fence = ?`)
  const addAttempt = database.prepare(`
    INSERT OR IGNORE INTO subscription_event (subscription, at, kind, enrolment, day, outcome, reason, message_id, provider_id, source, attempt)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
      (SELECT count(*) + 1 FROM subscription_event WHERE subscription = ? AND kind = 'attempt' AND enrolment = ? AND day = ?))`)
  const bound = database.prepare(forSqlite(SUBSCRIPTIONS.forget).text)
  return {
    claim: ({ nextAttemptAt, firstAttemptAt, claimedAt, leaseUntil, claimedBy, fence }, { rowid }) =>
      claim.run(nextAttemptAt, firstAttemptAt, claimedAt, leaseUntil, claimedBy, fence, rowid).changes === 1,
    markSent(settlement) {
      const { nextAttemptAt, lessons, progress, now } = settlement
      const { id, day, fence, confirmedAt, lessons: known } = settlement.claim
      // The number of lessons changes, as `record` says.
      if (lessons !== undefined && (nextAttemptAt === undefined ? lessons !== known : lessons > known))
        return false
      // Lowest unsent day first, so a claim of day N implies that exactly the days before it were sent.
      const sentDays = Array.from({ length: day }, (_, index) => index + 1)
      const { changes } = markSent.run(
        JSON.stringify(sentDays),
        progress === undefined ? null : JSON.stringify(progress.sentLessons),
        progress?.needs ?? null,
        nextAttemptAt ?? null,
        dueColumn({ dueAt: nextAttemptAt, confirmedAt, sentDays }) ?? null,
        now,
        id,
        fence,
      )
      const entry = attemptEntry(settlement)
      if (changes !== 1 || entry === undefined) return changes === 1
      const { at, kind, enrolment, outcome, messageId, source } = entry
      const [reason, provider] = [boundValue(entry, 'reason'), boundValue(entry, 'providerId')]
      const row = [id, at, kind, enrolment, day, outcome ?? null, reason, messageId ?? null, provider]
      addAttempt.run(...row, source ?? null, id, enrolment, day)
      if (mayExceed(entry)) bound.run({ subscription: id })
      return true
    },
  }
}
