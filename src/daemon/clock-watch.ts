import { isIP } from 'node:net'
import { isLoopback } from '../core/access/client.ts'
import type { Host } from '../core/host.ts'

/** Dates older than this say nothing of the clock as it is now. */
const RECENT_MS = 10 * 60_000
/** One alone may lie. */
const LEAST = 2

/** Compares the clock with the Date of answers: one server whose clock is wrong, or that lies, changes nothing. */
export function watchClock({ clock, timer }: Pick<Host, 'clock' | 'timer'>, ownHosts: ReadonlySet<string>) {
  const seen = new Map<string, { readonly at: number; readonly aheadMs: number }>()
  return {
    note(host: string, date: number): void {
      // A service of this machine has the same clock.
      if (Number.isNaN(date) || ownHosts.has(host) || (isIP(host) !== 0 && isLoopback(host))) return
      // A Date is cut to its second.
      seen.set(host, { at: timer.monotonic(), aheadMs: clock.now() - (date + 500) })
    },
    /** The median distance, the least that the two in the middle agree on; undefined while too few servers were heard. */
    aheadMs(): number | undefined {
      const oldest = timer.monotonic() - RECENT_MS
      const recent = [...seen.values()].filter(({ at }) => at >= oldest).map(({ aheadMs }) => aheadMs)
      if (recent.length < LEAST) return undefined
      const sorted = recent.toSorted((a, b) => a - b)
      const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
      return low * high <= 0 && low !== high ? 0 : Math.abs(low) < Math.abs(high) ? low : high
    },
  }
}
