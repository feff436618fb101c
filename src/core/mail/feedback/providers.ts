import { mailgun } from './mailgun.ts'
import { postmark } from './postmark.ts'
import type { FeedbackProvider } from './provider.ts'
import { sendgrid } from './sendgrid.ts'
import { ses } from './ses.ts'
import { resend, standard } from './standard.ts'

/** Whose feedback is understood; the name stands in the route and in MAILER_FEEDBACK_PROVIDER. */
export const FEEDBACK_PROVIDERS = {
  ses,
  postmark,
  sendgrid,
  mailgun,
  resend,
  standard,
} as const satisfies Record<string, FeedbackProvider>

export type FeedbackProviderName = keyof typeof FEEDBACK_PROVIDERS
