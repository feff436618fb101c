import type { Timer } from '../../clock.ts'
import type { SendingStore } from './sending.ts'

/** Keeps all senders of one store to MAILER_RATE messages a second. */
export interface Pacer {
  /** Resolves when a lesson may be handed over; rejects when the signal aborts. */
  turn(signal: AbortSignal | undefined): Promise<void>
  /**
   * Takes a slot for a mail that somebody is waiting for: the mail goes out at once, and the lessons behind
   * it wait.
   */
  passed(): Promise<void>
}

const SECOND_US = 1_000_000
/** Slots are reserved for this long at a time, so that even many dispatchers rarely ask the store. */
const TOGETHER_SECONDS = 0.1

/** Reserves slots in the store; each send waits for the time of its slot. */
export function createPacer({
  perSecond,
  store,
  timer,
}: {
  readonly perSecond: number
  readonly store: () => Promise<Pick<SendingStore, 'reserve'>>
  readonly timer: Timer
}): Pacer {
  const intervalUs = Math.round(SECOND_US / perSecond)
  const together = Math.max(1, Math.round(perSecond * TOGETHER_SECONDS))
  let places: number[] = []
  let line: Promise<unknown> = Promise.resolve()

  async function place(): Promise<number> {
    if (places.length === 0) {
      const asked = timer.monotonic()
      const waitUs = await (await store()).reserve({ messages: together, intervalUs })
      places = Array.from({ length: together }, (_, n) => asked + (waitUs + n * intervalUs) / 1000)
    }
    return places.shift() ?? 0
  }

  return {
    async turn(signal) {
      const mine = line.then(place)
      line = mine.catch(() => {})
      const waitMs = (await mine) - timer.monotonic()
      signal?.throwIfAborted()
      if (waitMs > 0) await timer.sleep(waitMs, signal)
    },
    async passed() {
      await (await store()).reserve({ messages: 1, intervalUs })
    },
  }
}
