import { createEngine } from '../delivery/engine.ts'
import { PlatformError } from '../errors.ts'
import type { Host } from '../host.ts'
import { recent } from '../recent.ts'
import { type Course, OUT_OF_TIME, PAUSED, STOPPED } from './course.ts'
import { createLessons, type LessonsOptions } from './lessons.ts'

const PAUSE_ASKED_MS = 5000

export interface DispatcherOptions extends LessonsOptions {
  readonly persistent: boolean
  /** Asked before the first message and every few seconds. */
  readonly isPaused?: ((stream: 'course' | 'notice') => Promise<boolean>) | undefined
}

/** Sends the lessons that are due (CONTRACT §5). The schedule, the endpoint and the CLI all enter here. */
export function createDispatcher(host: Host, options: DispatcherOptions): Course['dispatch'] {
  const { clock, timer, log } = host
  const { store, persistent, mailer, isPaused = async () => false } = options
  return async (call) => {
    if (!persistent)
      throw new PlatformError('store_not_persistent', 'Dispatch needs a persistent store; set STORE_URL.')
    const { limit, signal, notices } = call
    const held = recent(PAUSE_ASKED_MS, timer.monotonic, async () =>
      (await isPaused(notices ? 'notice' : 'course')) ? PAUSED : undefined,
    )
    const { source, results, tally } = createLessons(host, options, call, held)
    const ran = mailer.configured ? await createEngine(host, source).run(call) : undefined
    const { due: remaining, waiting, nextTryAt } = await store.backlog(clock.now())
    const isCut = remaining > 0
    const reason = ran
      ? (ran.stopped ??
        (ran.isOutOfTime && isCut ? OUT_OF_TIME : undefined) ??
        (signal?.aborted && isCut ? STOPPED : undefined) ??
        (tally.sent === 0 ? ran.unheard : undefined))
      : (mailer.reason ?? 'mail is not configured')
    const counted = {
      processed: tally.sent + tally.failed + tally.unknown,
      ...tally,
      remaining,
      ...(waiting > 0 && { waiting }),
      ...(nextTryAt !== undefined && { nextTryAt: new Date(nextTryAt).toISOString() }),
    }
    if (ran) log.info('dispatched', 'a dispatch call ended', counted)
    return { ...counted, limit, ...(reason !== undefined && { reason }), results }
  }
}
