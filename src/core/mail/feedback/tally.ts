import type { Timer } from '../../clock.ts'
import type { MailCount, SendingStore } from './sending.ts'

/** Counts messages in memory and writes them to the store together. */
export interface Tally {
  add(count: MailCount): Promise<void>
  flush(): Promise<void>
}

const AT_ONCE = 1000
const LONGEST_MS = 1000

/**
 * Counts messages and writes them when the next one is counted a second later; `flush` writes the rest. A crash loses
 * the last counts, which only makes that day's rates look higher.
 */
export function createTally(
  store: () => Promise<Pick<SendingStore, 'count'>>,
  timer: Pick<Timer, 'monotonic'>,
): Tally {
  let counts: MailCount[] = []
  let since = timer.monotonic()
  async function flush() {
    const written = counts
    counts = []
    since = timer.monotonic()
    if (written.length > 0) await (await store()).count(written)
  }
  return {
    flush,
    async add(count) {
      counts.push(count)
      if (counts.length >= AT_ONCE || timer.monotonic() - since >= LONGEST_MS) await flush()
    },
  }
}
