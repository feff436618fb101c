import * as z from 'zod'
import { DIALECTS } from '../../core/env/dialects/read.ts'
import { list, text, versioned } from './parts.ts'

const groupState = z.enum(['absent', 'configured', 'half-configured'])

export const envList = versioned({
  groups: list(
    z.strictObject({
      name: text,
      state: groupState,
      variables: list(
        z.strictObject({
          name: text,
          set: z.boolean(),
          malformed: z.boolean().describe('It is set, and behaves as absent.'),
          services: list(text),
          summary: text,
        }),
      ),
    }),
  ),
})

export const envDiff = versioned({
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

export const envDialects = versioned({
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
