import type { CourseStore } from '../course/store.ts'
import type { PinnedPlan } from '../course/subscription.ts'
import { DAY_MS } from '../durations.ts'
import { jsonObject } from '../is-record.ts'
import { hashOf, type LessonText } from '../mail/definition.ts'
import { all, first, LOCKS, lock, ROWS_A_STEP, run, type Sql, type Steps, scalar } from './sql.ts'

/** An unused plan is deleted only after this time, so that an enrolment that begins meanwhile still finds it. */
const UNUSED_KEPT_MS = DAY_MS

const SAME = 'course = @course AND version = @version AND unused_since IS NOT DISTINCT FROM @unusedSince'

export const TEXTS = {
  use: 'UPDATE course_plan SET unused_since = NULL WHERE course = @course AND version = @version AND unused_since IS NOT NULL',
  keep: 'INSERT INTO course_plan (course, version, plan) VALUES (@course, @version, @plan) ON CONFLICT DO NOTHING',
  keepTexts: `INSERT INTO course_text (hash, format, language, source)
    SELECT DISTINCT hash, format, language, source FROM {rows course_text: hash, format, language, source} AS r WHERE true
    ON CONFLICT DO NOTHING`,
  find: 'SELECT plan FROM course_plan WHERE course = @course AND version = @version',
  text: 'SELECT hash, format, language, source FROM course_text WHERE hash = @hash',
  plans: 'SELECT course, version, plan, unused_since FROM course_plan',
  texts: 'SELECT hash, format, language, source FROM course_text',
  page: `SELECT id, course_version AS version, state <> 'unconfirmed' AND {length sent_days} < lessons AS follows
    FROM subscription WHERE id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
  mark: `UPDATE course_plan SET unused_since = @mark WHERE ${SAME}`,
  drop: `DELETE FROM course_plan WHERE ${SAME}`,
  dropTexts: `DELETE FROM course_text WHERE hash NOT IN (SELECT value FROM {each @named})`,
}

/** A row of `course_plan`; the plan is JSON. */
export type PlanRow = Record<'course' | 'version' | 'plan', string> & { unusedSince: number | undefined }

type Pruning = Parameters<CourseStore['prunePlans']>[0]

/** The plans to check for followers: not those that enrolments begin with, nor those marked less than a day ago. */
export function plansToCheck(plans: readonly PlanRow[], { keep, now }: Pruning): readonly PlanRow[] {
  const isRecent = (since: number | undefined) => since !== undefined && now - since < UNUSED_KEPT_MS
  return plans.filter(({ version, unusedSince }) => !keep.includes(version) && !isRecent(unusedSince))
}

export const listPlans = (): Steps<readonly PlanRow[]> => all(TEXTS.plans)
export const listTexts = (): Steps<readonly LessonText[]> => all(TEXTS.texts)

/** `follows`: truthy while lessons of that version are left. */
type Followed = { readonly id: string; readonly version: string | undefined; readonly follows: unknown }

/** Stores the plan and the texts that an enrolment begins with, in its transaction. */
export function* keepPlan(course: string, { version, plan, texts }: PinnedPlan): Steps<void> {
  // First: a transaction that deletes unused plans sees that this one is in use, or has ended before the insert.
  yield* run(TEXTS.use, { course, version })
  if ((yield* run(TEXTS.keep, { course, version, plan })) === 0 || texts.length === 0) return
  // Under this lock texts are deleted, so that none goes while a plan that names it is added.
  yield* lock(LOCKS.texts)
  yield* run(TEXTS.keepTexts, { rows: texts })
}

export function plans({ one, write }: Sql) {
  async function followed(versions: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for (let after: string | undefined = ''; after !== undefined && found.size < versions.length; ) {
      const page: readonly Followed[] = await one(all<Followed>(TEXTS.page, { after }))
      for (const { version, follows } of page)
        if (version !== undefined && follows && versions.includes(version)) found.add(version)
      after = page.length < ROWS_A_STEP ? undefined : page.at(-1)?.id
      await new Promise(setImmediate)
    }
    return found
  }
  return {
    pinnedPlan: (asked) => one(scalar(TEXTS.find, asked)),
    lessonText: (hash) => one(first<LessonText>(TEXTS.text, { hash })),
    async prunePlans({ keep, now }) {
      const others = plansToCheck(await one(listPlans()), { keep, now })
      if (others.length === 0) return
      const used = await followed(others.map(({ version }) => version))
      await write(function* () {
        yield* lock(LOCKS.texts)
        let deleted = 0
        for (const plan of others) {
          const isUnused = plan.unusedSince !== undefined
          if (used.has(plan.version) === isUnused)
            yield* run(TEXTS.mark, { ...plan, mark: isUnused ? null : now })
          else if (isUnused) deleted += yield* run(TEXTS.drop, plan)
        }
        if (deleted === 0) return
        yield* run(TEXTS.dropTexts, { named: (yield* listPlans()).flatMap(textsOf) })
      })
    },
  } satisfies Partial<CourseStore>
}

/** The hashes of the texts that a plan names; none for a plan from before there were any, or a damaged one. */
function textsOf({ plan }: Pick<PlanRow, 'plan'>): readonly string[] {
  // Any value is possible: somebody may have edited the row.
  const { texts } = jsonObject(plan)
  return Array.isArray(texts) ? texts.flatMap((lesson) => Object.values(Object(lesson))).map(String) : []
}

/** Faults of the texts that enrolments keep, one sentence each. */
export function planFaults(plans: readonly PlanRow[], texts: readonly LessonText[]): readonly string[] {
  const sound = new Set(texts.filter((text) => hashOf(text) === text.hash).map(({ hash }) => hash))
  const known = new Set(texts.map(({ hash }) => hash))
  return plans.flatMap((row) => {
    const wrong = [...new Set(textsOf(row))].filter((hash) => !sound.has(hash))
    return wrong.map(
      (hash) =>
        `course ${row.course}: the lesson text ${hash} of version ${row.version} ${known.has(hash) ? 'was changed' : 'is missing'}; its readers get the current text`,
    )
  })
}
