import type { HealthReport, ProbeState } from '../health/probe.ts'
import type { Service } from '../service.ts'
import { type Observation, type Round, WHOLE_SERVICE } from './history.ts'

/** If two looks are further apart than this, the time between them is a gap, not a state that lasted. */
const LONGEST_CREDIT_MS = 150_000
/** If the wall clock and the monotonic clock differ by more, the clock was set or the machine slept. */
const CLOCK_STEP_MS = 5000

export interface RoundInput {
  readonly reports: readonly HealthReport[]
  /** Builds of services in other processes, from their health answers. */
  readonly neighbours: ReadonlyMap<Service, string | null>
  /** UTC milliseconds, and the monotonic clock's at the same moment. */
  readonly now: number
  readonly monotonic: number
}

/**
 * Turns health reports into rounds of the history. A state counts from one look to the next and no further: the time
 * before the first look, during a stop, a sleep or a step of the clock stays without data.
 */
export function createRounds(): (input: RoundInput) => Round {
  let before: { readonly now: number; readonly monotonic: number } | undefined
  let states = new Map<string, ProbeState>()

  return ({ reports, neighbours, now, monotonic }) => {
    const elapsed = before === undefined ? Number.POSITIVE_INFINITY : monotonic - before.monotonic
    const stepped = before === undefined || Math.abs(now - before.now - elapsed) > CLOCK_STEP_MS
    const credited = elapsed > 0 && elapsed <= LONGEST_CREDIT_MS && !stepped
    const next = new Map<string, ProbeState>()
    const look = (
      service: Service,
      probe: string,
      { state, reason, latencyMs }: { state: ProbeState; reason?: string; latencyMs?: number },
    ): Observation => {
      const key = `${service}/${probe}`
      const known = states.get(key)
      next.set(key, state)
      return {
        service,
        probe,
        state,
        reason,
        latencyMs: state === 'failing' ? undefined : latencyMs,
        credit: credited && known !== undefined ? { state: known, from: now - elapsed, to: now } : undefined,
      }
    }
    const observations = reports.flatMap((report) => [
      look(report.service, WHOLE_SERVICE, report),
      ...Object.entries(report.probes).map(([probe, result]) => look(report.service, probe, result)),
    ])
    const builds = Object.fromEntries([
      ...neighbours,
      ...reports.map(({ service, build }) => [service, build] as const),
    ])
    before = { now, monotonic }
    states = next
    return { at: now, observations, builds }
  }
}
