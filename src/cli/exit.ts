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

/** Wrong usage, or input that cannot be read. */
export function wrongUsage(message: string, options?: { cause?: unknown }): CommandError {
  return new CommandError(EXIT.usage, message, options)
}

/** Error text for a mail that does not compile, with the file's path relative to the working directory. */
export function templateFaultText(cwd: string, { message }: Error): string {
  const inside = message.startsWith(cwd) && /^[\\/]/.test(message.slice(cwd.length))
  return `a mail does not compile: ${inside ? message.slice(cwd.length + 1) : message}.`
}
