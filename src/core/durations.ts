export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
/**
 * How far the clocks of machines that share a store may be apart. A stored time further ahead than this was written
 * under a clock that was ahead, or the clock was set back since.
 */
export const MOST_SKEW_MS = 150_000
