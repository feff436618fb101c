import type { CourseStore } from '../course/store.ts'
import { directory, paymentEvents, sentMail } from './account.ts'
import { confirmations } from './confirmations.ts'
import { counts } from './counts.ts'
import { dispatch, type RowByRow } from './dispatch.ts'
import { enrolments } from './enrolments.ts'
import { erasure } from './erasure.ts'
import { feedback } from './feedback.ts'
import { heartbeats } from './heartbeats.ts'
import { hours } from './hours.ts'
import { incidents } from './incidents.ts'
import { messages } from './messages.ts'
import { notices } from './notices.ts'
import { plans } from './plans.ts'
import { sending } from './sending.ts'
import { auditLog, getOrCreate, noteConfiguration, type Sql, storeOwner } from './sql.ts'

export function operations(sql: Sql, rowByRow?: RowByRow) {
  const course: CourseStore = {
    ...confirmations(sql),
    ...enrolments(sql),
    ...messages(sql),
    ...notices(sql),
    ...counts(sql),
    ...erasure(sql),
    ...plans(sql),
    ...dispatch(sql, rowByRow),
  }
  return {
    course,
    audit: auditLog(sql),
    feedback: feedback(sql),
    sending: sending(sql),
    directory: directory(sql),
    sentMail: sentMail(sql),
    paymentEvents: paymentEvents(sql),
    incidents: incidents(sql),
    heartbeats: heartbeats(sql),
    owner: storeOwner(sql),
    getOrCreate: getOrCreate(sql),
    noteConfiguration: noteConfiguration(sql),
    ...hours(sql),
  }
}
