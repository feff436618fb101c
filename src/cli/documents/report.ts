import * as z from 'zod'
import type { Contract } from '../../core/env/contract.ts'
import { LIVE_CHECKS, LIVE_STATES, liveTargetNames } from '../../core/live/live.ts'
import { count, list } from './parts.ts'

const text = z.string().min(1)
const set = <Item extends z.ZodType>(item: Item) => list(item).meta({ uniqueItems: true })
const line = count.min(1)

/** A finding of any report, with the form of the names in it. */
export const findingOf = (services: z.ZodType<string>) =>
  z.strictObject({
    id: text.regex(/^[a-z][a-z0-9-]*$/).describe('Stable; platformctl env explain ID says what it means.'),
    severity: z.enum(['error', 'warning', 'notice']),
    services: set(services),
    group: text.describe('The group of variables concerned, `file`, or the target of a live check.'),
    present: set(text).describe('Variables that are set and concerned.'),
    missing: set(text).describe('Variables that are not set and would be needed.'),
    cause: text.describe('One sentence: what is wrong.'),
    fix: text.describe('One sentence: what to do about it.'),
    location: z.strictObject({ file: text, line, column: line }).optional(),
    excerpt: z.string().optional().describe('The line at `location` with every value masked.'),
  })

/** The JSON Schema (2020-12) of a document. */
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
      name: text,
      definition: z.string().nullable().describe('Its file; null: the default platform.'),
      fingerprint: z.string().nullable(),
    }),
    ok: z.boolean().describe('No finding is an error.'),
    services: set(service),
    groups: list(
      z.strictObject({
        name: z.enum(groups.map(({ name }) => name)),
        state: z.enum(['absent', 'configured', 'half-configured']),
        present: set(text),
        meaning: text.describe('What the group unlocks, or what its absence means.'),
      }),
    ),
    findings: list(findingOf(service)).describe('Errors first, then warnings, then notices.'),
    live: list(
      z.strictObject({
        target: z.enum(liveTargetNames(services)),
        check: z.enum(LIVE_CHECKS),
        state: z.enum(LIVE_STATES).describe('skipped: not tried, and `detail` says why.'),
        detail: text.describe('A predicate, such as "does not resolve".'),
        services: set(service),
        variables: set(text),
        id: text.optional().describe('The id of the finding that it gave rise to.'),
        latencyMs: z.number().min(0).optional(),
      }),
    )
      .optional()
      .describe('With --deep: every live check, also those skipped.'),
  })
  return jsonSchemaOf(
    'Report of platformctl preflight and platformctl env check',
    report.describe('It never contains a variable’s value, part of it, or its length.'),
  )
}
