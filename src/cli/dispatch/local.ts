import { nextDay } from '../../core/course/schedule.ts'
import { readSettings } from '../../core/env/read-settings.ts'
import type { Environment } from '../../core/env/settings.ts'
import type { Context } from '../context.ts'
import { openLocal } from '../local.ts'
import type { DispatchOptions, Source } from './source.ts'

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
