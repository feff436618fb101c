import type { Timer } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import type { CourseStore, Settlement } from './store.ts'

/** How long a finished send waits for others to share its commit: longer where commits take longer. */
const SHORTEST_MS = 3
const LONGEST_MS = 12
const COMMITS_LONG = 6
/** A store that could not be written is asked again after this. */
const AGAIN_MS = 250

interface Mark {
  readonly settlement: Settlement
  readonly until: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Records outcomes in groups: those that finish within a few milliseconds share one durable commit. The promise
 * resolves when the commit is done, so a slot that awaits it takes no other work before its mark is durable. A store
 * that cannot be written (a lock, a failover) is asked again until `until` on the monotonic clock: an outcome that was
 * learnt is not thrown away while its claim is held.
 */
export function createMarker(
  store: Pick<CourseStore, 'settle'>,
  timer: Timer,
): (settlement: Settlement, until: number) => Promise<void> {
  let group: Mark[] = []
  let waiting = false
  let window = SHORTEST_MS

  const commitSoon = () => {
    if (waiting) return
    waiting = true
    void timer.sleep(window).then(commit)
  }
  async function commit(): Promise<void> {
    const marked = group
    group = []
    waiting = false
    const began = timer.monotonic()
    try {
      await store.settle(marked.map(({ settlement }) => settlement))
      window = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, COMMITS_LONG * (timer.monotonic() - began)))
      for (const { resolve } of marked) resolve()
    } catch (error) {
      window = AGAIN_MS
      const passing = error instanceof PlatformError && error.code === 'store_unavailable' && !error.final
      const latest = timer.monotonic() + AGAIN_MS
      for (const mark of marked) {
        if (passing && latest < mark.until) group.push(mark)
        else mark.reject(error)
      }
      if (group.length > 0) commitSoon()
    }
  }
  return (settlement, until) =>
    new Promise((resolve, reject) => {
      group.push({ settlement, until, resolve, reject })
      commitSoon()
    })
}
