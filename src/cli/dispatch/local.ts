import { nextDay } from '../../core/course/schedule.ts'
import type { Environment } from '../../core/env/environment.ts'
import { readSettings } from '../../core/env/settings.ts'
import type { Context } from '../context.ts'
import type { ExitCode } from '../exit.ts'
import { openLocal } from '../local.ts'
import { printJson, printText } from '../print.ts'
import type { DispatchOptions, Source } from './drain.ts'

/** Dispatch from this machine's store: the same code path as the endpoint and the schedule. */
export async function localSource(
  context: Context,
  env: Environment,
  options: DispatchOptions,
): Promise<Source> {
  const { platform, close } = await openLocal(context, env, options.data)
  return {
    call: async (onProgress) =>
      (await platform.course()).dispatch({
        limit: options.drain
          ? Number.POSITIVE_INFINITY
          : (options.limit ?? readSettings(context.platform, env).dispatch.limit),
        signal: context.signal,
        onProgress,
      }),
    remaining: async () => (await (await platform.course()).backlog()).due,
    due: async (limit) =>
      (await (await platform.course()).due(limit)).map(({ id, sentDays, lessons, nextAttemptAt }) => ({
        id,
        day: nextDay(sentDays, lessons),
        nextAttemptAt,
      })),
    close,
  }
}

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
