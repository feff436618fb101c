import type { Challenge, Identify } from '../core/access/identity.ts'
import type { Ingest } from '../core/analytics/ingest.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { Course } from '../core/course/course.ts'
import type { Settings } from '../core/env/settings.ts'
import type { Health } from '../core/health/runner.ts'
import type { HeartbeatStore } from '../core/heartbeats.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Log } from '../core/log.ts'
import type { SuppressionList } from '../core/mail/feedback/suppressions.ts'
import type { TransactionalMail } from '../core/mail/transactional.ts'
import type { Checkout } from '../core/payments/checkout.ts'
import type { OnPaymentEvent, PaymentEventStore } from '../core/payments/webhook.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import type { Secret } from '../core/secret.ts'
import type { Labels } from '../core/status/words.ts'
import type { StartedWith } from './embedding.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { MailReport } from './pages/status/mail.ts'
import type { StatusSource } from './status.ts'

/** Parts that the route tables are built from; assembled by `openPlatform` alone. */
export interface Parts {
  readonly settings: Settings
  readonly started: StartedWith
  /** The key of this platform’s own links, which every replica has. */
  readonly signingSecret: () => Promise<Secret>
  /** Opens store and mailer when first asked for. */
  readonly course: () => Promise<Course>
  /** How a confirmation link confirms: by being opened, or by a button on its page. */
  readonly confirmation: 'link' | 'button'
  readonly challenge: Challenge | undefined
  readonly mailConfigured: boolean
  /** The pages have a form to sign up. */
  readonly takesSubscribers: boolean
  /** Incidents are mailed to who subscribes to them. */
  readonly mailsIncidents: boolean
  /** Undefined: nobody that is known. */
  readonly identify: Identify
  readonly transactionalMail: () => Promise<TransactionalMail>
  readonly suppressionList: () => Promise<SuppressionList>
  /** Undefined while payments are not configured. */
  readonly checkout: (() => Promise<Checkout>) | undefined
  readonly heartbeats: () => Promise<HeartbeatStore>
  readonly incidents: () => Promise<IncidentStore>
  readonly paymentEvents: () => Promise<PaymentEventStore>
  readonly onPaymentEvent: OnPaymentEvent | undefined
  readonly clock: Clock
  readonly timer: Timer
  readonly log: Log
  readonly ingest: Ingest
  readonly platform: ResolvedPlatform
  readonly labels: Labels
  /** Health of the web service. */
  readonly health: Health
  readonly status: StatusSource
  /** Undefined while mail is not configured or no store is open. */
  readonly mailReport: () => Promise<MailReport | undefined>
  readonly metrics: Metrics
}
