import * as z from 'zod'
import type { CourseDefinition } from '../../../core/course/definition.ts'
import { DispatchBody, Limit, subscribable, subscribeBody } from '../../routes/course.ts'
import { ConfirmAnswer, DispatchAnswer, SubscribeAnswer, UnsubscribeAnswer } from '../answers.ts'
import type { Operation, Parameter, RouteOperations } from '../operation.ts'
import { inPath, JSON_BODY, json, jsonBody, page, query } from '../operation.ts'

const linkParameter = (name: string, description: string, example: string): Parameter =>
  query(name, z.string(), description, example)

const confirmation = (summary: string, description: string): Operation => ({
  tag: 'Course',
  summary,
  description,
  parameters: [linkParameter('token', 'From the link.', 'Zm9yIGV4YW1wbGUgb25seQ')],
  answers: [
    {
      status: 200,
      description: 'Confirmed, or a page whose button confirms.',
      content: {
        'text/html': 'text',
        'application/json': {
          name: 'ConfirmAnswer',
          schema: ConfirmAnswer,
          examples: { confirmed: { status: 'confirmed' } },
        },
      },
    },
    { status: 204, description: 'A prefetch: nothing was looked at.', content: {} },
  ],
  errors: ['token_invalid', 'token_expired', 'store_unavailable'],
})

export const courseOperations = (courses: readonly CourseDefinition[]) =>
  ({
    lesson: {
      GET: {
        tag: 'Pages',
        summary: 'A lesson of the course as a page',
        parameters: [
          inPath(
            'day',
            z
              .int()
              .min(1)
              .max(Math.max(1, ...courses.map(({ lessons }) => lessons.length))),
            'The day of the course.',
            1,
          ),
          query(
            'course',
            z.enum(courses.map(({ id }) => id)),
            'A course of the platform; its first when left out.',
            courses[0]?.id ?? 'course',
          ),
          query(
            't',
            z.string(),
            'The signature in the link of a mail, for a course whose pages only that opens.',
            'wkZ1mNq0Vd3c5Jx8bTfYhA',
          ),
          query(
            'language',
            z.string(),
            'A language tag, before those of Accept-Language; links in mails have it.',
            'de',
          ),
        ],
        answers: [page('The lesson.')],
        errors: ['not_found'],
      },
    },
    subscribe: {
      POST: {
        tag: 'Course',
        summary: 'Subscribes an address to the course',
        description:
          'The answer has the same body, status and time whether or not the address is known. A confirmation is mailed at most once an hour and three times a day to an address. The form on the pages of the course posts here too, and a browser that sent it gets a page; forms on other sites are refused. Scripts of the origins in CORS_ALLOWED_ORIGINS may post JSON.',
        body: {
          type: 'application/json',
          also: 'application/x-www-form-urlencoded',
          name: 'SubscribeRequest',
          schema: subscribeBody(subscribable(courses, true)),
          required: true,
          examples: { address: { email: 'ada@example.com' } },
        },
        answers: [
          {
            status: 202,
            description: 'Taken. `sent` is false only where mail is not configured.',
            content: {
              'text/html': 'text',
              'application/json': {
                name: 'SubscribeAnswer',
                schema: SubscribeAnswer,
                examples: {
                  mailed: { status: 'pending', sent: true },
                  withoutMail: { status: 'pending', sent: false, reason: 'mail is not configured' },
                },
              },
            },
          },
        ],
        errors: [...JSON_BODY, 'challenge_failed', 'store_unavailable'],
      },
    },
    confirm: {
      GET: confirmation(
        'Confirms a subscription by the link in its mail',
        'HTML for a browser (`Accept: text/html`), JSON on request. A second click answers as the first. HEAD, prefetches (`Sec-Purpose`) and mail scanners change nothing; where the platform confirms by a button, neither does any other GET.',
      ),
      POST: confirmation(
        'Confirms a subscription by the button on the page of its link',
        'The body is ignored.',
      ),
    },
    unsubscribe: {
      GET: unsubscribe(
        'Ends a subscription by the link in a lesson',
        'The page offers to undo. HEAD, prefetches and mail scanners change nothing, and scanners get a page whose button unsubscribes; where the platform unsubscribes by a button, so does any other GET.',
      ),
      POST: {
        ...unsubscribe(
          'Ends a subscription with one click (RFC 8058), or undoes that',
          'With `undo=1`, from the form of that page, the lessons go on; with `preferences=1`, language and time zone are changed. The answer is then always a page.',
        ),
        body: {
          type: 'application/x-www-form-urlencoded',
          name: 'UnsubscribeRequest',
          schema: z.looseObject({
            'List-Unsubscribe': z.string().optional(),
            undo: z.string().optional(),
            preferences: z.string().optional(),
            language: z.string().optional(),
            timeZone: z.string().optional(),
          }),
          required: false,
          examples: { oneClick: { 'List-Unsubscribe': 'One-Click' }, undo: { undo: '1' } },
        },
        errors: ['bad_request', 'payload_too_large', 'unsupported_media_type', 'store_unavailable'],
      },
    },
    dispatch: {
      POST: {
        tag: 'Operations',
        summary: 'Sends the lessons that are due',
        description:
          'At most one message for each subscription. The limit comes from the query, else the body, else EMAIL_DISPATCH_LIMIT, else 100. Without mail configured nothing is processed and `reason` says so.',
        security: 'dispatchSecret',
        parameters: [query('limit', Limit, 'How many lessons at most.', 100)],
        body: jsonBody('DispatchRequest', DispatchBody, { limited: { limit: 100 } }, false),
        answers: [
          json('What became of each.', 'DispatchAnswer', DispatchAnswer, {
            sent: {
              processed: 1,
              sent: 1,
              failed: 0,
              unknown: 0,
              remaining: 0,
              limit: 100,
              results: [{ subscription: 'Jk3nM0aPq9xT2vLs', day: 3, sent: true }],
            },
            withoutMail: {
              processed: 0,
              sent: 0,
              failed: 0,
              unknown: 0,
              remaining: 4,
              limit: 100,
              reason: 'mail is not configured',
              results: [],
            },
          }),
        ],
        errors: [
          'bad_request',
          'payload_too_large',
          'unsupported_media_type',
          'unauthenticated',
          'store_not_persistent',
          'store_unavailable',
        ],
      },
    },
  }) satisfies Partial<RouteOperations>

function unsubscribe(summary: string, more = ''): Operation {
  return {
    tag: 'Course',
    summary,
    description: `Always the same page, even for a forged or unknown link; JSON on request. ${more}`.trim(),
    parameters: [
      linkParameter('s', 'From the link: subscription and enrolment.', 'Jk3nM0aPq9xT2vLs.1'),
      linkParameter('t', 'From the link: its signature.', 'c2lnbmF0dXJl'),
    ],
    answers: [
      {
        status: 200,
        description: 'Unsubscribed, as far as the link was genuine; or a page whose button unsubscribes.',
        content: {
          'text/html': 'text',
          'application/json': {
            name: 'UnsubscribeAnswer',
            schema: UnsubscribeAnswer,
            examples: { unsubscribed: { status: 'unsubscribed' }, button: { status: 'unchanged' } },
          },
        },
      },
      { status: 204, description: 'A prefetch: nothing was looked at.', content: {} },
    ],
    errors: ['store_unavailable'],
  }
}
