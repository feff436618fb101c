import { DAY_MS, HOUR_MS, MOST_SKEW_MS } from '../durations.ts'
import { type HealthReport, type ProbeResult, type ProbeState, RANK } from '../health/probe.ts'
import type { Service } from '../service.ts'
import { type Observation, type Round, WHOLE_SERVICE } from './history.ts'

/** If two looks are further apart than this, the time between them is a gap, not a state that lasted. */
const LONGEST_CREDIT_MS = 150_000
/** If the wall clock and the monotonic clock differ by more, the clock was set or the machine slept. */
const CLOCK_STEP_MS = 5000

/** Turns health reports into rounds. A state counts from one look to the next; a stop or a sleep is a gap. */
export function createRounds(): (input: {
  readonly reports: readonly HealthReport[]
  /** Builds of services in other processes, from their health answers. */
  readonly neighbours: ReadonlyMap<Service, string | null>
  /** UTC milliseconds, and the monotonic clock's at the same moment. */
  readonly now: number
  readonly monotonic: number
}) => Round {
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
      { state, reason, latencyMs: took }: Partial<ProbeResult> & Pick<ProbeResult, 'state'>,
    ): Observation => {
      const key = `${service}/${probe}`
      const known = states.get(key)
      next.set(key, state)
      const credit = credited && known ? { state: known, from: now - elapsed, to: now } : undefined
      return { service, probe, state, reason, latencyMs: state === 'failing' ? undefined : took, credit }
    }
    const observations = reports.flatMap((report) => [
      look(report.service, WHOLE_SERVICE, report),
      ...Object.entries(report.probes).map(([probe, result]) => look(report.service, probe, result)),
    ])
    const own = reports.map(({ service, build }) => [service, build] as const)
    const builds = Object.fromEntries([...neighbours, ...own])
    before = { now, monotonic }
    states = next
    return { at: now, observations, builds }
  }
}

const LENGTHS = [HOUR_MS, DAY_MS] as const
const LONGEST_REASON = 200
/** How long trouble that another machine saw outweighs better news: the time between two looks, and theirs. */
const STANDS_MS = 75_000
/** Bits of `seen`. */
export const STATE_BITS: Readonly<Record<ProbeState, number>> = { ok: 1, degraded: 2, failing: 4, skipped: 8 }

/** Stored state of a probe besides its hours and days. */
export interface SeriesMark extends Pick<Observation, 'state' | 'reason'> {
  /** UTC milliseconds of the last look of any machine. */
  readonly at: number
  /** Time has been counted up to here. */
  readonly countedTo: number
  /** The machine that saw this state, and when it last did. */
  readonly recorder: string
  readonly stateAt: number
}

export interface PeriodDelta {
  readonly length: number
  readonly start: number
  readonly ms: Readonly<Partial<Record<ProbeState, number>>>
  readonly seen: number
  readonly latencyMs: number | undefined
}

/** The beginning of the hour or the day that a time is in. */
export const floor = (at: number, length: number) => Math.floor(at / length) * length

/** The changes of one check. Machines that share a record count time once, as the worse state if they differ. */
export function followLook(
  { state, reason: said, latencyMs, credit }: Observation,
  input: {
    readonly at: number
    /** Later than `at` for a look that is recorded afterwards. */
    readonly now?: number
    readonly recorder: string
    readonly before: SeriesMark | undefined
  },
): { readonly series: SeriesMark; readonly periods: readonly PeriodDelta[] } {
  const { at, now = at, recorder, before } = input
  const known = before === undefined || before.at > now + MOST_SKEW_MS ? undefined : before
  const outweighs = (one: ProbeState) =>
    known !== undefined &&
    known.recorder !== recorder &&
    Math.abs(at - known.stateAt) <= STANDS_MS &&
    RANK[known.state] > RANK[one]
  const last = Math.max(at, known?.at ?? at)
  const countedTo = Math.max(credit?.to ?? 0, known?.countedTo ?? at)
  const series =
    known !== undefined && outweighs(state)
      ? { ...known, at: last, countedTo }
      : { at: last, countedTo, state, reason: said?.slice(0, LONGEST_REASON), recorder, stateAt: at }
  const from = credit && Math.max(credit.from, known?.countedTo ?? credit.from)
  const counted = credit && (known !== undefined && outweighs(credit.state) ? known.state : credit.state)
  return {
    series,
    periods: LENGTHS.flatMap((length) => {
      const current = floor(at, length)
      const deltas: PeriodDelta[] = []
      let begin = from ?? at
      // First the periods before the hour or the day that `at` is in.
      while (credit !== undefined && counted !== undefined && begin < Math.min(current, credit.to)) {
        const start = floor(begin, length)
        const until = Math.min(credit.to, start + length)
        const ms = { [counted]: Math.round(until - begin) }
        deltas.push({ length, start, ms, seen: STATE_BITS[counted], latencyMs: undefined })
        begin = until
      }
      const left = credit === undefined ? 0 : Math.max(0, Math.round(credit.to - begin))
      const also = left > 0 ? counted : undefined
      const seen = STATE_BITS[state] | (also === undefined ? 0 : STATE_BITS[also])
      return [...deltas, { length, start: current, ms: also ? { [also]: left } : {}, seen, latencyMs }]
    }),
  }
}
