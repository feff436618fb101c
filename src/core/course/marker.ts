import type { Timer } from '../clock.ts'
import type { CourseStore, Settlement } from './store.ts'

/** How long a finished send waits for others to share its commit. */
const WINDOW_MS = 3

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
  return (settlement) => {
    group.push(settlement)
    flush ??= timer.sleep(WINDOW_MS).then(() => {
      const marked = group
      group = []
      flush = undefined
      return store.settle(marked)
    })
    return flush
  }
}
