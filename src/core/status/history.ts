import type { ProbeState } from '../health/probe.ts'
import type { Announcement, StatusUpdate } from '../incidents/incident.ts'
import type { Service } from '../service.ts'
import type { Histogram } from './histogram.ts'

/** How long days and incidents are kept; hours only serve the last day's figures. */
export const DAYS_KEPT = 90
export const HOURS_KEPT = 25
/** The newest incidents that are kept for one probe: one that flaps for 90 days must not fill the disk. */
export const INCIDENTS_KEPT_PER_PROBE = 200
/** A fault last seen longer ago than this is over. Trouble after such a silence is another incident. */
export const SAME_INCIDENT_MS = 10 * 60 * 1000

/** The name of a service's own line, beside those of its probes. */
export const WHOLE_SERVICE = ''

/** One look at one probe, and the time since the look before it. */
export interface Observation {
  readonly service: Service
  readonly probe: string
  readonly state: ProbeState
  readonly reason: string | undefined
  /** The latency of an answer; undefined when nothing live was asked, or nothing answered. */
  readonly latencyMs: number | undefined
  /** The time that counts for a state, in UTC milliseconds; undefined after a gap. */
  readonly credit: { readonly state: ProbeState; readonly from: number; readonly to: number } | undefined
}

export interface Round {
  /** UTC milliseconds. */
  readonly at: number
  readonly observations: readonly Observation[]
  /** Null: unstamped. */
  readonly builds: Readonly<Partial<Record<Service, string | null>>>
}

/** The record of one hour or day: milliseconds in each state (the rest is no data) and the latencies. */
export interface Period {
  readonly start: number
  readonly ms: Readonly<Record<ProbeState, number>>
  /** States that any look found, also where none of its time counts. */
  readonly seen: readonly ProbeState[]
  readonly latency: Histogram
}

export interface Series extends Pick<Observation, 'service' | 'probe'> {
  readonly firstAt: number
  readonly last: { readonly at: number; readonly state: ProbeState; readonly reason: string | undefined }
  /** Oldest first; days without a record are missing. */
  readonly days: readonly Period[]
  readonly hours: readonly Period[]
}

export interface Incident extends Pick<Observation, 'service' | 'probe' | 'reason'> {
  /** The worst state that it reached. */
  readonly state: 'degraded' | 'failing'
  readonly beganAt: number
  /** Undefined: it goes on. */
  readonly endedAt: number | undefined
}

/** An incident at its cause. `feltBy` names what only followed from it. */
export interface RootIncident extends Incident {
  readonly lengthMs: number
  /** Names of the services and probes that failed at the same time because of it. */
  readonly feltBy: readonly string[]
  /** Operators' timeline, oldest first. */
  readonly updates?: readonly StatusUpdate[]
}

export interface Recorded {
  /** The incidents of all replicas if they share a store, in place of those that this one saw. */
  readonly shared?: readonly RootIncident[]
  readonly announcements?: readonly Announcement[]
  /** The timelines of incidents and announcements, oldest first. */
  readonly updates?: readonly StatusUpdate[]
  readonly series: readonly Series[]
  /** Those that go on, then the others; each newest first. */
  readonly incidents: readonly Incident[]
  readonly builds: readonly {
    readonly service: Service
    readonly build: string | null
    readonly since: number
    readonly seenAt: number
  }[]
}

export interface History {
  /** False: it ends with the process. */
  readonly persistent: boolean
  /** Everything recorded before this is the sample data of a demo, and pages say so. UTC milliseconds. */
  readonly sampleUntil?: number
  /** One transaction: a killed process loses at most the round that was being written. */
  record(round: Round): Promise<void>
  read(now: number): Promise<Recorded>
  close(): Promise<void>
}

export interface SharedHistory extends Pick<History, 'read' | 'close'> {
  /** What the machine `recorder` saw; `now` is when it is recorded, if that is later. */
  record(round: Round, recorder: string, now?: number): Promise<void>
  /** Takes over what the machine recorded on its own, unless there is a record already; true if it was taken. */
  seed(past: () => Promise<Recorded>, recorder: string): Promise<boolean>
}
