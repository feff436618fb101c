import type { ProbeState } from '../../health/probe.ts'
import type { Service } from '../../service.ts'
import type { Incident } from '../../status/history.ts'

export interface SeriesRow {
  readonly id: number
  readonly service: Service
  readonly probe: string
  readonly first_at: number
  readonly at: number
  readonly state: ProbeState
  readonly reason: string | null
}

export interface HistoryIncidentRow {
  readonly id: number
  readonly series: number
  readonly state: Incident['state']
  readonly reason: string | null
  readonly began_at: number
  readonly seen_at: number
  readonly ended_at: number | null
}
