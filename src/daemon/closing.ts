import type { Host } from '../core/host.ts'

/** What a daemon closes, in this order: nothing before what depends on it. */
const CLOSED = [
  'pointer',
  'ping',
  'certificates',
  'eventLoop',
  // What is in flight in one must not wait for another.
  'traffic',
  'platform',
  'history',
  // Alerts in flight are recorded first.
  'alerts',
  'store',
] as const
export type Closing = Partial<Record<(typeof CLOSED)[number], (deadlineMs: number) => unknown>>

export async function closeAll({ log }: Host, closing: Closing, deadlineMs: number): Promise<void> {
  for (const part of CLOSED) {
    try {
      await closing[part]?.(deadlineMs)
    } catch (error) {
      const fault = error instanceof Error ? error.name : 'unknown'
      log.error('stop_failed', 'a part of the daemon did not end cleanly', { fault })
    }
  }
}

/** Stop waiting for work that misses its deadline: a process that hangs is killed, and then nothing is closed. */
export const giveUp = () => {}
