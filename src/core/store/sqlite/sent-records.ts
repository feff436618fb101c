import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { codeError, codeOf } from '../../errors.ts'
import { attempt } from '../../is-record.ts'
import { storeKey } from '../departures.ts'
import { refusal, refusalFor, StoreMaintenanceError } from '../errors.ts'
import { assertMadeHere } from './check.ts'
import { type SqliteDatabase, schemaVersion } from './connection.ts'
import { performer } from './sql.ts'

/** Enrolments that the restored store still sends, and how many of their lessons the replaced one has sent since. */
const NEWER = `
  SELECT s.id, (SELECT count(*) FROM json_each(r.sent_days) WHERE value NOT IN (SELECT value FROM json_each(s.sent_days))) AS lessons
  FROM replaced.subscription r JOIN subscription s
    ON s.id = r.id AND s.enrolment = r.enrolment AND s.confirmed_at IS r.confirmed_at AND s.state = 'confirmed'
  WHERE r.sent_days <> s.sent_days AND json_valid(r.sent_days) AND json_valid(s.sent_days)`

const countNewer = (restored: SqliteDatabase) =>
  Number(restored.prepare(`SELECT coalesce(sum(lessons), 0) FROM (${NEWER})`).pluck().get())

/** Lessons that the replaced store sent and the restored one would send again; undefined if they cannot be counted. */
export function countRepeats(restored: SqliteDatabase, replaced: string): number | undefined {
  // The store that is replaced may be damaged: that is why it is replaced.
  return attempt(() => beside(restored, replaced, () => countNewer(restored)))
}

/** Takes over what the replaced store has sent since the backup: the progress of enrolments, and their history. */
export function takeSentRecords(restored: SqliteDatabase, replaced: string): number {
  try {
    reading(replaced, (other) => {
      const [theirs, ours] = [schemaVersion(other), schemaVersion(restored)]
      if (theirs !== ours)
        throw refusal`${replaced} has schema ${theirs}, and the restored store ${ours}: migrate a copy of it first (STORE_URL=sqlite:COPY platformctl db migrate), and name the copy.`
      assertMadeHere(other, { file: replaced, holds: 'course', done: 'read' })
      if (performer(other)(storeKey()) !== performer(restored)(storeKey()))
        throw refusal`${replaced} is another store than that of the backup: name the file that is replaced, or one that an earlier restore kept.`
    })
    return beside(restored, replaced, () => restored.transaction(() => take(restored))())
  } catch (error) {
    if (error instanceof StoreMaintenanceError) throw error
    throw refusalFor(
      error,
    )`the sent records of ${replaced} cannot be read (${codeOf(error) || 'no reason given'}): restore without --sent-from, or name the file that an earlier restore kept.`
  }
}

function take(restored: SqliteDatabase): number {
  const taken = countNewer(restored)
  const ids = `SELECT id FROM (${NEWER}) WHERE lessons > 0`
  const columns = restored.prepare(`SELECT group_concat(name, ', ') FROM pragma_table_info('subscription')`)
  const row = columns.pluck().get()
  for (const table of ['course_text', 'course_plan'])
    restored.exec(`INSERT OR IGNORE INTO ${table} SELECT * FROM replaced.${table}`)
  // First the history: with the progress, no lesson is newer any more.
  restored.exec(`
    INSERT OR IGNORE INTO subscription_event SELECT * FROM replaced.subscription_event WHERE subscription IN (${ids});
    UPDATE subscription SET (${row}) = (SELECT ${row} FROM replaced.subscription AS r WHERE r.id = subscription.id) WHERE id IN (${ids})`)
  return taken
}

/** Lends a file that is to be replaced, so in no use. Not read-only, which leaves its log; alone, for a disk without room. */
export function reading<T>(file: string, work: (database: SqliteDatabase) => T): T {
  const database = new Database(file, { fileMustExist: true, timeout: 0 })
  try {
    database.pragma('locking_mode = EXCLUSIVE')
    return work(database)
  } finally {
    database.close()
  }
}

/** Runs work while the restored store sees the replaced one under that name. */
function beside<T>(restored: SqliteDatabase, replaced: string, work: () => T): T {
  // To attach a file that is not there would make it.
  if (!existsSync(replaced)) throw codeError('ENOENT')
  // Also of what is attached from here on: a full disk may have no room for the index of its log.
  restored.pragma('locking_mode = EXCLUSIVE')
  restored.prepare('ATTACH ? AS replaced').run(replaced)
  try {
    return work()
  } finally {
    restored.exec('DETACH replaced')
  }
}
