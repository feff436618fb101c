import type { ProbeState } from '../health/probe.ts'
import { decode } from '../status/histogram.ts'
import type { Period } from '../status/history.ts'
import { STATE_BITS } from '../status/looks.ts'

/** An hour or a day of a probe, as every SQL store keeps it: milliseconds in each state, and bits of `seen`. */
export interface PeriodRow extends Record<ProbeState, number> {
  readonly start: number
  readonly length: number
  readonly seen: number
  readonly latency: Uint8Array
}

const STATES = Object.keys(STATE_BITS) as ProbeState[]

export function periodOf({ start, ok, degraded, failing, skipped, seen, latency }: PeriodRow): Period {
  return {
    start,
    ms: { ok, degraded, failing, skipped },
    seen: STATES.filter((state) => (seen & STATE_BITS[state]) !== 0),
    latency: decode(latency),
  }
}
