import type { Clock } from '../../src/core/host.ts'

/**
 * Time that passes only when everything that could happen now has happened: timers fire in order, and between two of
 * them every promise settles. The wall clock can be stepped; sleeping and measuring cannot.
 */
export interface VirtualTime {
  readonly clock: Clock
  readonly elapsed: () => number
  readonly stepWallClock: (ms: number) => void
  /** Calls `work` after `ms`. */
  readonly after: (ms: number, work: () => void) => void
  /** Lets time pass until `ms` after the start, or until `stop` says so. */
  readonly passUntil: (ms: number, stop: () => boolean) => Promise<void>
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly fire: () => void
}

export function virtualTime(start: number): VirtualTime {
  const queue: Timer[] = []
  let elapsed = 0
  let step = 0
  let order = 0

  function push(timer: Timer): void {
    queue.push(timer)
    let child = queue.length - 1
    while (child > 0) {
      const parent = (child - 1) >> 1
      if (!before(queue[child], queue[parent])) return
      swap(child, parent)
      child = parent
    }
  }

  function pop(): Timer | undefined {
    const first = queue[0]
    const last = queue.pop()
    if (first === undefined || last === undefined || queue.length === 0) return first
    queue[0] = last
    let parent = 0
    for (;;) {
      const [left, right] = [2 * parent + 1, 2 * parent + 2]
      let least = parent
      if (before(queue[left], queue[least])) least = left
      if (before(queue[right], queue[least])) least = right
      if (least === parent) return first
      swap(least, parent)
      parent = least
    }
  }

  function swap(a: number, b: number): void {
    const kept = queue[a] as Timer
    queue[a] = queue[b] as Timer
    queue[b] = kept
  }

  const after = (ms: number, fire: () => void) => {
    order += 1
    // In whole milliseconds, as the timers of Node.
    push({ at: elapsed + Math.max(0, Math.ceil(ms)), order, fire })
  }
  return {
    clock: {
      now: () => start + elapsed + step,
      monotonic: () => elapsed,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason)
          signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
          after(ms, resolve)
        }),
    },
    elapsed: () => elapsed,
    stepWallClock: (ms) => {
      step += ms
    },
    after,
    async passUntil(ms, stop) {
      for (;;) {
        // Every promise that can settle without time passing does so first, also what waits for a turn of the event loop
        // or for a file.
        do await new Promise((resolve) => setImmediate(resolve))
        while (process.getActiveResourcesInfo().some((name) => /^(?:Immediate|FSReq)/.test(name)))
        const next = queue[0]
        if (stop() || next === undefined || next.at > ms) return
        elapsed = next.at
        // All timers of one moment, in the order in which they were set.
        while (queue[0]?.at === elapsed) pop()?.fire()
      }
    },
  }
}

function before(a: Timer | undefined, b: Timer | undefined): boolean {
  if (a === undefined || b === undefined) return false
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
