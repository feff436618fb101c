import type { Command } from 'commander'
import type { Context } from './context.ts'
import type { ExitCode } from './exit.ts'

/** Describes a command and says what it does; `whole` gives the program with every command described. */
export type Configure = (
  command: Command,
  context: Context,
  settle: (code: ExitCode) => void,
  whole: () => Promise<Command>,
) => void
