import { DAY_MS, HOUR_MS, MINUTE_MS } from '../durations.ts'
import type { StreamName } from '../mail/holds.ts'

export interface Stream {
  readonly name: StreamName
  /** The pause after a failed attempt that follows so many others. */
  readonly pauseMs: (failures: number, fraction: number) => number
  readonly most: number
  /** Failures of the line or the sender count as well. */
  readonly countsAll: boolean
  /** Left to an operator once a provider may have forgotten the key of an unknown outcome. */
  readonly parksUnknown: boolean
  /** Nobody recognizes a repeat: after an unknown outcome they become rarer for as long as that goes on. */
  readonly repeatsRarely?: boolean
  /** Many leave at once: claimed ahead, recorded together, and a refusal is judged by what becomes of the others. */
  readonly isBulk?: true
  /** When what our own configuration or texts kept from leaving is tried again. */
  readonly oursMs: number
}

/** `fraction` in [0, 1) spreads the retries of many jobs over the upper half of their interval. */
const doubling = (first: number, longest: number) => (failures: number, fraction: number) => {
  const full = Math.min(longest, first * 2 ** Math.min(failures, 20))
  return Math.round(Math.max(first, full / 2 + (full / 2) * fraction))
}

/** A mail that leaves because of something that happened once: tried until it expires. */
const message = (name: Stream['name'], firstMs: number, longestMs: number): Stream => ({
  name,
  pauseMs: doubling(firstMs, longestMs),
  most: Number.POSITIVE_INFINITY,
  countsAll: true,
  parksUnknown: false,
  oursMs: Math.min(10 * MINUTE_MS, longestMs),
})

/** First retry after ≥ 5 minutes, because greylisting wants to see patience; a lesson is parked after 12 failures. */
export const COURSE: Stream = {
  ...message('course', 5 * MINUTE_MS, 6 * HOUR_MS),
  most: 12,
  countsAll: false,
  parksUnknown: true,
  oursMs: 0,
  isBulk: true,
}
export const CONFIRMATION = message('confirmation', 5 * MINUTE_MS, HOUR_MS)
/** Somebody waits for it, and its link works for a short time only. */
export const SIGN_IN = message('sign-in', MINUTE_MS / 2, 5 * MINUTE_MS)
const ALERT_PAUSES_MS = [15_000, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 6 * HOUR_MS]
/** Somebody should know soon; nobody waits for it after half a day. */
export const ALERT: Stream = {
  ...message('alert', MINUTE_MS, HOUR_MS),
  pauseMs: (failures) => ALERT_PAUSES_MS[failures] ?? 6 * HOUR_MS,
  most: ALERT_PAUSES_MS.length + 1,
}
/** News for visitors: as many at once as there are subscribers. */
export const NOTICE: Stream = { ...message('notice', 5 * MINUTE_MS, HOUR_MS), isBulk: true }
export const MAIL = message('mail', 5 * MINUTE_MS, HOUR_MS)
/** A mail of these streams is not sent any more after this. */
export const EXPIRES_MS = { 'sign-in': HOUR_MS, mail: 3 * DAY_MS } as const
