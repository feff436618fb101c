import * as z from 'zod'
import { count, countsByName, list, listOf, milliseconds, text, time, versioned } from './parts.ts'

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
  .strictObject({
    unsubscribed: count,
    undone: count,
    erased: count,
    suppressed: count,
    released: count,
    paused: count,
    resumed: count,
  })
  .describe('What happened after the backup, and was done again.')

const restored = z.strictObject({
  version: count,
  counts: countsByName,
  faults: list(text).describe('Rows that break a promise of the course; restored as they were.'),
  replayed,
  uncoveredSince: milliseconds
    .optional()
    .describe('With --without-journal: changes since then are lost, but for those in `replayed`.'),
  coveredTo: milliseconds
    .optional()
    .describe(
      'The last change in the journal, where the replaced store cannot be read; later ones are lost.',
    ),
  repeats: count
    .optional()
    .describe('Lessons sent after the backup that will be sent again; missing if they cannot be counted.'),
  taken: count.describe('Lessons recorded as sent from --sent-from.'),
  kept: text.optional().describe('Where the replaced file is now.'),
})

export const storeDocuments = {
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
        batches: count,
        events: count,
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
      coveredTo: milliseconds
        .optional()
        .describe('Up to when no change is lost; missing with --without-journal.'),
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
      action: z.enum([
        'erase',
        'resolve',
        'resolve-incident',
        'restore',
        'suppress',
        'unsuppress',
        'pause',
        'resume',
        'enrol',
        'cancel',
        'set',
        'import',
      ]),
      who: text,
      place: text,
      subject: text
        .optional()
        .describe('The id of a subscription or an incident, or the keyed hash of an address.'),
      details: text.optional(),
    }),
  }),
} as const
