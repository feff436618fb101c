import type { DispatchOptions, Source } from '../commands/dispatch.ts'
import type { Context } from '../context.ts'
import { EXIT, type ExitCode } from '../exit.ts'

/** Shows what a call would send, in the order in which it would, without claiming anything. */
export async function dryRun(context: Context, source: Source, options: DispatchOptions): Promise<ExitCode> {
  const due = (await source.due?.(options.limit ?? 100)) ?? []
  if (options.format === 'json') {
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, due }))
    return EXIT.passed
  }
  for (const { id, day, nextAttemptAt } of due) {
    context.stdout.write(`day ${day} of ${id}, due since ${new Date(nextAttemptAt ?? 0).toISOString()}\n`)
  }
  context.stdout.write(due.length === 0 ? 'nothing is due\n' : `${due.length} due; nothing was sent\n`)
  return EXIT.passed
}
