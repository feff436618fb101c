import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Context } from '../context.ts'

/** The exit codes of a shell for a command that does not exist, and for one that is not executable. */
const NOT_FOUND = 127
const NOT_RUNNABLE = 126

/**
 * Runs a command on this process's own streams, and gives its exit code as a shell would: 128 and the signal's number
 * for one that a signal ended. Signals that this process gets go to the command, and after its end to `interrupted`.
 */
export function runWrapped(
  context: Context,
  [file = '', ...args]: readonly string[],
): Promise<{ readonly exitCode: number; readonly interrupted: AbortSignal }> {
  const interrupt = new AbortController()
  const interrupted = interrupt.signal
  if (context.signal.aborted)
    return Promise.resolve({ exitCode: 128 + constants.signals.SIGTERM, interrupted })
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      stdio: 'inherit',
      cwd: context.cwd,
      // Node takes an environment whose values may be undefined.
      env: context.env as NodeJS.ProcessEnv,
    })
    context.takeSignals?.((signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return interrupt.abort()
      // Ctrl-C already reaches the command through the terminal. Many programs take a second signal as "quit at once".
      const fromTerminal = (signal === 'SIGINT' || signal === 'SIGQUIT') && process.stdin.isTTY
      if (!fromTerminal) child.kill(signal)
    })
    child.once('error', (error: NodeJS.ErrnoException) => {
      const missing = error.code === 'ENOENT'
      context.stderr.write(
        `platformctl: the command could not be started: ${missing ? 'there is no such program' : (error.code ?? 'unknown fault')}\n`,
      )
      resolve({ exitCode: missing ? NOT_FOUND : NOT_RUNNABLE, interrupted })
    })
    child.once('exit', (code, signal) =>
      resolve({ exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]), interrupted }),
    )
  })
}
