import { existsSync } from 'node:fs'
import path from 'node:path'
import { DefinitionError } from './definition-error.ts'

/** The names under which a definition is found, in the order in which documents list them. */
export const DEFINITION_FILES = [
  'platform.config.ts',
  'platform.config.mts',
  'platform.config.js',
  'platform.config.mjs',
  'platform.config.json',
] as const

/** The name of the one definition in a folder; undefined when there is none, a DefinitionError when there are two. */
export function findDefinition(folder: string): string | undefined {
  const [found, second] = DEFINITION_FILES.filter((name) => existsSync(path.join(folder, name)))
  if (found !== undefined && second !== undefined)
    throw new DefinitionError(found, [
      {
        path: '',
        cause: `There is a ${second} beside it, and only one of them can be the definition.`,
        fix: 'Remove one of the two, or name one with --config.',
      },
    ])
  return found
}
