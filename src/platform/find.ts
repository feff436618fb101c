import { existsSync, lstatSync, realpathSync, type Stats } from 'node:fs'
import path from 'node:path'
import { attempt } from '../core/is-record.ts'
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
  const [found, second] = DEFINITION_FILES.filter((name) => isThere(path.join(folder, name)))
  if (found !== undefined && !existsSync(path.join(folder, found)))
    refuse(found, 'This is a link to a file that is not there.', 'Correct the link, or remove it.')
  if (found !== undefined && second !== undefined)
    refuse(
      found,
      `There is a ${second} beside it, and only one of them can be the definition.`,
      'Remove one of the two, or name one with --config.',
    )
  return found
}

/** A link that leads nowhere is there too, or the default platform would run in place of the one that is meant. */
const isThere = (file: string) => attempt(() => lstatSync(file)) !== undefined

export function refuse(file: string, cause: string, fix: string): never {
  throw new DefinitionError(file, [{ path: '', cause, fix }])
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

/** Ids of the account that runs this process; undefined on Windows, which has no owner or mode to look at. */
type Account = NonNullable<ReturnType<typeof thisAccount>>

/** Refuses a definition that was found, not named, if others than root and this account could have written it. */
export function refuseForeignDefinition(folder: string, file: string, account = thisAccount()): void {
  const cause = controlledByOthers(path.join(folder, file), account)
  if (cause !== undefined)
    refuse(
      file,
      `${cause}, and loading it would run their code.`,
      'Correct owner and mode, name the file with --config if you trust it, or ignore it with --no-config.',
    )
}

/** Why somebody other than root and this account controls the file at an absolute path; undefined if nobody does. */
export function controlledByOthers(file: string, account = thisAccount()): string | undefined {
  return account && (foreign(file, account) ?? foreign(realpathSync.native(file), account))
}

function thisAccount() {
  const user = process.geteuid?.()
  const group = process.getegid?.()
  return user === undefined || group === undefined ? undefined : { user, group }
}

function foreign(file: string, account: Account): string | undefined {
  const found = lstatSync(file)
  if (!isOurs(found, account)) return 'The file belongs to another user'
  // A link has no mode of its own: the file that it leads to is checked next.
  if (!found.isSymbolicLink() && othersWrite(found, account)) return 'Other users may write to the file'
  for (let above = path.dirname(file); ; above = path.dirname(above)) {
    const stats = lstatSync(realpathSync.native(above))
    if (!isOurs(stats, account)) return `The folder ${above} belongs to another user`
    // In a folder with the sticky bit, only a file's owner can rename it.
    if (othersWrite(stats, account) && (stats.mode & 0o1000) === 0)
      return `Other users may replace files in ${above}`
    if (above === path.dirname(above)) return undefined
  }
}

const isOurs = ({ uid }: Stats, { user }: Account) => uid === user || uid === 0

/** Writing by this account's own group is usual where each user has one. */
function othersWrite({ mode, gid }: Stats, { group }: Account): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== group)
}
