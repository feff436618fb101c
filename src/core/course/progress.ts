import { DAY_MS } from '../durations.ts'

/** How long after its next lesson was due an enrolment that a shorter course ended goes on, once the course is long again. */
export const RESUMES_MS = 30 * DAY_MS
/** The row format whose builds know lessons by name. */
const BY_NAME = 2

/** What an enrolment that follows the newest course keeps of its lessons, because a number may name another one tomorrow. */
export interface Progress {
  /** Names of the lessons sent, in order. */
  readonly sentLessons: readonly string[]
  /** The row format that a build has to know to send the next lesson; older builds go by its number. */
  readonly needs: number
}

/**
 * The lessons of the newest course as one enrolment gets them: first those it was sent, deleted ones included,
 * then the others in the order of the course. A lesson sent without keeping its name is taken to be the one
 * that has its number now.
 */
export function lessonsFor(
  course: readonly string[],
  names: readonly string[] | undefined,
  sent: number,
): readonly string[] {
  const known = Array.from({ length: sent }, (_, index) => names?.[index] ?? course[index] ?? '')
  if (known.every((name, index) => name === course[index])) return course
  const had = new Set(known)
  return [...known, ...course.filter((name) => !had.has(name))]
}

/** The progress of an enrolment with these lessons that was sent the first `sent`. */
export function progressOf(course: readonly string[], lessons: readonly string[], sent: number): Progress {
  const isSame = course.length === lessons.length && course.every((name, index) => name === lessons[index])
  return { sentLessons: lessons.slice(0, sent), needs: isSame ? 0 : BY_NAME }
}
