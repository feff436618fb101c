import * as z from 'zod'
import { DispatchAnswer } from '../../daemon/routes/dispatch.ts'
import {
  count,
  courseCounts,
  list,
  listOf,
  milliseconds,
  pause,
  subscriptionState,
  text,
  time,
  versioned,
} from './parts.ts'

const problem = z.strictObject({
  kind: z.enum(['failed', 'unknown', 'parked', 'bounced', 'suppressed']),
  reason: text,
  since: milliseconds,
})

const subscription = z.strictObject({
  id: text,
  address: text,
  course: text,
  state: subscriptionState,
  enrolment: count.describe('Rises each time that the course starts over.'),
  createdAt: milliseconds,
  confirmedAt: milliseconds.optional(),
  unsubscribedAt: milliseconds.optional(),
  sentDays: list(count),
  sentLessons: list(text).optional().describe('Their names, where the course follows its newest lessons.'),
  lessons: count,
  dueAt: milliseconds.optional(),
  lastSentAt: milliseconds.optional(),
  courseVersion: text.optional(),
  timeZone: text.optional(),
  language: text.optional(),
  nextAttemptAt: milliseconds.optional(),
  failures: count,
  problem: problem.optional(),
  consent: z.strictObject({ at: milliseconds, how: text }).optional(),
})

const withHistory = subscription.extend({
  history: listOf({
    at: time,
    kind: text,
    enrolment: count,
    day: count.describe('The lesson; 0 for an entry that concerns none.'),
    outcome: text.optional(),
    reason: text.optional(),
    messageId: text.optional(),
    providerId: text.optional(),
    source: text.optional(),
    attempt: count.optional(),
  }),
})

const decision = z.enum(['retry', 'sent'])

export const courseDocuments = {
  'course status': versioned({
    ...courseCounts.shape,
    paused: pause.optional(),
    problems: listOf({
      id: text,
      day: count,
      kind: problem.shape.kind.optional(),
      reason: text.optional(),
      since: milliseconds.optional(),
      nextAttemptAt: milliseconds.optional(),
      address: text.describe('Shortened.'),
      messageId: text.optional(),
    }),
  }),
  'course show': versioned({
    ...withHistory.shape,
    enrolments: list(withHistory).describe('Every course of this person; the first one is also at the top.'),
  }),
  'course list': z.union([
    versioned({
      courses: listOf({
        id: text,
        title: text,
        lessons: count,
        cadence: text,
        unconfirmed: count,
        confirmed: count,
        unsubscribed: count,
        deleted: listOf({ lesson: text, people: count })
          .optional()
          .describe('Lessons that people in the middle of the course had and it no longer has.'),
      }),
    }).describe('Without an address.'),
    versioned({
      enrolments: listOf({
        id: text,
        course: text,
        state: z.enum([...subscriptionState.options, 'finished']),
        enrolment: count,
        sent: count,
        lessons: count,
        nextAt: milliseconds.optional(),
      }),
    }).describe('With an address.'),
  ]),
  'course enrol': versioned({ enrolled: z.literal(true), id: text, enrolment: count }),
  'course set': versioned({ enrolments: count.describe('How many were found.') }),
  'course export': versioned({
    enrolments: listOf({
      address: text,
      course: text,
      state: z.enum([...subscriptionState.options, 'finished']),
      language: text.optional(),
      timeZone: text.optional(),
      sent: count,
      lessons: count,
      sentLessons: list(text).describe('Names of the lessons sent.'),
      lastSentAt: time.optional(),
      nextAt: time.optional(),
      consentAt: time.optional(),
      consentHow: text.optional(),
    }),
  }),
  'course import': versioned({
    dryRun: z.boolean(),
    imported: count.describe('With dryRun: who would be.'),
    known: count.describe('In the course already, or through with it.'),
    leftOut: listOf({
      line: count.describe('Of a CSV file; the number of the entry in JSON.'),
      why: z.enum(['unsubscribed', 'unconfirmed', 'suppressed', 'erased', 'repeated']),
    }),
  }),
  'course cancel': versioned({ cancelled: z.boolean() }),
  'course resend-confirmation': versioned({ sent: z.literal(true), id: text }),
  'course resume': versioned({ resumed: z.literal(true) }),
  'course erase': versioned({
    erased: z.boolean(),
    related: count.describe('Invites, sign-in requests and records of sent mail that were deleted.'),
    bytesGone: z.boolean().describe('False: the file may still hold the bytes; run the command again.'),
    suppressed: z.literal(true),
  }),
  'course resolve': z.union([
    versioned({ subscription: text, resolved: decision }).describe('For one subscription.'),
    versioned({ count, resolved: decision }).describe('With --all or --reason.'),
  ]),
  dispatch: z.union([
    DispatchAnswer.extend({
      version: z.literal(1),
      limit: z.int().min(1).nullable().describe('null with --drain.'),
    }),
    versioned({
      due: listOf({ id: text, day: count.optional(), nextAttemptAt: milliseconds.optional() }),
    }).describe('With --dry-run.'),
  ]),
} as const
