import { faultName, PlatformError } from './errors.ts'
import { type Log, type LogFields, within } from './host.ts'

const LONGEST_MS = 10_000

/**
 * What a function of the definition or the host gives to a request that waits for it. If it throws or takes ten
 * seconds, the log has its `event` and the request gets 503 with `sentence`; an error that is an answer already stays.
 */
export async function answerInTime<T>(
  run: () => T | Promise<T>,
  { log, event, sentence, fields }: { log: Log; event: string; sentence: string; fields?: LogFields },
): Promise<T> {
  try {
    return await within(LONGEST_MS, (async () => run())(), () => {
      throw new DOMException('it did not end in time', 'TimeoutError')
    })
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause
    log.error(event, 'a function of the definition or the program failed', {
      ...fields,
      fault: faultName(cause),
    })
    throw new PlatformError('unavailable', sentence, { cause, retryAfterSeconds: 60 })
  }
}
