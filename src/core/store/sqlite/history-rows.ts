import type { ProbeState } from '../../health/probe.ts'
import type { Service } from '../../service.ts'
import type { Incident } from '../../status/history.ts'

/** Bits of `seen`. */
export const SEEN: Readonly<Record<ProbeState, number>> = { ok: 1, degraded: 2, failing: 4, skipped: 8 }

export interface PeriodRow extends Record<ProbeState, number> {
  readonly series: number
  readonly start: number
  readonly length: number
  readonly seen: number
  readonly latency: Uint8Array
}

export interface SeriesRow {
  readonly id: number
  readonly service: Service
  readonly probe: string
  readonly first_at: number
  readonly at: number
  readonly state: ProbeState
  readonly reason: string | null
}

export interface IncidentRow {
  readonly id: number
  readonly series: number
  readonly state: Incident['state']
  readonly reason: string | null
  readonly began_at: number
  readonly seen_at: number
  readonly ended_at: number | null
}

/** The beginning of the hour or the day that a time is in. */
export function floor(at: number, length: number): number {
  return Math.floor(at / length) * length
}
