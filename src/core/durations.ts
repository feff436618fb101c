export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
/**
 * Providers remember an idempotency key for 24 hours. An unknown outcome is not retried after 20: the wall clock may
 * be stepped back meanwhile, and an attempt takes its time to arrive.
 */
export const KEY_LIFE_MS = 20 * HOUR_MS
/** How far apart the clocks of machines may be. A stored time further ahead was written by a clock that was wrong. */
export const MOST_SKEW_MS = 150_000
/** Longer than any pause after a failed attempt: what was dated or planned further ahead is void, by a clock that was wrong. */
export const FAR_MS = 8 * HOUR_MS

/** UTC milliseconds of an ISO 8601 time; NaN also for a day that no month has, which Date.parse takes for one of the next. */
export const instantOf = (time: string): number =>
  new Date(time.slice(0, 10)).getUTCDate() === Number(time.slice(8, 10)) ? Date.parse(time) : Number.NaN

const UNITS = [
  [DAY_MS, 'd'],
  [HOUR_MS, 'h'],
  [MINUTE_MS, 'min'],
  [1000, 's'],
  [1, 'ms'],
] as const

/** `850 ms`, `12 s`, `4 min 12 s`, `2 d 4 h`: the largest unit and the one below it, or with `parts: 1` the largest alone. */
export function durationText(ms: number, { parts = 2 } = {}): string {
  const first = UNITS.findIndex(([size]) => ms >= size)
  if (first === -1) return '0 s'
  // Below a second only what is shorter than one is of interest.
  const shown = UNITS.slice(first, Math.min(first + parts, Math.max(first + 1, 4)))
  let left = ms
  const texts = shown.map(([size, unit]) => {
    const count = Math.floor(left / size)
    left -= count * size
    return count === 0 ? '' : `${count} ${unit}`
  })
  return texts.filter(Boolean).join(' ')
}
