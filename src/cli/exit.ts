import { codeOf } from '../core/error-code.ts'

/** Exit codes (CONTRACT §7). */
export const EXIT = {
  /** Passed: warnings and degraded allowed. */
  passed: 0,
  /** A check failed (with `--strict` also warnings and degraded). */
  failed: 1,
  /** Wrong usage or unreadable input. */
  usage: 2,
  /** Could not reach, or was refused by, the remote side. */
  remote: 3,
  internal: 70,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** A sentence for the operator that names the fix, and the exit code: printed without a stack trace. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.exitCode = exitCode
  }
}

export const wrongUsage = (message: string, options?: { cause?: unknown }): CommandError =>
  new CommandError(EXIT.usage, message, options)

export const failure = (message: string, options?: { cause?: unknown }): CommandError =>
  new CommandError(EXIT.failed, message, options)

const WRITE_REFUSALS: Readonly<Record<string, string>> = {
  EEXIST: 'something else has this name. Move it away',
  ENOTDIR: 'something else has this name. Move it away',
  EACCES: 'permission denied. Check who owns the folder',
  EPERM: 'permission denied. Check who owns the folder',
  EROFS: 'the disk is read-only. Choose another folder',
  ENOSPC: 'the disk is full. Free some space',
}

/** Why a file cannot be written, and what to do before the next try. */
export function writeRefusal(error: unknown): string {
  const code = codeOf(error)
  return WRITE_REFUSALS[code] ?? `the system says ${code || 'no more'}. Check the folder`
}

/** Error text for a mail that does not compile, with the file's path relative to the working directory. */
export function templateFaultText(cwd: string, { message }: Error): string {
  const inside = message.startsWith(cwd) && /^[\\/]/.test(message.slice(cwd.length))
  return `a mail does not compile: ${inside ? message.slice(cwd.length + 1) : message}.`
}
