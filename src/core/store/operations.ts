import type { CourseStore } from '../course/store.ts'
import { directory, paymentEvents, sentMail } from './account.ts'
import { auditLog } from './audit.ts'
import { confirmations } from './confirmations.ts'
import { counts } from './counts.ts'
import { enrolments } from './enrolments.ts'
import { erasure } from './erasure.ts'
import { feedback } from './feedback.ts'
import { heartbeats } from './heartbeats.ts'
import { hours } from './hours.ts'
import { incidents } from './incidents.ts'
import { messages } from './messages.ts'
import { getOrCreate, noteConfiguration, storeOwner } from './meta.ts'
import { notices } from './notices.ts'
import type { CourseParts } from './parts.ts'
import { sending } from './sending.ts'
import type { Sql } from './sql.ts'

/** What a dispatcher does for every lesson: each store does it in the way that is fast there. */
export type Dispatch = Pick<CourseStore, 'claimDue' | 'keep' | 'stillHolds' | 'settle'>

/** The operations of the store, which but for a dispatcher's are written once. */
export function operations(sql: Sql, parts: CourseParts, dispatch: Dispatch) {
  const course: CourseStore = {
    ...confirmations(sql, parts),
    ...enrolments(sql, parts),
    ...messages(sql, parts),
    ...counts(sql),
    ...erasure(sql, parts),
    ...parts.plans.store,
    ...dispatch,
  }
  return {
    course,
    audit: auditLog(sql),
    feedback: feedback(sql, parts),
    sending: sending(sql),
    directory: directory(sql),
    sentMail: sentMail(sql),
    paymentEvents: paymentEvents(sql),
    incidents: incidents(sql),
    notices: notices(sql),
    heartbeats: heartbeats(sql),
    owner: storeOwner(sql),
    getOrCreate: getOrCreate(sql),
    noteConfiguration: noteConfiguration(sql),
    ...hours(sql),
  }
}
