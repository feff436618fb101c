/** When the lessons of a course are due. */
export type Cadence =
  /** The first at confirmation, each next one so many milliseconds later. */
  | { readonly kind: 'every'; readonly ms: number }
  /** At a local time, on chosen days of the week. */
  | {
      readonly kind: 'at'
      /** Minutes after midnight. */
      readonly minute: number
      /** An IANA time zone; undefined: the subscriber's own. */
      readonly zone: string | undefined
      /** 1, Monday, to 7, Sunday; empty: every day. */
      readonly weekdays: readonly number[]
    }

/** What an enrolment follows: its lessons and when they are due. */
export interface CoursePlan {
  /** Names of templates, in order. */
  readonly lessons: readonly string[]
  readonly cadence: Cadence
  /** The least time between two lessons to one subscriber. */
  readonly spacingMs: number
}

/** A course by mail: lessons in order, one at a time. */
export interface CourseDefinition extends CoursePlan {
  readonly id: string
  readonly title: string
  /** `latest`: enrolments that have begun follow a changed course; otherwise they keep the one that they began with. */
  readonly follow: 'start' | 'latest'
}

/** The plan alone, as it is kept for enrolments that began with it. */
export function planOf({ lessons, cadence, spacingMs }: CoursePlan): CoursePlan {
  return { lessons, cadence, spacingMs }
}

/** The course of enrolments that are older than the choice: there was one. */
export const FIRST_COURSE = 'quantum'
