import type { CauseCode } from '../network/causes.ts'
import { counted } from '../sentences.ts'
import type { Service } from '../service.ts'
import type { ProbeResult } from './probe.ts'
import type { RemoteHealth } from './prober.ts'

export interface Expectations {
  /** Degraded and warnings fail too. */
  readonly strict: boolean
  readonly expectBuild: string | undefined
  readonly asks: Dependencies
  /** What the definition's probes depend on; nothing when left out. */
  readonly prerequisites?: Prerequisites
}

type Outcome = 'passed' | 'failed' | 'unreached'
export type Verdict = Readonly<ReturnType<typeof verdictOf>>

/** Let's Encrypt renews 30 days before the end: within 14 a renewal has failed. */
export const CERTIFICATE_DAYS = 14

export function verdictOf(results: readonly RemoteHealth[], expectations: Expectations) {
  const { strict, expectBuild, asks, prerequisites } = expectations
  const diagnosis = diagnose(results, asks, prerequisites)
  const states = results.map(stateOf)
  const others = [...diagnosis.builds].filter(
    ([, build]) => expectBuild !== undefined && build !== expectBuild,
  )
  /** Trouble that does not fail the check yet. */
  const warnings = diagnosis.skew ? [`different builds run: ${buildsText(diagnosis.builds)}`] : []
  for (const { service, certificate } of results) {
    const daysLeft = certificate?.daysLeft ?? CERTIFICATE_DAYS
    const end = daysLeft < 0 ? 'has expired' : `ends in ${counted(daysLeft, 'day')}`
    if (daysLeft < CERTIFICATE_DAYS) warnings.push(`the certificate of ${service} ${end}`)
  }
  const failed =
    states.includes('failing') ||
    others.length > 0 ||
    (strict && (states.includes('degraded') || warnings.length > 0))
  const named = (state: RemoteState) =>
    results.filter((health) => stateOf(health) === state && !isRefused(health)).map(nameOf)
  const nameOf = ({ service }: RemoteHealth) => {
    const because = becauseOf(diagnosis, service)
    return because === undefined ? service : `${service} (${because})`
  }
  const refused = results.filter(isRefused)
  const lacksToken = (health: RemoteHealth) => !health.reached && health.cause === 'token_missing'
  const list = (label: string, names: readonly string[]) =>
    names.length === 0 ? [] : [`${label}: ${names.join(', ')}`]
  const parts = [
    ...list('not reached', named('unreached')),
    ...list('token missing', refused.filter(lacksToken).map(nameOf)),
    ...list('refused', refused.filter((health) => !lacksToken(health)).map(nameOf)),
    ...list('failing', named('failing')),
    ...list('degraded', named('degraded')),
    ...(others.length > 0 ? [`expected build ${expectBuild}, found ${buildsText(new Map(others))}`] : []),
    ...warnings,
  ]
  const allOk =
    results.length < 2 ? `${results[0]?.service ?? 'nothing'} is ok` : `all ${results.length} services are ok`
  const outcome: Outcome = states.includes('unreached') ? 'unreached' : failed ? 'failed' : 'passed'
  return { outcome, sentence: parts.join('; ') || allOk, warnings, results, diagnosis }
}

/** The verdict's sentence, or that the checks passed but not as often in a row as asked. */
export function conclusion({ outcome, sentence }: Verdict, passed: boolean): string {
  return outcome === 'passed' && !passed ? `not often enough in a row: ${sentence}` : sentence
}

const buildsText = (builds: ReadonlyMap<Service, string | null>) =>
  [...builds].map(([service, build]) => `${service} ${build ?? 'unstamped'}`).join(', ')

export type RemoteState = 'ok' | 'degraded' | 'failing' | 'unreached'

/** A root cause, named once. `probe` is absent when the service itself could not be asked. */
interface RootCause {
  readonly services: readonly Service[]
  readonly probe?: string
  readonly state: Exclude<RemoteState, 'ok'>
  readonly cause?: CauseCode
  readonly reason: string
  readonly fix?: string
}

type Diagnosis = ReturnType<typeof diagnose>

export function stateOf(health: RemoteHealth): RemoteState {
  return health.reached ? health.report.state : 'unreached'
}

/** Did the service answer, and refuse the token or this machine? */
export function isRefused(health: RemoteHealth): boolean {
  return !health.reached && ['unauthorised', 'forbidden', 'token_missing'].includes(health.cause)
}

const RANK: Readonly<Record<RemoteState, number>> = { ok: 0, degraded: 1, failing: 2, unreached: 3 }

/** The services that each one asks. What else an answer claims explains nothing, so blame never circles. */
export type Dependencies = ReadonlyMap<Service, readonly Service[]>

/** For each probe, service or condition that depends on others: the names of all of them, indirect ones included. */
export type Prerequisites = ReadonlyMap<string, ReadonlySet<string>>

/** The services that each one asks: those that its probes are named after. A link that closes a ring is left out. */
export function dependenciesOf(
  probes: readonly { readonly name: string; readonly service: string }[],
  services: readonly { readonly name: string }[],
): Dependencies {
  const names = new Set(services.map(({ name }) => name))
  const asks = new Map<Service, Service[]>()
  const reaches = (from: Service, to: Service): boolean =>
    from === to || (asks.get(from) ?? []).some((next) => reaches(next, to))
  for (const service of names) {
    const asked: Service[] = []
    asks.set(service, asked)
    for (const probe of probes)
      if (probe.service === service && names.has(probe.name) && !reaches(probe.name, service))
        asked.push(probe.name)
  }
  return asks
}

/** What is reached from these, and they themselves. */
export function reachable<Item>(from: Iterable<Item>, next: (item: Item) => Iterable<Item>) {
  const reached = new Set(from)
  // A set also visits what is added while it is iterated.
  for (const item of reached) for (const other of next(item)) reached.add(other)
  return reached
}

/** What explains each fault in the end: itself if nothing does; those of a ring are each reported. */
export function rootsOf<Fault>(faults: readonly Fault[], explain: (fault: Fault) => readonly Fault[]) {
  const explained = new Map(faults.map((one) => [one, explain(one)]))
  const roots = (one: Fault) => {
    const reached = reachable([one], (each) => explained.get(each) ?? [])
    const unexplained = [...reached].filter((each) => explained.get(each)?.length === 0)
    return unexplained.length === 0 ? [one] : unexplained
  }
  return new Map(faults.map((one) => [one, roots(one)]))
}

/**
 * Separates causes from what follows: a probe named after a service that is itself in trouble is explained by it, and
 * one that depends on another of its service by that one.
 */
export function diagnose(
  results: readonly RemoteHealth[],
  asks: Dependencies,
  prerequisites: Prerequisites = new Map(),
) {
  const byService = new Map(results.map((health) => [health.service, health]))
  const explainedBy = (service: Service, probe: string, state: RemoteState): Service | undefined => {
    const other = byService.get(asks.get(service)?.find((name) => name === probe) ?? service)
    return other && other.service !== service && RANK[stateOf(other)] >= RANK[state]
      ? other.service
      : undefined
  }
  /** The probes of the same service that a probe fails because of. */
  const origins = new Map<ProbeResult, readonly string[]>()
  const leaders = new Map<Service, readonly Service[]>()
  /** The stamp of each service of ours that answered; null: it has none. */
  const builds = new Map<Service, string | null>()
  const rootCauses = unreached(results)
  for (const health of results) {
    if (!health.reached) continue
    const { service, report, foreign } = health
    const { state, probes, build } = report
    if (!foreign) builds.set(service, build)
    if (state === 'ok') continue
    const bad = Object.entries(probes).filter(([, probe]) => probe.state === state)
    const explained = bad.flatMap(([name]) => explainedBy(service, name, state) ?? [])
    const roots = rootsOf(bad, ([one]) =>
      bad.filter(([other]) => other !== one && prerequisites.get(one)?.has(other)),
    )
    for (const [[name, probe], found] of roots) {
      const first = found.map(([root]) => root)
      if (!first.includes(name)) origins.set(probe, first)
    }
    const own = bad.filter(([name, probe]) => !origins.has(probe) && !explainedBy(service, name, state))
    if (bad.length > 0 && own.length === 0) leaders.set(service, explained)
    for (const [name, probe] of own) {
      const fine = byService.has(name) ? ', though it answers from here' : ''
      rootCauses.push({ services: [service], probe: name, state, reason: `${probe.reason ?? state}${fine}` })
    }
    if (bad.length === 0)
      rootCauses.push({ services: [service], state, reason: 'it says so, and names no probe' })
  }
  const starts = (service: Service): readonly Service[] => leaders.get(service)?.flatMap(starts) ?? [service]
  /** Services with no trouble but that of other services: follower → the services where it starts. */
  const followers = new Map([...leaders.keys()].map((one) => [one, [...new Set(starts(one))]]))
  return { rootCauses, followers, origins, builds, skew: new Set(builds.values()).size > 1 }
}

/** The root causes of services that were not reached; those that fail alike on one host share one. */
function unreached(results: readonly RemoteHealth[]): RootCause[] {
  const groups = new Map<string, RootCause>()
  for (const health of results) {
    if (health.reached) continue
    const { cause, reason, fix } = health
    const key = `${cause} ${new URL(health.url).hostname}`
    const services = [...(groups.get(key)?.services ?? []), health.service]
    groups.set(key, { services, state: 'unreached', cause, reason, fix })
  }
  return [...groups.values()]
}

/** `because api`, for a service that only follows others. */
export function becauseOf({ followers }: Diagnosis, service: Service): string | undefined {
  const leaders = followers.get(service)
  return leaders && `because ${leaders.join(', ')}`
}

/** The reason of a probe, and the probes of its service that it fails because of: `no (because of dome)`. */
export function reasonOf({ origins }: Diagnosis, probe: ProbeResult, otherwise: string = probe.state) {
  const because = origins.get(probe)
  return `${probe.reason ?? otherwise}${because ? ` (because of ${because.join(', ')})` : ''}`
}
