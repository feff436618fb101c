import type { PinnedPlan } from '../../course/store.ts'
import type { LessonText } from '../../mail/lesson-text.ts'
import { type PlanRow, planChange, textsOf } from '../plan-rows.ts'
import type { Queryable } from './connection.ts'

const PAGE = 1000
/** A lock that keeps texts from being deleted while a plan that names them is added. */
const LOCK = 'SELECT pg_advisory_xact_lock(7305823190018)'
const TEXT = 'SELECT hash, format, language, source FROM platformctl.course_text'

/** Stores the plan and the texts that an enrolment begins with; call it in the enrolment's transaction. */
export async function keepPlan(
  on: Queryable,
  course: string,
  { version, plan, texts }: PinnedPlan,
): Promise<void> {
  // Clear the mark first: a transaction that deletes unused plans then either sees that this one is in use,
  // or has ended before the insert below.
  await on.query(
    'UPDATE platformctl.course_plan SET unused_since = NULL WHERE course = $1 AND version = $2 AND unused_since IS NOT NULL',
    [course, version],
  )
  const { rowCount } = await on.query(
    'INSERT INTO platformctl.course_plan (course, version, plan) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
    [course, version, plan],
  )
  if (rowCount === 0 || texts.length === 0) return
  await on.query(LOCK)
  await on.query(
    `INSERT INTO platformctl.course_text (hash, format, language, source)
     SELECT DISTINCT hash, format, language, source FROM jsonb_to_recordset($1::jsonb) AS t (hash text, format text, language text, source text)
     ON CONFLICT DO NOTHING`,
    [JSON.stringify(texts)],
  )
}

export async function findPlan(on: Queryable, course: string, version: string): Promise<string | undefined> {
  const { rows } = await on.query<{ plan: string }>(
    'SELECT plan FROM platformctl.course_plan WHERE course = $1 AND version = $2',
    [course, version],
  )
  return rows[0]?.plan
}

export async function findText(on: Queryable, hash: string): Promise<LessonText | undefined> {
  const { rows } = await on.query<LessonText>(`${TEXT} WHERE hash = $1`, [hash])
  return rows[0]
}

export async function listTexts(on: Queryable): Promise<readonly LessonText[]> {
  return (await on.query<LessonText>(TEXT)).rows
}

export async function listPlans(on: Queryable): Promise<readonly PlanRow[]> {
  const { rows } = await on.query<PlanRow>(
    'SELECT course, version, plan, unused_since FROM platformctl.course_plan',
  )
  return rows
}

/** Gives those of the versions that some enrolment follows. */
export async function followedVersions(
  on: Queryable,
  versions: readonly string[],
): Promise<ReadonlySet<string>> {
  const followed = new Set<string>()
  for (let after = ''; followed.size < versions.length; ) {
    const { rows } = await on.query<{ id: string; version: string | null; follows: boolean }>(
      `SELECT id, course_version AS version, state <> 'unconfirmed'
         AND CASE WHEN jsonb_typeof(sent_days) = 'array' THEN jsonb_array_length(sent_days) ELSE 0 END < lessons AS follows
       FROM platformctl.subscription WHERE id > $1 ORDER BY id LIMIT ${PAGE}`,
      [after],
    )
    for (const { version, follows } of rows)
      if (follows && version !== null && versions.includes(version)) followed.add(version)
    const last = rows.at(-1)
    if (last === undefined || rows.length < PAGE) break
    after = last.id
  }
  return followed
}

/**
 * Updates or deletes plans by whether they are followed, and deletes the texts that no plan names any more;
 * call it in a transaction.
 */
export async function prunePlans(
  on: Queryable,
  plans: readonly PlanRow[],
  followed: ReadonlySet<string>,
  now: number,
): Promise<void> {
  await on.query(LOCK)
  let deleted = 0
  for (const row of plans) {
    const change = planChange(row, followed)
    const { course, version, unused_since: since } = row
    const at = 'WHERE course = $1 AND version = $2 AND unused_since IS NOT DISTINCT FROM $3'
    if (change === 'delete') {
      const { rowCount } = await on.query(`DELETE FROM platformctl.course_plan ${at}`, [
        course,
        version,
        since,
      ])
      deleted += rowCount ?? 0
    } else if (change !== undefined)
      await on.query(`UPDATE platformctl.course_plan SET unused_since = $4 ${at}`, [
        course,
        version,
        since,
        change === 'used' ? null : now,
      ])
  }
  if (deleted === 0) return
  const named = (await listPlans(on)).flatMap(textsOf)
  await on.query('DELETE FROM platformctl.course_text WHERE hash <> ALL ($1)', [named])
}
