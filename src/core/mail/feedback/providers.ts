import type { FeedbackProviderName } from '../../feedback-providers.ts'
import { mailgun } from './mailgun.ts'
import { postmark } from './postmark.ts'
import type { FeedbackProvider } from './provider.ts'
import { sendgrid } from './sendgrid.ts'
import { ses } from './ses.ts'
import { resend, standard } from './standard.ts'

export const FEEDBACK_PROVIDERS: Readonly<Record<FeedbackProviderName, FeedbackProvider>> = {
  ses,
  postmark,
  sendgrid,
  mailgun,
  resend,
  standard,
}
