import * as z from 'zod'
import { DIALECTS } from '../../core/env/dialects/read.ts'
import { FEEDBACK_KINDS } from '../../core/mail/feedback/event.ts'
import { SUPPRESSION_CAUSES } from '../../core/mail/feedback/mailbox.ts'
import { STREAMS } from '../../core/mail/holds.ts'
import { SOURCES } from '../../daemon/routes/configuration.ts'
import * as course from './course.ts'
import {
  count,
  countsByName,
  courseCounts,
  list,
  milliseconds,
  pause,
  text,
  time,
  versioned,
} from './parts.ts'
import { findingOf } from './report.ts'
import * as store from './store.ts'

const messageKind = text.describe('opened, acknowledged, closed, or reminder-1 and so on.')
const channel = text.describe('webhook, escalation or mail.')
const message = z.strictObject({ kind: messageKind, channel })

const alertList = versioned({
  channels: list(text),
  silence: z.strictObject({ from: milliseconds, until: milliseconds, reason: text, by: text }).optional(),
  pause: pause.optional().describe('Of the alerts themselves.'),
  incidents: list(
    z.strictObject({
      id: text,
      cause: text.describe('The name of the failing probe.'),
      service: text,
      reason: text.optional(),
      affected: list(text),
      openedAt: milliseconds,
      seenAt: milliseconds,
      closedAt: milliseconds.optional(),
      acknowledgedAt: milliseconds.optional(),
      acknowledgedBy: text.optional(),
      resolvedBy: text.optional().describe('Who closed it with alert resolve.'),
      resolvedReason: text.optional(),
      messages: list(
        z.strictObject({
          incident: text,
          kind: messageKind,
          channel,
          outcome: z.enum(['pending', 'sent', 'failed']),
          attempts: count,
          at: milliseconds,
          reason: text.optional(),
        }),
      ),
      due: list(message),
      held: list(message).describe('Held back by a silence or a pause.'),
      escalatesAt: milliseconds.optional(),
    }),
  ),
})

const analyticsSummary = versioned({
  from: z.iso.date(),
  to: z.iso.date(),
  total: count,
  kinds: list(z.strictObject({ kind: text, count })).describe('The most frequent first.'),
  days: list(z.strictObject({ day: z.iso.date(), count, kinds: countsByName })),
  stored: z.strictObject({ batches: count, events: count, bytes: count.optional() }),
})

const billingSmoke = versioned({
  ok: z.boolean(),
  mode: z.enum(['test', 'live', 'unknown']),
  checks: list(
    z.strictObject({
      name: text,
      state: z.enum(['passed', 'failed', 'unreached', 'skipped']),
      finding: text,
    }),
  ),
})

const stream = z.enum(STREAMS)
const held = list(z.strictObject({ stream, ...pause.shape }))
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
  store: z.strictObject({ kind: z.enum(['sqlite', 'postgres']), location: text }),
  envFiles: list(text),
  schedule: z.boolean(),
  urls: z.record(z.string(), text.optional()),
})

const status = versioned({
  daemon: daemon.extend({
    running: z.boolean(),
    others: list(daemon).optional().describe('They run with the same folder.'),
  }),
  state: z
    .enum(['ok', 'degraded', 'failing', 'unreached', 'stopped'])
    .describe('As health --deep judges: the worst of the services.'),
  services: list(
    z.strictObject({
      service: text,
      url: text,
      state: z.enum(['ok', 'degraded', 'failing', 'unreached', 'stopped']),
      reason: text.optional(),
    }),
  ),
  store: z.union([
    z.strictObject({
      ...storePlace,
      version: count,
      latest: count,
      backupAt: milliseconds.optional(),
      lastHour: text.optional(),
      counts: courseCounts,
      paused: held.describe('The streams of mail that are paused.'),
      lastMail: z.strictObject({
        sentAt: milliseconds.optional().describe('To the minute, within two days.'),
        refused: pause.optional().describe('The newest that was refused for good.'),
        failed: pause.optional().describe('The newest that is tried again.'),
      }),
    }),
    z.strictObject({ ...storePlace, fault: text.describe('Why it could not be read.') }),
  ]),
  alerts: list(text).describe('The channels that are set, by variable.'),
})

const emailList = versioned({
  mails: list(
    z.strictObject({
      name: text,
      subject: text.describe('With the sample values of its slots.'),
      slots: z.record(z.string(), z.strictObject({ type: z.enum(['text', 'url']), sample: text })),
    }),
  ),
})

const feedback = versioned({
  outcome: text,
  reason: text,
  recorded: count,
  repeated: count.describe('Recorded before.'),
  unmatched: count.describe('Reports without proof that we sent the message.'),
})

const feedbackStatus = versioned({
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

const suppressionsList = versioned({
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
const suppressionsAdd = versioned({ outcome: z.enum(['added', 'known', 'erased']) })
const suppressionsRemove = versioned({ outcome: z.literal('removed') })
const suppressionsImport = versioned({
  added: count,
  known: count,
  skipped: count.describe('Malformed, or erased before.'),
  passing: count.describe('Left out because the address may exist.'),
})

const emailLint = versioned({
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
  findings: list(findingOf(text)),
})

const mailPause = versioned({ paused: held })
const mailResume = versioned({ resumed: held })
const mailQueue = versioned({
  streams: list(
    z.strictObject({
      stream,
      due: count.describe('To be sent now.'),
      held: count.describe('Of those due, what a pause holds back; of alerts, also a silence.'),
      waiting: count.describe('An attempt failed, and the next one has its time.'),
      failed: count.describe('Given up, or waiting for a decision.'),
      oldestAt: milliseconds.optional().describe('When the oldest of them became due.'),
      nextAt: milliseconds.optional().describe('The next attempt after now.'),
      paused: pause.optional(),
    }),
  ),
})

const groupState = z.enum(['absent', 'configured', 'half-configured'])

const envList = versioned({
  groups: list(
    z.strictObject({
      name: text,
      state: groupState,
      variables: list(
        z.strictObject({
          name: text,
          set: z.boolean(),
          malformed: z.boolean().describe('It is set, and behaves as absent.'),
          missing: z
            .boolean()
            .describe('It is not set, and it, or another that sets its group, is required.'),
          services: list(text),
          summary: text,
        }),
      ),
    }),
  ),
})

const deployed = <State extends string>(states: readonly [State, ...State[]]) =>
  versioned({ files: list(z.strictObject({ file: text.describe('Absolute.'), state: z.enum(states) })) })

const envDiff = versioned({
  same: z.boolean(),
  groups: list(
    z.strictObject({ name: text, first: groupState.optional(), second: groupState.optional() }),
  ).describe('Groups whose state differs.'),
  variables: list(
    z.strictObject({
      name: text,
      state: z.enum(['only in the first', 'only in the second', 'different values']),
      known: z.boolean().describe('The platform has a variable of this name.'),
    }),
  ),
})

const envDialects = versioned({
  refusing: list(z.enum(DIALECTS)).describe('Readers that refuse the whole file.'),
  names: list(
    z.strictObject({
      name: text,
      readers: z
        .partialRecord(z.enum(DIALECTS), z.enum(['A', 'B', 'C', 'D', 'E', 'F', '–', 'refused']))
        .describe('The same letter is the same value; a dash is no value.'),
    }),
  ),
})

const envVerify = versioned({
  same: z.boolean().describe('Every replica answered, and runs what the files say.'),
  replicas: list(
    z.strictObject({
      service: text,
      url: text,
      state: z.enum(['same', 'differs', 'unreached']),
      reason: text.optional().describe('Why it was not reached.'),
      startedAt: time.optional(),
      build: text.nullable().optional(),
      definition: z.enum(['same', 'differs', 'lessons differ', 'not compared']).optional(),
      older: z
        .literal(true)
        .optional()
        .describe('Files of this folder’s definition were written after the start.'),
      changedFiles: list(text)
        .optional()
        .describe('Env files and files of secrets that changed after the start of the service.'),
      variables: list(
        z.strictObject({
          name: text,
          state: z.enum(['same', 'differs', 'missing', 'extra']),
          source: z.enum(SOURCES).describe('Where the service has it from.'),
          perReplica: z.boolean().describe('A difference never fails the command.'),
        }),
      ).optional(),
    }),
  ),
  disagreements: list(text).describe('Variables on which replicas of one service disagree.'),
  notCompared: count.describe('Names of the files that the platform does not have.'),
})

/**
 * The form of each document that a command prints with `--format json`, by command. The compiler holds the commands to
 * it through `printJson`, and docs/reference/schemas is made from it. The reports of
 * preflight and env check, and health, have schemas of their own, which name the platform's services and groups.
 */
export const DOCUMENTS = {
  'alert list': alertList,
  'analytics summary': analyticsSummary,
  'billing smoke': billingSmoke,
  'course set': course.courseSet,
  'course export': course.courseExport,
  'course import': course.courseImport,
  'course cancel': course.courseCancel,
  'course enrol': course.courseEnrol,
  'course erase': course.courseErase,
  'course list': course.courseList,
  'course resend-confirmation': course.courseResendConfirmation,
  'course resolve': course.courseResolve,
  'course resume': course.courseResume,
  'course show': course.courseShow,
  'course status': course.courseStatus,
  'db after-restore': store.dbAfterRestore,
  'db audit': store.dbAudit,
  'db backup': store.dbBackup,
  'db copy': store.dbCopy,
  'db migrate': store.dbMigrate,
  'db journal': store.dbJournal,
  'db restore': store.dbRestore,
  'db status': store.dbStatus,
  'db verify': store.dbVerify,
  'deploy check': deployed(['same', 'differs', 'missing']),
  'deploy init': deployed(['same', 'differs', 'written']),
  dispatch: course.dispatch,
  'email feedback': feedback,
  'email feedback status': feedbackStatus,
  'email lint': emailLint,
  'email list': emailList,
  'email suppressions add': suppressionsAdd,
  'email suppressions import': suppressionsImport,
  'email suppressions list': suppressionsList,
  'email suppressions remove': suppressionsRemove,
  'env dialects': envDialects,
  'env diff': envDiff,
  'env list': envList,
  'env verify': envVerify,
  'mail pause': mailPause,
  'mail queue': mailQueue,
  'mail resume': mailResume,
  status: status,
} as const satisfies Readonly<Record<string, z.ZodType>>

export type DocumentedCommand = keyof typeof DOCUMENTS

/** The JSON document that a command prints. */
export type DocumentOf<Command extends DocumentedCommand> = Frozen<z.input<(typeof DOCUMENTS)[Command]>>

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T
