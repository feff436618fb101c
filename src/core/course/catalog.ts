import { createHash } from 'node:crypto'
import { type CourseDefinition, type CoursePlan, planOf } from './definition.ts'
import { dueAt, type Enrolment, nextLesson, type Zones } from './schedule.ts'
import type { Begin, CourseStore, Next, PinnedPlan, Subscription } from './store.ts'

/** The courses of a platform, with what enrolments in them follow. */
export interface Catalog {
  readonly courses: readonly CourseDefinition[]
  find(id: string): CourseDefinition | undefined
  readonly begin: Begin
  /** What an enrolment follows; undefined: the platform no longer has its course. */
  plan(
    enrolment: Pick<Subscription, 'course' | 'courseVersion'>,
    store: Pick<CourseStore, 'pinnedPlan'>,
  ): Promise<CoursePlan | undefined>
  /** The lesson after one that was sent; undefined: that was the last. */
  next(plan: CoursePlan, enrolment: Enrolment, sent: number): Next | undefined
}

/** Opens the courses of a platform; time zones are loaded only where a course goes by local time. */
export async function openCatalog(courses: readonly CourseDefinition[]): Promise<Catalog> {
  const local = courses.some(({ cadence }) => cadence.kind === 'at')
  return createCatalog(courses, local ? (await import('./zones.ts')).zones : undefined)
}

export function createCatalog(courses: readonly CourseDefinition[], zones?: Zones): Catalog {
  const byId = new Map(
    courses.map((course) => [
      course.id,
      { course, pinned: course.follow === 'latest' ? undefined : pinnedOf(course) },
    ]),
  )
  const kept = new Map<string, CoursePlan>()
  return {
    courses,
    find: (id) => byId.get(id)?.course,
    begin({ course: id, ...enrolment }) {
      const known = byId.get(id)
      if (known === undefined) return undefined
      const { course, pinned } = known
      return { lessons: course.lessons.length, dueAt: dueAt(course, enrolment, 1, zones), pinned }
    },
    async plan({ course: id, courseVersion: version }, store) {
      const known = byId.get(id)
      if (known === undefined) return undefined
      if (known.pinned === undefined || version === undefined || known.pinned.version === version)
        return known.course
      const found = kept.get(version)
      if (found !== undefined) return found
      const text = await store.pinnedPlan({ course: id, version })
      if (text === undefined) return known.course
      // Written by `pinnedOf`, and kept under the hash of its text.
      const plan = JSON.parse(text) as CoursePlan
      kept.set(version, plan)
      return plan
    },
    next: (plan, enrolment, sent) => nextLesson(plan, enrolment, sent, zones),
  }
}

function pinnedOf(course: CourseDefinition): PinnedPlan {
  const plan = JSON.stringify(planOf(course))
  return { version: createHash('sha256').update(plan).digest('base64url').slice(0, 22), plan }
}
