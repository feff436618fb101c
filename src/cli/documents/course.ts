import * as z from 'zod'
import { DispatchAnswer } from '../../daemon/routes/dispatch.ts'
import {
  count,
  courseCounts,
  list,
  listOf,
  members,
  milliseconds,
  optional,
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
  ...members(text, 'id', 'address', 'course'),
  state: subscriptionState,
  enrolment: count.describe('Rises each time that the course starts over.'),
  createdAt: milliseconds,
  ...members(milliseconds.optional(), 'confirmedAt', 'unsubscribedAt'),
  sentDays: list(count),
  sentLessons: list(text).optional().describe('Their names, where the course follows its newest lessons.'),
  lessons: count,
  ...members(milliseconds.optional(), 'dueAt', 'lastSentAt'),
  ...members(text.optional(), 'courseVersion', 'timeZone', 'language'),
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
    ...members(text.optional(), 'outcome', 'reason', 'messageId', 'providerId', 'source'),
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
      ...members(milliseconds.optional(), 'since', 'nextAttemptAt'),
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
        ...members(text, 'id', 'title'),
        lessons: count,
        cadence: text,
        ...members(count, 'unconfirmed', 'confirmed', 'unsubscribed'),
        deleted: optional(
          listOf({ lesson: text, people: count }),
          'Lessons that people in the middle of the course had and it no longer has.',
        ),
      }),
      removed: optional(
        listOf({ course: text, people: count }),
        'Courses that people are in the middle of and the definition does not have.',
      ),
    }).describe('Without an address.'),
    versioned({
      enrolments: listOf({
        ...members(text, 'id', 'course'),
        state: z.enum([...subscriptionState.options, 'finished']),
        ...members(count, 'enrolment', 'sent', 'lessons'),
        nextAt: milliseconds.optional(),
      }),
    }).describe('With an address.'),
  ]),
  'course enrol': versioned({ enrolled: z.literal(true), id: text, enrolment: count }),
  'course set': versioned({ enrolments: count.describe('How many were found.') }),
  'course export': versioned({
    enrolments: listOf({
      ...members(text, 'address', 'course'),
      state: z.enum([...subscriptionState.options, 'finished']),
      ...members(text.optional(), 'language', 'timeZone'),
      ...members(count, 'sent', 'lessons'),
      sentLessons: list(text).describe('Names of the lessons sent.'),
      ...members(time.optional(), 'lastSentAt', 'nextAt', 'consentAt'),
      consentHow: text.optional(),
      subscription: text.describe('`ID.ENROLMENT`.'),
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
