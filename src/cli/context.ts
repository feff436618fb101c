import type { Clock } from '../core/clock.ts'
import type { Environment } from '../core/env/settings.ts'
import type { Random } from '../core/random.ts'

/** Where a command writes. `isTTY` and `columns` decide about colour, progress and width. */
export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/**
 * Everything a command may touch of the process, so that commands run in tests with their own streams,
 * environment and clock. Only the asked-for document goes to `stdout`; all else to `stderr` (CONTRACT §7).
 */
export interface Context {
  readonly env: Environment
  readonly cwd: string
  readonly stdin: AsyncIterable<Uint8Array | string>
  readonly stdout: Output
  readonly stderr: Output
  /** May colour be written to standard output / standard error? Already decided from flags, NO_COLOR, CI and the terminal. */
  readonly colour: { readonly stdout: boolean; readonly stderr: boolean }
  readonly clock: Clock
  readonly random: Random
  /** Aborted by Ctrl-C or SIGTERM: finish what is in flight, clean up, return. */
  readonly signal: AbortSignal
}
