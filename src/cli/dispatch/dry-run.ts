import type { Context } from '../context.ts'
import type { ExitCode } from '../exit.ts'
import { printJson, printText } from '../print.ts'
import type { DispatchOptions, Source } from './source.ts'

/** Shows what a call would send, in the order in which it would, without claiming anything. */
export async function dryRun(context: Context, source: Source, options: DispatchOptions): Promise<ExitCode> {
  const due = (await source.due?.(options.limit ?? 100)) ?? []
  if (options.format === 'json') return printJson(context, 'dispatch', { due })
  for (const { id, day, nextAttemptAt } of due) {
    context.stdout.write(`day ${day} of ${id}, due since ${new Date(nextAttemptAt ?? 0).toISOString()}\n`)
  }
  const all = Math.max(due.length, (await source.remaining?.()) ?? 0)
  const shown = all > due.length ? `, the first ${due.length} shown` : ''
  return printText(context, all === 0 ? 'nothing is due\n' : `${all} due${shown}; nothing was sent\n`)
}
