/** A course by mail: lessons in order, one at a time. */
export interface CourseDefinition {
  readonly id: string
  readonly title: string
  /** Names of templates, in order. */
  readonly lessons: readonly string[]
  /** Milliseconds between a lesson and the next; the first is due at confirmation. */
  readonly everyMs: number
}
