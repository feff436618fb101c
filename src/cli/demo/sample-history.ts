import { seeded } from '../../core/analytics/sample.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/durations.ts'
import { fold, type ProbeState } from '../../core/health/probe.ts'
import { type History, type Round, WHOLE_SERVICE } from '../../core/status/history.ts'

/** Sample health of a platform, from which days for its status page are made up. */
export type SampleHealth = ReturnType<typeof sampleOf>

/** The machine was off. */
const SILENT = { daysAgo: 45.5, hours: 52 }
const RECORDED_DAYS = 80
const SEED = 7

/** What happened to a made-up platform, dealt to the parts that a platform has. */
const TROUBLE: readonly { state: ProbeState; daysAgo: number; hours: number; reason: string }[] = [
  { state: 'failing', daysAgo: 61.4, hours: 0.7, reason: 'the check failed' },
  { state: 'degraded', daysAgo: 33.2, hours: 30, reason: 'the check failed' },
  { state: 'failing', daysAgo: 12.5, hours: 2.2, reason: 'cannot be reached' },
  { state: 'degraded', daysAgo: 4.1, hours: 3, reason: 'no answer in time' },
]

/** Fills a history with eighty sample days before the first look, and with whatever time the demo's clock skips while all is well. */
export function withSampleDays(history: History): History {
  let last: Round | undefined
  let sampleUntil = 0
  return {
    ...history,
    get sampleUntil() {
      return sampleUntil
    },
    async record(round) {
      const before = last
      last = round
      if (before === undefined) await recordDays(history, round.at, sampleOf(round))
      else if (round.at - before.at > HOUR_MS && !before.observations.some(({ state }) => isTrouble(state)))
        await skip(history, before, round.at)
      else return history.record(round)
      sampleUntil = round.at
      await history.record(round)
    },
  }
}

const isTrouble = (state: ProbeState) => state === 'failing' || state === 'degraded'

/** Latencies vary by a factor of up to seven, mostly by little; the same in every run. */
function variation(): () => number {
  const random = seeded(SEED)
  return () => Math.exp(random() ** 3 * 2)
}

/** Records that what was well stays well until then, hour by hour. */
async function skip(history: History, { at: from, observations, builds }: Round, until: number) {
  const spread = variation()
  for (let at = from; at < until; at += HOUR_MS) {
    const to = Math.min(at + HOUR_MS, until)
    const later = observations.map((one) => ({
      ...one,
      latencyMs: one.latencyMs && one.latencyMs * spread(),
      credit: { state: one.state, from: at, to },
    }))
    await history.record({ at: to, builds, observations: later })
  }
}

/** The parts that a look found, with their usual latencies in ms and trouble of each kind. A service that fails is felt by those that ask it. */
function sampleOf({ observations }: Round) {
  const found = observations.filter(({ probe, state }) => probe !== WHOLE_SERVICE && state !== 'skipped')
  const services = new Set(observations.map(({ service }) => service))
  const causes = found.filter(({ probe }) => !services.has(probe))
  const latencies = [...services].map((name) => {
    const own = found.filter(({ service }) => service === name)
    return [name, Object.fromEntries(own.map(({ probe, latencyMs = 5 }) => [probe, latencyMs]))] as const
  })
  // The last service first: it is not the one that the visitor of a page asks.
  const trouble = TROUBLE.flatMap((one, index) => {
    const cause = causes.at(-1 - (index % causes.length))
    if (cause === undefined) return []
    const felt = found.filter(({ probe }) => probe === cause.service)
    return [cause, ...felt].map(({ service, probe }) => ({ ...one, service, probe }))
  })
  return { probes: Object.fromEntries(latencies), trouble }
}

/** Records eighty sample days, with outages and a gap: a look every ten minutes in trouble, each hour of the last day, and otherwise each day. */
export async function recordDays(history: History, last: number, { probes, trouble }: SampleHealth) {
  const spread = variation()
  const within = (at: number, { daysAgo, hours }: { daysAgo: number; hours: number }, aroundMs = 0) => {
    const start = last - daysAgo * DAY_MS
    return at >= start - aroundMs && at < start + hours * HOUR_MS + aroundMs
  }
  const builds = Object.fromEntries(Object.keys(probes).map((service) => [service, 'demo']))
  const look = async (at: number, creditMs: number) => {
    if (within(at, SILENT)) return
    const observations = Object.entries(probes).flatMap(([service, latencies]) => {
      const observe = (probe: string, state: ProbeState, latencyMs?: number, reason?: string) => {
        return { service, probe, state, reason, latencyMs, credit: { state, from: at - creditMs, to: at } }
      }
      const own = Object.entries(latencies).map(([probe, typical]) => {
        const now = trouble.find((one) => one.service === service && one.probe === probe && within(at, one))
        const latencyMs = now?.state === 'failing' ? undefined : typical * spread()
        return observe(probe, now?.state ?? 'ok', latencyMs, now?.reason)
      })
      return [...own, observe(WHOLE_SERVICE, fold(own), 40 * spread())]
    })
    await history.record({ at, observations, builds })
  }
  let before = last - RECORDED_DAYS * DAY_MS
  for (let at = before; at <= last - HOUR_MS; at += 10 * MINUTE_MS) {
    const pause = at > last - DAY_MS - HOUR_MS ? HOUR_MS : DAY_MS
    if (at - before < pause && !trouble.some((one) => within(at, one, HOUR_MS))) continue
    await look(at, at - before)
    before = at
  }
  for (let at = last - 30 * MINUTE_MS; at <= last; at += 5 * MINUTE_MS) await look(at, 5 * MINUTE_MS)
}
