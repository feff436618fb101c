/** Whose feedback is understood; the name stands in the route and in MAILER_FEEDBACK_PROVIDER. */
export const FEEDBACK_PROVIDER_NAMES = [
  'ses',
  'postmark',
  'sendgrid',
  'mailgun',
  'resend',
  'standard',
] as const

export type FeedbackProviderName = (typeof FEEDBACK_PROVIDER_NAMES)[number]
