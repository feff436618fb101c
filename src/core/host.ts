import type { Clock, Timer } from './clock.ts'
import type { Log } from './log.ts'
import type { Random } from './random.ts'

/** What the engine takes from its surroundings; passed first, so that a test or a simulation can give its own. */
export interface Host {
  readonly clock: Clock
  /** Waits for the network and the disk. It runs in real time, even when a program brings its own clock. */
  readonly timer: Timer
  readonly random: Random
  readonly log: Log
}
