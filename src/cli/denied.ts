import { accessSync, constants } from 'node:fs'
import { codeOf } from '../core/error-code.ts'
import { CommandError, EXIT } from './exit.ts'

/** Ends the command if this user may not read a file. A file that is not there is the caller's to report. */
export function assertNotDenied(file: string): void {
  try {
    accessSync(file, constants.R_OK)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return
    throw new CommandError(
      EXIT.usage,
      `${file} cannot be opened (${code}): check who owns it, and run this as the daemon’s user.`,
    )
  }
}
