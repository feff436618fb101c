import * as z from 'zod'
import type { Contract } from '../../core/env/contract.ts'
import { DIALECTS } from '../../core/env/dialects/dialect.ts'
import { LIVE_CHECKS, LIVE_STATES } from '../../core/live/live.ts'
import { SOURCES } from '../../daemon/routes/configuration.ts'
import { count, list, listOf, members, optional, text, time, versioned } from './parts.ts'

const words = text.min(1)

const set = <Item extends z.ZodType>(item: Item) => list(item).meta({ uniqueItems: true })
const groupState = z.enum(['absent', 'configured', 'half-configured'])
const line = count.min(1)

/** A finding of any report, with the form of the names in it. */
export const findingOf = (services: z.ZodType<string>) =>
  z.strictObject({
    id: words.regex(/^[a-z][a-z0-9-]*$/).describe('Stable; platformctl env explain ID says what it means.'),
    severity: z.enum(['error', 'warning', 'notice']),
    services: set(services),
    group: words.describe('The group of variables concerned, `file`, or the target of a live check.'),
    present: set(words).describe('Variables that are set and concerned.'),
    missing: set(words).describe('Variables that are not set and would be needed.'),
    cause: words.describe('One sentence: what is wrong.'),
    fix: words.describe('One sentence: what to do about it.'),
    location: z.strictObject({ file: words, line, column: line }).optional(),
    excerpt: z.string().optional().describe('The line at `location` with every value masked.'),
  })

export const jsonSchemaOf = (title: string, document: z.ZodType) => ({
  title,
  ...z.toJSONSchema(document, {
    target: 'draft-2020-12',
    io: 'output',
    // Every whole number of zod ends at the largest that JavaScript can hold; that is no promise of ours.
    override: ({ jsonSchema }) => {
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  }),
})

/** The document that `preflight --format json` and `env check --format json` write, with the names of a platform. */
export function reportSchema({ services, groups }: Contract) {
  const service = z.enum(services)
  const report = z.strictObject({
    version: z.literal(1),
    platform: z.strictObject({
      name: words,
      definition: z.string().nullable().describe('Its file; null: the default platform.'),
      fingerprint: z.string().nullable(),
    }),
    ok: z.boolean().describe('No finding is an error.'),
    services: set(service),
    groups: listOf({
      name: z.enum(groups.map(({ name }) => name)),
      state: groupState,
      present: set(words),
      meaning: words.describe('What the group unlocks, or what its absence means.'),
    }),
    findings: list(findingOf(service)).describe('Errors first, then warnings, then notices.'),
    live: listOf({
      target: words.describe('A group, a service, a probe, or `sender`, the domain that mail comes from.'),
      check: z.enum(LIVE_CHECKS),
      state: z.enum(LIVE_STATES).describe('skipped: not tried, and `detail` says why.'),
      detail: words.describe('A predicate, such as "does not resolve".'),
      services: set(service),
      variables: set(words),
      id: words.optional().describe('The id of the finding that it gave rise to.'),
      latencyMs: z.number().min(0).optional(),
    })
      .optional()
      .describe('With --deep: every live check, also those skipped.'),
  })
  return jsonSchemaOf(
    'Report of platformctl preflight and platformctl env check',
    report.describe('It never contains a variable’s value, part of it, or its length.'),
  )
}

export const environmentDocuments = {
  'env list': versioned({
    groups: listOf({
      name: text,
      state: groupState,
      variables: listOf({
        name: text,
        set: z.boolean(),
        malformed: z.boolean().describe('It is set, and behaves as absent.'),
        missing: z.boolean().describe('It is not set, and it, or another that sets its group, is required.'),
        services: list(text),
        summary: text,
      }),
    }),
  }),
  'env diff': versioned({
    same: z.boolean(),
    groups: listOf({ name: text, first: groupState.optional(), second: groupState.optional() }).describe(
      'Groups whose state differs.',
    ),
    variables: listOf({
      name: text,
      state: z.enum(['only in the first', 'only in the second', 'different values']),
      known: z.boolean().describe('The platform has a variable of this name.'),
    }),
  }),
  'env dialects': versioned({
    refusing: list(z.enum(DIALECTS)).describe('Readers that refuse the whole file.'),
    names: listOf({
      name: text,
      readers: z
        .partialRecord(z.enum(DIALECTS), z.enum(['A', 'B', 'C', 'D', 'E', 'F', '–', 'refused']))
        .describe('The same letter is the same value; a dash is no value.'),
    }),
  }),
  'env verify': versioned({
    same: z.boolean().describe('Every replica answered, and runs what the files say.'),
    replicas: listOf({
      ...members(text, 'service', 'url'),
      state: z.enum(['same', 'differs', 'unreached']),
      reason: text.optional().describe('Why it was not reached.'),
      startedAt: time.optional(),
      build: text.nullable().optional(),
      definition: z.enum(['same', 'differs', 'lessons differ', 'not compared']).optional(),
      older: optional(z.literal(true), 'Files of this folder’s definition were written after the start.'),
      changedFiles: optional(
        list(text),
        'Env files and files of secrets that changed after the start of the service.',
      ),
      variables: listOf({
        name: text,
        state: z.enum(['same', 'differs', 'missing', 'extra']),
        source: z.enum(SOURCES).describe('Where the service has it from.'),
        perReplica: z.boolean().describe('A difference never fails the command.'),
      }).optional(),
    }),
    disagreements: list(text).describe('Variables on which replicas of one service disagree.'),
    notCompared: count.describe('Names of the files that the platform does not have.'),
  }),
} as const
