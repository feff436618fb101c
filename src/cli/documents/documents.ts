import * as z from 'zod'
import { AUDIT_ACTIONS } from '../../core/audit.ts'
import { FEEDBACK_KINDS, SUPPRESSION_CAUSES } from '../../core/mail/feedback/event.ts'
import { STREAMS } from '../../core/mail/holds.ts'
import { courseDocuments } from './course.ts'
import { environmentDocuments, findingOf } from './environment.ts'
import {
  count,
  countsByName,
  courseCounts,
  list,
  listOf,
  members,
  milliseconds,
  optional,
  pause,
  text,
  time,
  versioned,
} from './parts.ts'

const kind = z.enum(['sqlite', 'postgres'])

const verified = z.strictObject({
  ok: z.boolean(),
  damaged: z.boolean().describe('The file itself is unsound.'),
  checked: count.describe('Subscriptions looked at.'),
  faults: list(text).describe('At most 100.'),
  moreFaults: count,
})

const backup = z.strictObject({ file: text, bytes: count, version: count, counts: countsByName })

const replayed = z
  .strictObject(
    members(count, 'unsubscribed', 'undone', 'erased', 'suppressed', 'released', 'paused', 'resumed'),
  )
  .describe('What happened after the backup, and was done again.')

const restored = z.strictObject({
  version: count,
  counts: countsByName,
  faults: list(text).describe('Rows that break a promise of the course; restored as they were.'),
  replayed,
  uncoveredSince: optional(
    milliseconds,
    'With --without-journal: changes since then are lost, but for those in `replayed`.',
  ),
  coveredTo: optional(
    milliseconds,
    'The last change in the journal, where the replaced store cannot be read; later ones are lost.',
  ),
  repeats: optional(
    count,
    'Lessons sent after the backup that will be sent again; missing if they cannot be counted.',
  ),
  taken: count.describe('Lessons recorded as sent from --sent-from.'),
  kept: text.optional().describe('Where the replaced file is now.'),
})

const storeDocuments = {
  'db status': versioned({
    store: z.strictObject({
      kind,
      location: text,
      version: count.describe('Of the schema.'),
      latest: count.describe('The schema that this build brings.'),
      readable: z.boolean().describe('This build can run on it.'),
      bytes: count,
      walBytes: count.optional(),
      counts: countsByName,
      verifiedAt: milliseconds.optional(),
    }),
    analytics: z
      .strictObject({
        table: text.optional(),
        location: text,
        ...members(count, 'batches', 'events'),
        bytes: count.optional(),
      })
      .optional(),
  }),
  'db migrate': z.union([
    versioned({ result: z.strictObject({ from: count, to: count }) }),
    versioned({ steps: listOf({ version: count, statements: list(text) }) }).describe('With --plan.'),
  ]),
  'db backup': versioned({ result: backup, analytics: backup.optional() }),
  'db restore': versioned({ result: restored, analytics: restored.optional() }),
  'db after-restore': versioned({
    result: z.strictObject({
      replayed,
      restoredTo: milliseconds.describe('The last change that the restored database had.'),
      coveredTo: optional(milliseconds, 'Up to when no change is lost; missing with --without-journal.'),
      repeats: optional(count, 'Lessons that will be sent again; missing without --from.'),
    }),
  }),
  'db journal': versioned({ file: text, entries: count }),
  'db verify': versioned({ result: verified, analytics: verified.optional() }),
  'db copy': z.union([
    versioned({ counts: countsByName, verified }),
    versioned({
      same: z.boolean(),
      differences: listOf({
        table: text,
        from: count.describe('Rows here.'),
        to: count.describe('Rows there.'),
      }),
    }).describe('With --verify, or with --resume where the other store holds rows.'),
  ]),
  'db audit': versioned({
    entries: listOf({
      id: text,
      at: time,
      action: z.enum(AUDIT_ACTIONS),
      ...members(text, 'who', 'place'),
      subject: optional(text, 'The id of a subscription or an incident, or the keyed hash of an address.'),
      details: text.optional(),
    }),
  }),
} as const

const messageKind = text.describe('opened, acknowledged, closed, or reminder-1 and so on.')
const channel = text.describe('webhook, escalation or mail.')
const message = z.strictObject({ kind: messageKind, channel })

const stream = z.enum(STREAMS)
const held = listOf({ stream, ...pause.shape })
const storePlace = { kind: text, location: text }

const daemon = z.strictObject({
  version: z.literal(1),
  pid: count,
  host: text,
  startedAt: time,
  stoppedAt: time.optional(),
  build: text.nullable(),
  platform: z
    .strictObject({
      name: text,
      definition: text.nullable().describe('Its file; null: the default platform.'),
      fingerprint: text.nullable(),
    })
    .optional(),
  store: z.strictObject({ kind, location: text }),
  envFiles: list(text),
  schedule: z.boolean(),
  urls: z.record(z.string(), text.optional()),
})

const serviceState = z.enum(['ok', 'degraded', 'failing', 'unreached', 'stopped'])

const deployed = <State extends string>(states: readonly [State, ...State[]]) =>
  versioned({ files: listOf({ file: text.describe('Absolute.'), state: z.enum(states) }) })

/**
 * The form of each document that a command prints with `--format json`: the compiler holds the commands to it. Reports of preflight
 * and env check, and health, have schemas of their own, which name services and groups.
 */
export const DOCUMENTS = {
  ...courseDocuments,
  ...storeDocuments,
  ...environmentDocuments,
  'alert list': versioned({
    channels: list(text),
    silence: z.strictObject({ from: milliseconds, until: milliseconds, reason: text, by: text }).optional(),
    pause: pause.optional().describe('Of the alerts themselves.'),
    incidents: listOf({
      id: text,
      cause: text.describe('The name of the failing probe.'),
      service: text,
      reason: text.optional(),
      affected: list(text),
      ...members(milliseconds, 'openedAt', 'seenAt'),
      ...members(milliseconds.optional(), 'closedAt', 'acknowledgedAt'),
      acknowledgedBy: text.optional(),
      resolvedBy: text.optional().describe('Who closed it with alert resolve.'),
      resolvedReason: text.optional(),
      messages: listOf({
        incident: text,
        kind: messageKind,
        channel,
        outcome: z.enum(['pending', 'sent', 'failed']),
        attempts: count,
        at: milliseconds,
        reason: text.optional().describe('Why the last attempt that failed did.'),
      }),
      due: list(message),
      held: list(message).describe('Held back by a silence or a pause.'),
      escalatesAt: milliseconds.optional(),
    }),
  }),
  'analytics summary': versioned({
    from: z.iso.date(),
    to: z.iso.date(),
    total: count,
    kinds: listOf({ kind: text, count }).describe('The most frequent first.'),
    days: listOf({ day: z.iso.date(), count, kinds: countsByName }),
    stored: z.strictObject({ batches: count, events: count, bytes: count.optional() }),
  }),
  'billing smoke': versioned({
    ok: z.boolean(),
    mode: z.enum(['test', 'live', 'unknown']),
    checks: listOf({
      name: text,
      state: z.enum(['passed', 'failed', 'unreached', 'skipped']),
      finding: text,
    }),
  }),
  status: versioned({
    daemon: daemon.extend({
      running: z.boolean(),
      others: list(daemon).optional().describe('They run with the same folder.'),
    }),
    state: serviceState.describe('As health --deep judges: the worst of the services.'),
    services: listOf({
      service: text,
      url: text,
      state: serviceState,
      reason: text.optional(),
    }),
    store: z.union([
      z.strictObject({
        ...storePlace,
        ...members(count, 'version', 'latest'),
        backupAt: milliseconds.optional(),
        lastHour: text.optional(),
        counts: courseCounts,
        paused: held.describe('The streams of mail that are paused.'),
        lastMail: z.strictObject({
          sentAt: milliseconds.optional().describe('To the minute, within two days.'),
          refused: pause.optional().describe('The newest that was refused for good.'),
          failed: pause.optional().describe('The newest that is tried again.'),
        }),
        open: listOf({ ...members(text, 'id', 'cause'), openedAt: milliseconds, reason: text.optional() }),
      }),
      z.strictObject({ ...storePlace, fault: text.describe('Why it could not be read.') }),
    ]),
    alerts: list(text).describe('The channels that are set, by variable.'),
  }),
  'email list': versioned({
    mails: listOf({
      name: text,
      subject: text.describe('With the sample values of its slots.'),
      slots: z.record(z.string(), z.strictObject({ type: z.enum(['text', 'url']), sample: text })),
    }),
  }),
  'email feedback': versioned({
    ...members(text, 'outcome', 'reason'),
    recorded: count,
    repeated: count.describe('Recorded before.'),
    unmatched: count.describe('Reports without proof that we sent the message.'),
  }),
  'email feedback status': versioned({
    paused: pause.optional(),
    counts: listOf({
      day: z.iso.date(),
      kind: z.enum([...FEEDBACK_KINDS, 'sent']),
      ...members(text, 'source', 'domain'),
      count,
    }),
  }),
  'email suppressions list': versioned({
    suppressions: listOf({
      address: text,
      at: time,
      cause: z.enum(SUPPRESSION_CAUSES),
      source: text.describe('A provider, pipe, import or operator.'),
      reason: text,
    }),
  }),
  'email suppressions add': versioned({ outcome: z.enum(['added', 'known', 'erased']) }),
  'email suppressions remove': versioned({ outcome: z.literal('removed') }),
  'email suppressions import': versioned({
    ...members(count, 'added', 'known'),
    skipped: count.describe('Malformed, or erased before.'),
    passing: count.describe('Left out because the address may exist.'),
  }),
  'email lint': versioned({
    ok: z.boolean().describe('No finding is an error.'),
    mails: listOf({
      ...members(text, 'name', 'subject'),
      ...members(count, 'htmlBytes', 'textBytes', 'errors', 'warnings'),
    }),
    findings: list(findingOf(text)),
  }),
  'mail pause': versioned({ paused: held }),
  'mail resume': versioned({ resumed: held }),
  'mail queue': versioned({
    streams: listOf({
      stream,
      due: count.describe('To be sent now.'),
      held: count.describe('Of those due, what a pause holds back; of alerts, also a silence.'),
      waiting: count.describe('An attempt failed, and the next one has its time.'),
      failed: count.describe('Given up, or waiting for a decision.'),
      oldestAt: milliseconds.optional().describe('When the oldest of them became due.'),
      nextAt: milliseconds.optional().describe('The next attempt after now.'),
      paused: pause.optional(),
    }),
  }),
  'deploy check': deployed(['same', 'differs', 'missing']),
  'deploy init': deployed(['same', 'differs', 'written']),
} as const satisfies Readonly<Record<string, z.ZodType>>

export type DocumentedCommand = keyof typeof DOCUMENTS

export type DocumentOf<Command extends DocumentedCommand> = Frozen<z.input<(typeof DOCUMENTS)[Command]>>

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T
