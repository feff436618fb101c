import type { Host } from '../host.ts'
import { createRun, type RunOptions } from './run.ts'
import type { Ready, Source } from './source.ts'

export type Engine<Claim extends object> = ReturnType<typeof createEngine<Claim>>

/** Claims, attempts and records the jobs of a source. */
export function createEngine<Claim extends object, Prepared extends Ready = Ready>(
  host: Host,
  source: Source<Claim, Prepared>,
  signal?: AbortSignal,
) {
  let current: ReturnType<typeof createRun<Claim, Prepared>> | undefined
  let isNudged = false
  let waking: Promise<number> | undefined
  async function wake(): Promise<number> {
    let sent = 0
    do {
      isNudged = false
      current = createRun(host, source, { signal })
      sent += (await current.all()).sent
    } while (isNudged && !signal?.aborted)
    return sent
  }
  return {
    /** Sends what is due, and waits for all that it began. Rejects with the first fault of the store. */
    run: (options: RunOptions = {}) => createRun(host, source, { signal, ...options }).all(),
    /** As `run`, but calls during a run join it, which then also sends what became due. Gives how many were sent. */
    wake(): Promise<number> {
      isNudged = true
      current?.nudge()
      waking ??= wake().finally(() => {
        waking = current = undefined
      })
      return waking
    },
    /** Sends one that this process has stored, and holds since that moment of the monotonic clock. */
    deliver: (claim: Claim, since: number) => createRun(host, source, {}).one(claim, since),
  }
}
