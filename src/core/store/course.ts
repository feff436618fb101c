import type { CourseStore } from '../course/store.ts'
import { confirmations } from './confirmations.ts'
import { counts } from './counts.ts'
import { enrolments } from './enrolments.ts'
import { erasure } from './erasure.ts'
import { messages } from './messages.ts'
import type { CourseParts } from './parts.ts'
import type { Sql } from './sql.ts'

/** What a dispatcher does for every lesson: each store does it in the way that is fast there. */
export type Dispatch = Pick<CourseStore, 'claimDue' | 'keep' | 'stillHolds' | 'settle'>

/** The course, but for what a dispatcher does. */
export const course = (sql: Sql, parts: CourseParts): Omit<CourseStore, keyof Dispatch> => ({
  ...confirmations(sql, parts),
  ...enrolments(sql, parts),
  ...messages(sql, parts),
  ...counts(sql),
  ...erasure(sql, parts),
  ...parts.plans.store,
})
