import * as z from 'zod'
import { FEEDBACK_KINDS } from '../../core/mail/feedback/event.ts'
import { SUPPRESSION_CAUSES } from '../../core/mail/feedback/mailbox.ts'
import { count, list, pause, text, time, versioned } from './parts.ts'

export const emailList = versioned({
  mails: list(
    z.strictObject({
      name: text,
      subject: text.describe('With the sample values of its slots.'),
      slots: z.record(z.string(), z.strictObject({ type: z.enum(['text', 'url']), sample: text })),
    }),
  ),
})

export const feedback = versioned({
  outcome: text,
  reason: text,
  recorded: count,
  repeated: count.describe('Recorded before.'),
  unmatched: count.describe('Reports without proof that we sent the message.'),
})

export const feedbackStatus = versioned({
  paused: pause.optional(),
  counts: list(
    z.strictObject({
      day: z.iso.date(),
      kind: z.enum([...FEEDBACK_KINDS, 'sent']),
      source: text,
      domain: text,
      count,
    }),
  ),
})

export const suppressionsList = versioned({
  suppressions: list(
    z.strictObject({
      address: text,
      at: time,
      cause: z.enum(SUPPRESSION_CAUSES),
      source: text.describe('A provider, pipe, import or operator.'),
      reason: text,
    }),
  ),
})
export const suppressionsAdd = versioned({ outcome: z.enum(['added', 'known', 'erased']) })
export const suppressionsRemove = versioned({ outcome: z.literal('removed') })
export const suppressionsImport = versioned({
  added: count,
  known: count,
  skipped: count.describe('Malformed, or erased before.'),
  passing: count.describe('Left out because the address may exist.'),
})

export const emailLint = versioned({
  ok: z.boolean().describe('No finding is an error.'),
  mails: list(
    z.strictObject({
      name: text,
      subject: text,
      htmlBytes: count,
      textBytes: count,
      errors: count,
      warnings: count,
    }),
  ),
  findings: list(
    z.strictObject({
      id: text.describe('Stable; platformctl env explain ID says what it means.'),
      severity: z.enum(['error', 'warning', 'notice']),
      services: list(text),
      group: text,
      present: list(text),
      missing: list(text),
      cause: text,
      fix: text,
      location: z.strictObject({ file: text, line: count, column: count }).optional(),
      excerpt: text.optional(),
    }),
  ),
})
