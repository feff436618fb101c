import { lstatSync, realpathSync, type Stats } from 'node:fs'
import path from 'node:path'
import { DefinitionError } from './find.ts'

/** Ids of the account that runs this process; undefined on Windows, which has no owner or mode to look at. */
export interface Account {
  readonly user: number
  readonly group: number
}

/**
 * Throws a DefinitionError if somebody other than root and this account could have written or replaced a definition
 * that was only found, not named: evaluating it would run their code with this account's rights.
 */
export function refuseForeignDefinition(folder: string, file: string, account = thisAccount()): void {
  const cause = controlledByOthers(path.join(folder, file), account)
  if (cause === undefined) return
  throw new DefinitionError(file, [
    {
      path: '',
      cause: `${cause}, and loading it would run their code.`,
      fix: 'Correct owner and mode, name the file with --config if you trust it, or ignore it with --no-config.',
    },
  ])
}

/** Why somebody other than root and this account controls the file at an absolute path; undefined if nobody does. */
export function controlledByOthers(file: string, account = thisAccount()): string | undefined {
  return account && (foreign(file, account) ?? foreign(realpathSync.native(file), account))
}

function thisAccount(): Account | undefined {
  const [user, group] = [process.geteuid?.(), process.getegid?.()]
  return user === undefined || group === undefined ? undefined : { user, group }
}

/** Why others control a file at this absolute path; undefined if they do not. */
function foreign(file: string, account: Account): string | undefined {
  const found = lstatSync(file)
  if (!isOurs(found, account)) return 'The file belongs to another user'
  // A link has no mode of its own: the file that it leads to is checked next.
  if (!found.isSymbolicLink() && othersWrite(found, account)) return 'Other users may write to the file'
  for (let above = path.dirname(file); ; above = path.dirname(above)) {
    const stats = lstatSync(realpathSync.native(above))
    if (!isOurs(stats, account)) return `The folder ${above} belongs to another user`
    // The sticky bit keeps others from renaming what is not theirs.
    if (othersWrite(stats, account) && (stats.mode & 0o1000) === 0)
      return `Other users may replace files in ${above}`
    if (above === path.dirname(above)) return undefined
  }
}

function isOurs({ uid }: Stats, { user }: Account): boolean {
  return uid === user || uid === 0
}

/** Writing by this account's own group is usual where each user has one. */
function othersWrite({ mode, gid }: Stats, { group }: Account): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== group)
}
