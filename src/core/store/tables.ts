/** The tables of a store, each after those that it refers to. */
export const TABLES = [
  'subscription',
  'confirmation',
  'message',
  'subscription_event',
  'course_plan',
  'course_text',
  'enrol_request',
  'suppression',
  'handled_hour',
  'meta',
  'organisation',
  'organisation_admin',
  'organisation_invite',
  'login_request',
  'exam_attempt',
  'sent_mail',
  'payment_event',
  'audit',
  'incident',
  'alert_message',
  'silence',
  'heartbeat',
  'announcement',
  'status_update',
  'notice',
  'feedback_event',
  'mailbox',
  'mail_minute',
  'mail_day',
  'breaker',
  'pace',
] as const

export type Table = (typeof TABLES)[number]

/** The tables of the recorded health, which each machine has in a file of its own too: they are not copied. */
export const HEALTH_TABLES = ['health_series', 'health_period', 'health_build'] as const

export type HealthTable = (typeof HEALTH_TABLES)[number]
