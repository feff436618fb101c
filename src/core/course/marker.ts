import type { Timer } from '../clock.ts'
import type { CourseStore, Settlement } from './store.ts'

/** How long a finished send waits for others to share its commit: longer where commits take longer. */
const SHORTEST_MS = 3
const LONGEST_MS = 12
const COMMITS_LONG = 6

/**
 * Records outcomes in groups: those that finish within a few milliseconds share one durable commit. The promise
 * resolves when the commit is done, so a slot that awaits it takes no other work before its mark is durable.
 */
export function createMarker(
  store: Pick<CourseStore, 'settle'>,
  timer: Timer,
): (settlement: Settlement) => Promise<void> {
  let group: Settlement[] = []
  let flush: Promise<void> | undefined
  let window = SHORTEST_MS

  async function commit(): Promise<void> {
    await timer.sleep(window)
    const marked = group
    group = []
    flush = undefined
    const began = timer.monotonic()
    await store.settle(marked)
    window = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, COMMITS_LONG * (timer.monotonic() - began)))
  }
  return (settlement) => {
    group.push(settlement)
    flush ??= commit()
    return flush
  }
}
