import { type HistorySteps, historySteps } from './history.ts'
import { type MailboxSteps, mailboxSteps } from './mailboxes.ts'
import { plans } from './plans.ts'
import type { Sql } from './sql.ts'
import { type SubscriptionSteps, subscriptionSteps } from './subscriptions.ts'

/** The steps that the operations of the course share. */
export interface CourseParts {
  readonly subscriptions: SubscriptionSteps
  readonly history: HistorySteps
  readonly mailboxes: MailboxSteps
  readonly plans: ReturnType<typeof plans>
}

export const courseParts = (sql: Sql): CourseParts => ({
  subscriptions: subscriptionSteps(sql.dialect),
  history: historySteps(sql.dialect),
  mailboxes: mailboxSteps(sql.dialect),
  plans: plans(sql),
})
