import { type Clock, systemClock } from '../../core/clock.ts'

/** Real time plus the days that the demo has let pass: sleeping and measuring stay real, the date does not. */
export interface SteppingClock extends Clock {
  advance(ms: number): void
}

export function steppingClock(): SteppingClock {
  let ahead = 0
  return {
    now: () => systemClock.now() + ahead,
    monotonic: systemClock.monotonic,
    sleep: systemClock.sleep,
    advance(ms) {
      ahead += ms
    },
  }
}
