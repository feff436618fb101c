import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/durations.ts'
import type { ProbeState } from '../../core/health/probe.ts'
import { type History, type Observation, WHOLE_SERVICE } from '../../core/status/history.ts'
import type { SampleHealth } from '../../core/status/sample-health.ts'

/** The machine was off. */
const SILENT = { daysAgo: 45.5, hours: 52 }
const RECORDED_DAYS = 80
const SEED = 7

/** Records eighty sample days, with outages and a gap, up to just before `now`: a look every ten minutes in trouble. */
export async function recordDays(
  history: History,
  now: number,
  input: {
    readonly sample: SampleHealth
    /** How it ends, and how long ago in milliseconds. */
    readonly state?: 'ok' | 'degraded' | 'failing'
    readonly age?: number
    readonly off?: readonly string[]
    /** Time between two looks while nothing is wrong. */
    readonly everyMs?: number
    readonly build?: string
  },
): Promise<void> {
  const { sample, state: ended = 'ok', age = 24_000, off = [], everyMs = HOUR_MS, build = '4.2.0' } = input
  const { probes: services, trouble: troubles, last: affected } = sample
  const noise = lcg(SEED)
  const last = now - age
  const within = (at: number, { daysAgo, hours }: { daysAgo: number; hours: number }) =>
    at >= now - daysAgo * DAY_MS && at < now - daysAgo * DAY_MS + hours * HOUR_MS
  const round = async (at: number, creditMs: number, final: boolean) => {
    if (within(at, SILENT)) return
    const observations: Observation[] = []
    for (const [service, probes] of Object.entries(services)) {
      let whole: ProbeState = 'ok'
      for (const [probe, typical] of Object.entries(probes)) {
        if (off.includes(probe)) continue
        const now = final && ended !== 'ok' && service === affected.service && probe === affected.probe
        const trouble = now
          ? { state: ended, reason: 'no answer in time' }
          : troubles.find((one) => one.service === service && one.probe === probe && within(at, one))
        const state: ProbeState = typical === 'off' ? 'skipped' : (trouble?.state ?? 'ok')
        if (state === 'failing' || (state === 'degraded' && whole === 'ok')) whole = state
        observations.push({
          service,
          probe,
          state,
          reason: typical === 'off' ? 'not configured' : trouble?.reason,
          latencyMs:
            typical === 'off' || state === 'failing' ? undefined : typical * Math.exp(noise() ** 3 * 2),
          credit: { state, from: at - creditMs, to: at },
        })
      }
      const latencyMs = 40 * Math.exp(noise() ** 3 * 2)
      observations.push({
        service,
        probe: WHOLE_SERVICE,
        state: whole,
        reason: undefined,
        latencyMs,
        credit: { state: whole, from: at - creditMs, to: at },
      })
    }
    await history.record({
      at,
      observations,
      builds: Object.fromEntries(Object.keys(services).map((service) => [service, build])),
    })
  }
  let before = last - RECORDED_DAYS * DAY_MS
  for (let at = before; at <= last - HOUR_MS; at += 10 * MINUTE_MS) {
    const near = troubles.some(
      ({ probe, daysAgo, hours }) =>
        !off.includes(probe) &&
        at > now - daysAgo * DAY_MS - HOUR_MS &&
        at < now - daysAgo * DAY_MS + (hours + 1) * HOUR_MS,
    )
    const pause = at > last - DAY_MS - HOUR_MS ? HOUR_MS : everyMs
    if (!near && at - before < pause) continue
    await round(at, at - before, false)
    before = at
  }
  for (let at = last - 30 * MINUTE_MS; at <= last; at += 5 * MINUTE_MS)
    await round(at, 5 * MINUTE_MS, at > last - 20 * MINUTE_MS)
}

/** Numerical Recipes' generator: the same days in every run. */
function lcg(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
