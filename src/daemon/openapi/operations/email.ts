import * as z from 'zod'
import { FEEDBACK_PROVIDER_NAMES } from '../../../core/feedback-providers.ts'
import type { MailDefinition } from '../../../core/mail/definition.ts'
import { emailBody } from '../../routes/email.ts'
import { FeedbackBody } from '../../routes/feedback.ts'
import { EmailAnswer, FeedbackAnswer } from '../answers.ts'
import type { RouteOperations } from '../operation.ts'
import { inPath, JSON_BODY, json, jsonBody } from '../operation.ts'

/** The route that sends a mail, with the mails that somebody may ask for. */
export function emailOperations(definitions: readonly MailDefinition[]) {
  return {
    email: {
      POST: {
        tag: 'Mail',
        summary: 'Sends a transactional mail about a record',
        description:
          'Recipient and links come from the server’s record, never from the request. A record that is not the caller’s answers 404, exactly as one that does not exist. A mail that was sent for a record is not sent again: the answer is the same. With a persistent store the mail is stored and the answer does not wait for the provider.',
        security: 'identity',
        body: jsonBody(
          'EmailRequest',
          emailBody(definitions),
          Object.fromEntries(
            definitions.flatMap(({ name, ask }) =>
              ask ? [[camelCase(name), exampleOf(name, ask.inputs)]] : [],
            ),
          ),
        ),
        answers: [
          json('Sent, or why not.', 'EmailAnswer', EmailAnswer, {
            queued: { sent: true, queued: true, id: 'q8Zr0c3vXk1m@example.com' },
            sent: { sent: true, id: '49a3999c-0ce1-4ea6-ab68-afcd6dc2e794' },
            notSent: { sent: false, reason: 'mail is not configured' },
          }),
        ],
        errors: [
          ...JSON_BODY,
          'unauthenticated',
          'locked',
          'not_found',
          'conflict',
          'unavailable',
          'store_unavailable',
        ],
      },
    },
    feedback: {
      POST: {
        tag: 'Mail',
        summary: 'Takes what the mail provider reports of messages',
        description:
          'Bounces, complaints, unsubscribes and deliveries, in the form that the provider documents, signed over the bytes of the body at most five minutes ago. Each event takes effect once. A hard bounce or a complaint suppresses its address and ends its subscriptions.',
        security: 'feedbackSignature',
        parameters: [
          inPath(
            'provider',
            z.enum(FEEDBACK_PROVIDER_NAMES),
            'The provider that MAILER_FEEDBACK_PROVIDER names; 404 for any other.',
            'standard',
          ),
        ],
        body: jsonBody('FeedbackRequest', FeedbackBody, {
          standard: {
            type: 'hard-bounce',
            timestamp: '2026-11-22T02:00:00Z',
            data: { address: 'ada@example.com', messageId: 'c1@example.com', status: '5.1.1' },
          },
        }),
        answers: [
          json('Recorded, now or before.', 'FeedbackAnswer', FeedbackAnswer, {
            recorded: { events: 1, repeated: 0, ignored: 0 },
          }),
        ],
        errors: [
          'bad_request',
          'signature_invalid',
          'unauthenticated',
          'not_found',
          'payload_too_large',
          'unsupported_media_type',
          'unavailable',
          'store_unavailable',
        ],
      },
    },
  } satisfies Partial<RouteOperations>
}

/** `magic-link` as `magicLink`: the name of its example. */
function camelCase(name: string): string {
  return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}

/** `inviteId` as `invite_1`. */
function exampleOf(template: string, inputs: readonly string[]) {
  return {
    template,
    inputs: Object.fromEntries(inputs.map((input) => [input, `${input.replace(/Id$/, '')}_1`])),
  }
}
