import type { Backlog, CourseCounts, Problem, SubscriptionState } from '../course/store.ts'

/** Grouped rows, as every SQL store gives them, as the operator's counts. */
export function countsOf(input: {
  readonly states: readonly {
    readonly course: string
    readonly state: SubscriptionState
    readonly lessons: number
    readonly count: number
  }[]
  readonly problems: readonly { readonly kind: Problem['kind']; readonly count: number }[]
  readonly hours: readonly { readonly hour: number; readonly count: number }[]
  readonly backlog: Backlog
  /** The number of lessons in the longest course. */
  readonly lessons: number | undefined
}): CourseCounts {
  const sum = <T extends { readonly count: number }>(rows: readonly T[], matches: (row: T) => boolean) =>
    rows.reduce((total, row) => (matches(row) ? total + row.count : total), 0)
  const inState = (wanted: SubscriptionState) => sum(input.states, ({ state }) => state === wanted)
  const most = Math.max(input.lessons ?? 0, ...input.states.map(({ lessons }) => lessons))
  const courses = [...new Set(input.states.map(({ course }) => course))].sort()
  return {
    byCourse: Object.fromEntries(
      courses.map((wanted) => {
        const of = (state: SubscriptionState) =>
          sum(input.states, (row) => row.course === wanted && row.state === state)
        return [
          wanted,
          {
            unconfirmed: of('unconfirmed'),
            confirmed: of('confirmed'),
            unsubscribed: of('unsubscribed'),
          },
        ]
      }),
    ),
    byState: {
      unconfirmed: inState('unconfirmed'),
      confirmed: inState('confirmed'),
      unsubscribed: inState('unsubscribed'),
    },
    byLessons: Array.from({ length: most + 1 }, (_, sent) =>
      sum(input.states, ({ state, lessons }) => state === 'confirmed' && lessons === sent),
    ),
    dueNow: input.backlog.due,
    waiting: input.backlog.waiting,
    nextTryAt: input.backlog.nextTryAt,
    oldestDueAt: input.backlog.oldestDueAt,
    dueByHour: Array.from({ length: 24 }, (_, wanted) => sum(input.hours, ({ hour }) => hour === wanted)),
    parked: sum(input.problems, ({ kind }) => kind === 'parked'),
    unknown: sum(input.problems, ({ kind }) => kind === 'unknown'),
  }
}
