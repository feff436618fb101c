import { directory, paymentEvents, sentMail } from './account.ts'
import { auditLog } from './audit.ts'
import { feedback } from './feedback.ts'
import { heartbeats } from './heartbeats.ts'
import { hours } from './hours.ts'
import { incidents } from './incidents.ts'
import { getOrCreate, storeOwner } from './meta.ts'
import { notices } from './notices.ts'
import type { CourseParts } from './parts.ts'
import { sending } from './sending.ts'
import type { Sql } from './sql.ts'

/** The operations of the store that are written once for both. */
export const operations = (sql: Sql, parts: CourseParts) => ({
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
  ...hours(sql),
})
