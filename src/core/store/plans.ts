import type { CourseStore, PinnedPlan } from '../course/store.ts'
import { DAY_MS } from '../durations.ts'
import { hashOf, type LessonText } from '../mail/lesson-text.ts'
import { all, type Dialect, first, lock, run, type Sql, type Steps } from './sql.ts'

/** An unused plan is deleted only after this time, so that an enrolment that begins meanwhile still finds it. */
const UNUSED_KEPT_MS = DAY_MS

/** Enrolments read in one step. A step delays the writer no longer than reading this many takes. */
const PAGE = 500
/** The lock under which texts are deleted, so that none goes while a plan that names it is added. */
const TEXTS_LOCK = 7_305_823_190_018

const TEXT_COLUMNS = ['hash', 'format', 'language', 'source']
const SAME = 'course = @course AND version = @version AND unused_since IS NOT DISTINCT FROM @unusedSince'

const PLANS = 'SELECT course, version, plan, unused_since FROM course_plan'
const COURSE_TEXTS = 'SELECT hash, format, language, source FROM course_text'

export const TEXTS = ({ rows, each, length }: Dialect) => ({
  use: 'UPDATE course_plan SET unused_since = NULL WHERE course = @course AND version = @version AND unused_since IS NOT NULL',
  keep: 'INSERT INTO course_plan (course, version, plan) VALUES (@course, @version, @plan) ON CONFLICT DO NOTHING',
  keepTexts: `INSERT INTO course_text (hash, format, language, source)
    SELECT DISTINCT hash, format, language, source FROM ${rows('course_text', TEXT_COLUMNS)} AS r WHERE true
    ON CONFLICT DO NOTHING`,
  find: 'SELECT plan FROM course_plan WHERE course = @course AND version = @version',
  text: 'SELECT hash, format, language, source FROM course_text WHERE hash = @hash',
  plans: PLANS,
  texts: COURSE_TEXTS,
  page: `SELECT id, course_version AS version, state <> 'unconfirmed' AND ${length('sent_days')} < lessons AS follows
    FROM subscription WHERE id > @after ORDER BY id LIMIT ${PAGE}`,
  mark: `UPDATE course_plan SET unused_since = @mark WHERE ${SAME}`,
  drop: `DELETE FROM course_plan WHERE ${SAME}`,
  dropTexts: `DELETE FROM course_text WHERE hash NOT IN (SELECT value FROM ${each('@named')})`,
})

/** The table `course_plan`. */
export interface PlanRow {
  readonly course: string
  readonly version: string
  /** JSON. */
  readonly plan: string
  readonly unusedSince: number | undefined
}

/**
 * The plans to check for followers: not those that new enrolments begin with, nor those marked unused less
 * than a day ago.
 */
export function plansToCheck(
  plans: readonly PlanRow[],
  { keep, now }: { readonly keep: readonly string[]; readonly now: number },
): readonly PlanRow[] {
  return plans.filter(
    ({ version, unusedSince: since }) =>
      !keep.includes(version) && (since === undefined || now - since >= UNUSED_KEPT_MS),
  )
}

/** The change to make to a checked plan: mark it used or unused, or delete it; undefined: none. */
function planChange(
  { version, unusedSince: since }: PlanRow,
  followed: ReadonlySet<string>,
): 'used' | 'unused' | 'delete' | undefined {
  if (followed.has(version)) return since === undefined ? undefined : 'used'
  if (since === undefined) return 'unused'
  return 'delete'
}

export const listPlans = (): Steps<readonly PlanRow[]> => all(PLANS)
export const listTexts = (): Steps<readonly LessonText[]> => all(COURSE_TEXTS)

interface Followed {
  readonly id: string
  readonly version: string | undefined
  /** Truthy while lessons of that version are left. */
  readonly follows: unknown
}

/** The plans and texts that enrolments began with. */
export function plans({ dialect, one, write }: Sql) {
  const text = TEXTS(dialect)

  /** The versions that some enrolment follows, of those asked for. */
  async function followed(versions: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for (let after: string | undefined = ''; after !== undefined && found.size < versions.length; ) {
      const page: readonly Followed[] = await one(all<Followed>(text.page, { after }))
      for (const { version, follows } of page)
        if (version !== undefined && follows && versions.includes(version)) found.add(version)
      after = page.length < PAGE ? undefined : page.at(-1)?.id
      await new Promise(setImmediate)
    }
    return found
  }

  function* change(plan: PlanRow, to: ReturnType<typeof planChange>, now: number): Steps<number> {
    if (to === 'delete') return yield* run(text.drop, plan)
    if (to !== undefined) yield* run(text.mark, { ...plan, mark: to === 'used' ? null : now })
    return 0
  }

  return {
    /** Stores the plan and the texts that an enrolment begins with, in its transaction. */
    *keep(course: string, { version, plan, texts }: PinnedPlan): Steps<void> {
      // Clear the mark first: a transaction that deletes unused plans then either sees that this one is in use,
      // or has ended before the insert below.
      yield* run(text.use, { course, version })
      if ((yield* run(text.keep, { course, version, plan })) === 0 || texts.length === 0) return
      yield* lock(TEXTS_LOCK)
      yield* run(text.keepTexts, { rows: texts })
    },
    store: {
      pinnedPlan: async (asked) => (await one(first<Pick<PlanRow, 'plan'>>(text.find, asked)))?.plan,
      lessonText: (hash) => one(first<LessonText>(text.text, { hash })),
      async prunePlans({ keep, now }) {
        const others = plansToCheck(await one(listPlans()), { keep, now })
        if (others.length === 0) return
        const used = await followed(others.map(({ version }) => version))
        await write(function* () {
          yield* lock(TEXTS_LOCK)
          let deleted = 0
          for (const plan of others) deleted += yield* change(plan, planChange(plan, used), now)
          if (deleted === 0) return
          const named = (yield* listPlans()).flatMap(textsOf)
          yield* run(text.dropTexts, { named })
        })
      },
    } satisfies Partial<CourseStore>,
  }
}

/** The hashes of the texts that a plan names; none for a plan from before there were any, or a damaged one. */
function textsOf({ plan }: Pick<PlanRow, 'plan'>): readonly string[] {
  try {
    // Any value is possible: somebody may have edited the row.
    const { texts } = JSON.parse(plan) as { readonly texts?: unknown }
    return Array.isArray(texts) ? texts.flatMap((lesson) => Object.values(Object(lesson))).map(String) : []
  } catch {
    return []
  }
}

/** Faults of the texts that enrolments keep, one sentence each. */
export function planFaults(plans: readonly PlanRow[], texts: readonly LessonText[]): readonly string[] {
  const sound = new Set(texts.filter((text) => hashOf(text) === text.hash).map(({ hash }) => hash))
  const known = new Set(texts.map(({ hash }) => hash))
  return plans.flatMap((row) =>
    [...new Set(textsOf(row))]
      .filter((hash) => !sound.has(hash))
      .map(
        (hash) =>
          `course ${row.course}: the lesson text ${hash} of version ${row.version} ${known.has(hash) ? 'was changed' : 'is missing'}; its readers get the current text`,
      ),
  )
}
