import { DAY_MS } from '../durations.ts'
import { hashOf, type LessonText } from '../mail/lesson-text.ts'

/** An unused plan is deleted only after this time, so that an enrolment that begins meanwhile still finds it. */
const UNUSED_KEPT_MS = DAY_MS

/** The table `course_plan`. */
export interface PlanRow {
  readonly course: string
  readonly version: string
  /** JSON. */
  readonly plan: string
  readonly unused_since: number | null
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
    ({ version, unused_since: since }) =>
      !keep.includes(version) && (since === null || now - since >= UNUSED_KEPT_MS),
  )
}

/** The change to make to a checked plan: mark it used or unused, or delete it; undefined: none. */
export function planChange(
  { version, unused_since: since }: Pick<PlanRow, 'version' | 'unused_since'>,
  followed: ReadonlySet<string>,
): 'used' | 'unused' | 'delete' | undefined {
  if (followed.has(version)) return since === null ? undefined : 'used'
  if (since === null) return 'unused'
  return 'delete'
}

/** The hashes of the texts that a plan names; none for a plan from before there were any, or a damaged one. */
export function textsOf({ plan }: Pick<PlanRow, 'plan'>): readonly string[] {
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
