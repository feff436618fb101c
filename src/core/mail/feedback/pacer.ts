import type { Timer } from '../../host.ts'
import { type MailCount, minuteOf, type SendingStore } from './sending.ts'

/** Keeps all senders of one store to MAILER_RATE messages a second. */
export type Pacer = ReturnType<typeof createPacer>

const SECOND_US = 1_000_000
/** Places are reserved for this long at a time, so that even many dispatchers rarely ask the store. */
const TOGETHER_SECONDS = 0.5

export function createPacer(input: {
  readonly perSecond: number
  readonly store: () => Promise<Pick<SendingStore, 'reserve'>>
  readonly timer: Timer
}) {
  const { perSecond, store, timer } = input
  const intervalUs = Math.round(SECOND_US / perSecond)
  /** Later than this after its time, a place is lost: old places would go out in a burst. */
  const usableMs = Math.max(TOGETHER_SECONDS * 1000, intervalUs / 1000)
  let spare: number[] = []
  /** Wakes those who wait for a later place than one that was returned. */
  let returned = new AbortController()

  async function reserve(most: number): Promise<number[]> {
    const asked = timer.monotonic()
    const messages = Math.min(most, Math.max(1, Math.round(perSecond * TOGETHER_SECONDS)))
    const waitUs = await (await store()).reserve({ messages, intervalUs })
    return Array.from({ length: messages }, (_, n) => asked + (waitUs + n * intervalUs) / 1000)
  }
  const keep = (places: readonly number[]) => {
    spare = [...spare, ...places].sort((a, b) => a - b)
  }
  /** The earliest ones, within half a second: the claim for a later one would keep its message from an earlier turn. */
  const takeSpare = (most: number) => {
    const now = timer.monotonic()
    spare = spare.filter((place) => place >= now - usableMs)
    const last = Math.max(now, spare[0] ?? 0) + TOGETHER_SECONDS * 1000
    return spare.splice(0, Math.min(most, spare.filter((place) => place <= last).length))
  }

  return {
    /** Resolves at the turn of one message, or of several within half a second: their times on the monotonic clock. */
    async places(most: number, signal: AbortSignal): Promise<readonly number[]> {
      for (;;) {
        signal.throwIfAborted()
        let mine = takeSpare(most)
        if (mine.length === 0) mine = await reserve(most)
        const waitMs = (mine[0] ?? 0) - timer.monotonic()
        if (waitMs <= 0) return mine
        try {
          await timer.sleep(waitMs, AbortSignal.any([signal, returned.signal]))
          return mine
        } catch {
          // Nearer places were returned, or the wait is over.
          keep(mine)
        }
      }
    },
    /** Returns places in which nothing was sent; the next caller gets them. */
    giveBack(places: readonly number[]): void {
      keep(places)
      returned.abort()
      returned = new AbortController()
    },
    /** Takes a place for a mail that goes out at once, because somebody waits for it: the lessons behind it wait. */
    async passed(): Promise<void> {
      await (await store()).reserve({ messages: 1, intervalUs })
    },
  }
}

const COUNTED_FOR_MS = 1000

/** Counts messages, and writes them, if there is a store, when one is added a second later. A crash loses the last ones. */
export function createTally(
  store: () => Promise<Pick<SendingStore, 'count'> | undefined>,
  timer: Pick<Timer, 'monotonic'>,
) {
  const counts = new Map<string, MailCount>()
  let since = timer.monotonic()
  async function flush() {
    const written = [...counts.values()]
    counts.clear()
    since = timer.monotonic()
    if (written.length > 0) await (await store())?.count(written)
  }
  return {
    flush,
    /** Resolves once they are written; undefined: not now. */
    add(one: MailCount): Promise<void> | undefined {
      const key = `${minuteOf(one.at)} ${one.kind} ${one.source} ${one.domain}`
      counts.set(key, { ...one, count: one.count + (counts.get(key)?.count ?? 0) })
      return timer.monotonic() - since >= COUNTED_FOR_MS ? flush() : undefined
    },
  }
}
