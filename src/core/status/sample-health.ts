import type { ProbeState } from '../health/probe.ts'

/** Sample health of a platform, from which the demo records days for its status page. */
export interface SampleHealth {
  /** By service and probe: the usual latency in milliseconds, or `off` for what is not configured. */
  readonly probes: Readonly<Record<string, Readonly<Record<string, number | 'off'>>>>
  readonly trouble: readonly SampleTrouble[]
  /** The probe whose trouble a record can end with, and its service. */
  readonly last: { readonly service: string; readonly probe: string }
  /** Probes that the demo configures nothing for, so that they have no record there. */
  readonly offInDemo: readonly string[]
}

/** A sample failure: its cause, days ago and hours. */
export interface SampleTrouble {
  readonly service: string
  readonly probe: string
  readonly state: ProbeState
  readonly daysAgo: number
  readonly hours: number
  readonly reason: string
}
