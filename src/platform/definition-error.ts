import type { Fault } from './check/fault.ts'

/** Thrown for a definition with faults. The message gives each one's place, cause and fix, and no value of the environment. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError'
  /** The file as it was named; undefined for a value that was passed in code. */
  readonly file: string | undefined
  readonly faults: readonly Fault[]

  constructor(file: string | undefined, faults: readonly Fault[]) {
    super(sentence(file, faults))
    this.file = file
    this.faults = faults
  }
}

function sentence(file: string | undefined, faults: readonly Fault[]): string {
  const source = file ?? 'the platform definition'
  const lines = faults.map(({ path, cause, fix }) => `${path === '' ? '' : `${path}: `}${cause} ${fix}`)
  if (lines.length === 1) return `${source}: ${lines[0]}`
  return `${source} has ${lines.length} faults.\n${lines.map((line) => `  ${line}`).join('\n')}`
}
