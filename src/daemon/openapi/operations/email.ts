import { EmailBody } from '../../routes/email.ts'
import { EmailAnswer } from '../answers.ts'
import type { Operations } from '../operation.ts'
import { JSON_BODY } from './common.ts'

export const EMAIL = {
  email: {
    POST: {
      tag: 'Mail',
      summary: 'Sends a transactional mail about a record',
      description:
        'Recipient and links come from the server’s record, never from the request. A record that is not the caller’s answers 404, exactly as one that does not exist. A mail that was sent for a record is not sent again: the answer is the same.',
      security: 'identity',
      body: {
        type: 'application/json',
        name: 'EmailRequest',
        schema: EmailBody,
        required: true,
        examples: {
          invite: { template: 'organisation-invite', inputs: { inviteId: 'inv_1' } },
          magicLink: { template: 'magic-link', inputs: { loginRequestId: 'login_1' } },
          examPassed: { template: 'exam-passed', inputs: { examAttemptId: 'attempt_1' } },
          welcome: { template: 'welcome', inputs: {} },
          confirmation: { template: 'subscription-confirmation', inputs: {} },
        },
      },
      answers: [
        {
          status: 200,
          description: 'Sent, or why not.',
          content: {
            'application/json': {
              name: 'EmailAnswer',
              schema: EmailAnswer,
              examples: {
                sent: { sent: true, id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' },
                notSent: { sent: false, reason: 'mail is not configured' },
              },
            },
          },
        },
      ],
      errors: [...JSON_BODY, 'unauthenticated', 'locked', 'not_found', 'unavailable', 'store_unavailable'],
    },
  },
} satisfies Partial<Operations>
