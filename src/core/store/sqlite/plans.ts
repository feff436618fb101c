import type { PinnedPlan } from '../../course/store.ts'
import type { LessonText } from '../../mail/lesson-text.ts'
import { type PlanRow, planChange, textsOf } from '../plan-rows.ts'
import type { SqliteDatabase } from './connection.ts'

/** Enrolments read in one step. A step delays the writer no longer than reading this many takes. */
const PAGE = 500

/** The plans and texts that enrolments began with. Every function is called within a transaction of the caller's. */
export function sqlitePlans(database: SqliteDatabase) {
  const sql = {
    use: database.prepare(
      'UPDATE course_plan SET unused_since = NULL WHERE course = ? AND version = ? AND unused_since IS NOT NULL',
    ),
    keep: database.prepare('INSERT OR IGNORE INTO course_plan (course, version, plan) VALUES (?, ?, ?)'),
    keepText: database.prepare(
      'INSERT OR IGNORE INTO course_text (hash, format, language, source) VALUES (@hash, @format, @language, @source)',
    ),
    find: database.prepare('SELECT plan FROM course_plan WHERE course = ? AND version = ?').pluck(),
    text: database.prepare('SELECT hash, format, language, source FROM course_text WHERE hash = ?'),
    all: database.prepare('SELECT course, version, plan, unused_since FROM course_plan'),
    page: database.prepare(`
      SELECT id, course_version AS version, state <> 'unconfirmed'
        AND CASE WHEN json_valid(sent_days) THEN json_array_length(sent_days) ELSE 0 END < lessons AS follows
      FROM subscription WHERE id > ? ORDER BY id LIMIT ${PAGE}`),
    mark: database.prepare(
      'UPDATE course_plan SET unused_since = ? WHERE course = ? AND version = ? AND unused_since IS ?',
    ),
    drop: database.prepare('DELETE FROM course_plan WHERE course = ? AND version = ? AND unused_since = ?'),
    hashes: database.prepare('SELECT hash FROM course_text').pluck(),
    dropText: database.prepare('DELETE FROM course_text WHERE hash = ?'),
  }
  // The cast is safe: the table is STRICT and the query names these columns.
  const all = () => sql.all.all() as PlanRow[]
  return {
    all,
    /** Stores the plan and the texts that an enrolment begins with. */
    keep(course: string, { version, plan, texts }: PinnedPlan) {
      sql.use.run(course, version)
      if (sql.keep.run(course, version, plan).changes === 0) return
      for (const text of texts) sql.keepText.run(text)
    },
    find: (course: string, version: string) => sql.find.get(course, version) as string | undefined,
    text: (hash: string) => sql.text.get(hash) as LessonText | undefined,
    /** The versions that a page of enrolments follows; `last` is undefined after the last page. */
    followedAfter(id: string): { readonly versions: readonly string[]; readonly last: string | undefined } {
      const rows = sql.page.all(id) as { id: string; version: string | null; follows: 0 | 1 }[]
      const versions = rows.flatMap(({ version, follows }) => (follows === 1 ? (version ?? []) : []))
      return { versions, last: rows.length < PAGE ? undefined : rows.at(-1)?.id }
    },
    prune(plans: readonly PlanRow[], followed: ReadonlySet<string>, now: number) {
      let deleted = 0
      for (const row of plans) {
        const { course, version, unused_since: since } = row
        const change = planChange(row, followed)
        if (change === 'delete') deleted += sql.drop.run(course, version, since).changes
        else if (change !== undefined) sql.mark.run(change === 'used' ? null : now, course, version, since)
      }
      if (deleted === 0) return
      const named = new Set(all().flatMap(textsOf))
      for (const hash of sql.hashes.all() as string[]) if (!named.has(hash)) sql.dropText.run(hash)
    },
  }
}
