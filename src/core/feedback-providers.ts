/** Providers whose feedback is understood; the name is part of the route, and the value of MAILER_FEEDBACK_PROVIDER. */
export const FEEDBACK_PROVIDER_NAMES = [
  'ses',
  'postmark',
  'sendgrid',
  'mailgun',
  'resend',
  'standard',
] as const

export type FeedbackProviderName = (typeof FEEDBACK_PROVIDER_NAMES)[number]
