import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Fault } from './check/place.ts'

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

/** Thrown for a definition with faults. The message gives each one's place, cause and fix, and no value of the environment. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError'
  // Private, because Node prints the fields of an uncaught error, and the message has said it all.
  readonly #file: string | undefined
  readonly #faults: readonly Fault[]

  constructor(file: string | undefined, faults: readonly Fault[]) {
    super(sentence(file, faults))
    this.#file = file
    this.#faults = faults
  }

  /** The file as it was named; undefined for a value that was passed in code. */
  get file(): string | undefined {
    return this.#file
  }

  get faults(): readonly Fault[] {
    return this.#faults
  }
}

function sentence(file: string | undefined, faults: readonly Fault[]): string {
  const source = file ?? 'the platform definition'
  const lines = faults.map(({ path, cause, fix }) => `${path === '' ? '' : `${path}: `}${cause} ${fix}`)
  if (lines.length === 1) return `${source}: ${lines[0]}`
  return `${source} has ${lines.length} faults.\n${lines.map((line) => `  ${line}`).join('\n')}`
}
