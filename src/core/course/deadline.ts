import { setMaxListeners } from 'node:events'
import type { Timer } from '../clock.ts'

/** A moment at which attempts are given up: one for all that were claimed together, because a timer each is dear. */
export interface Deadline {
  readonly signal: AbortSignal
  /** Pending until the moment has come. */
  readonly passed: Promise<void>
  /** It will not come any more; nothing keeps the process waiting. */
  cancel(): void
}

export function createDeadline(timer: Timer, ms: number): Deadline {
  const expired = new AbortController()
  const cancelled = new AbortController()
  // Every message of a batch listens, and hundreds of listeners are no leak here.
  setMaxListeners(0, expired.signal)
  const passed = new Promise<void>((resolve) => {
    timer.sleep(ms, cancelled.signal).then(
      () => {
        expired.abort(new Error('the time for this message is over'))
        resolve()
      },
      () => {},
    )
  })
  return { signal: expired.signal, passed, cancel: () => cancelled.abort('all are answered') }
}
