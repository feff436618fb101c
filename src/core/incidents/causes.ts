import type { ProbeResult } from '../health/probe.ts'
import { type Prerequisites, rootsOf } from '../health/verdict.ts'
import type { StoredIncident } from './incident.ts'
import { dependsOn, NO_PREREQUISITES } from './prerequisites.ts'

/** Findings of one round: one service's probes, or the daemon's conditions. */
export interface RoundReport {
  readonly service: string
  readonly probes: Readonly<Record<string, ProbeResult>>
}

/** A failing probe that no other one explains, with what else fails because of it. */
export type Cause = Pick<StoredIncident, 'cause' | 'service' | 'reason' | 'affected'>

export interface Failing {
  readonly service: string
  readonly probe: string
  readonly reason?: string | undefined
}

/** The root causes of each failing probe: itself if nothing explains it, in its service or in what it depends on. */
export function rootCauses(failing: readonly Failing[], prerequisites: Prerequisites) {
  return rootsOf(failing, (one) =>
    failing.filter(
      (other) =>
        other.probe !== one.probe && (other.service === one.probe || dependsOn(prerequisites, one, other)),
    ),
  )
}

/** Probes of the same name in several services are one cause. */
function causesIn(found: ReturnType<typeof rootCauses>): Cause[] {
  const causes = new Map<string, Cause & { readonly affected: string[] }>()
  for (const [one, roots] of found)
    for (const { service, probe: cause, reason } of roots) {
      const known = causes.get(cause) ?? { cause, service, reason, affected: [] }
      causes.set(cause, known)
      for (const name of [one.service, one.probe])
        if (![known.service, cause, ...known.affected].includes(name)) known.affected.push(name)
    }
  return [...causes.values()]
}

/** For each cause, how many rounds in a row found it failing (positive) or well (negative). */
export type Streaks = ReadonlyMap<string, number>

/** Rounds in a row that open an incident, and that close it. */
const ROUNDS = 2
/** What depends on a probe that only other processes check waits for one more: their round comes within a minute. */
const ROUNDS_WITH_OTHERS = 3

/**
 * Decides which incidents a round opens and closes. Only probes that the round ran count: those of other
 * machines are neither passing nor failing. What fails because of another probe opens no incident, and does not end one.
 */
export function followRound(input: {
  readonly streaks: Streaks
  readonly reports: readonly RoundReport[]
  readonly open: readonly string[]
  readonly prerequisites?: Prerequisites | undefined
  /** Of the open incidents those that only other processes check, and still see. */
  readonly elsewhere?: readonly Pick<Cause, 'cause' | 'service' | 'reason'>[] | undefined
  /** True for a probe that only other processes check. */
  readonly isCheckedElsewhere?: ((probe: string) => boolean) | undefined
  /** False for a cause that nothing checks any more, because it was removed from the definition. */
  readonly isKnown?: ((cause: string) => boolean) | undefined
}) {
  const { streaks, reports, open, prerequisites = NO_PREREQUISITES, elsewhere = [] } = input
  const { isCheckedElsewhere = () => false, isKnown = () => true } = input
  const own = reports.flatMap(({ service, probes }) =>
    Object.entries(probes).flatMap(([probe, { state, reason }]): readonly Failing[] =>
      state === 'failing' ? [{ service, probe, reason }] : [],
    ),
  )
  const others = elsewhere.map(({ cause, service, reason }) => ({ service, probe: cause, reason }))
  const roots = rootCauses([...own, ...others], prerequisites)
  const { here: causes = [], there = [] } = Object.groupBy(causesIn(roots), ({ cause }) =>
    elsewhere.some((one) => one.cause === cause) ? 'there' : 'here',
  )
  const next = new Map<string, number>()
  const roundsOf = (cause: string) =>
    [...(prerequisites.get(cause) ?? [])].some(isCheckedElsewhere) ? ROUNDS_WITH_OTHERS : ROUNDS
  /** Rounds in a row until now; an incident that an operator resolved opens again after as many as the first time. */
  const streakOf = (cause: string) => {
    const streak = Math.max(0, streaks.get(cause) ?? 0)
    return streak >= roundsOf(cause) && !open.includes(cause) ? 0 : streak
  }
  for (const { cause } of causes) next.set(cause, streakOf(cause) + 1)
  const followers: Cause[] = []
  for (const one of own) {
    const { probe: cause, service, reason } = one
    if (next.has(cause)) continue
    const isOpening = (probe: string) => (next.get(probe) ?? 0) >= roundsOf(probe)
    const isTold = roots.get(one)?.some(({ probe }) => open.includes(probe) || isOpening(probe))
    // Start counting anew when its root works again; but a root that fails only now and then must not hide it for ever.
    next.set(cause, isTold ? 0 : streakOf(cause))
    if (open.includes(cause)) followers.push({ cause, service, reason, affected: [] })
  }
  const looked = new Set(reports.flatMap(({ probes }) => Object.keys(probes)))
  for (const cause of new Set([...streaks.keys(), ...open])) {
    if (next.has(cause)) continue
    // Not checked in this round, so neither better nor worse.
    if (!looked.has(cause) && isKnown(cause)) next.set(cause, streaks.get(cause) ?? 0)
    else if (open.includes(cause)) next.set(cause, Math.min(0, streaks.get(cause) ?? 0) - 1)
  }
  return {
    /** What this round found failing: the root causes, and what has an incident from before its root cause failed. */
    failing: [...causes, ...followers],
    /** What this round found failing because of the incidents that other processes see. */
    elsewhere: there,
    streaks: next as Streaks,
    /** Causes that failed often enough in a row: each opens an incident. */
    opens: causes.filter(({ cause }) => (next.get(cause) ?? 0) >= roundsOf(cause) && !open.includes(cause)),
    /** Causes that were well twice in a row: each closes its incident. */
    closes: open.filter((cause) => (next.get(cause) ?? 0) <= -ROUNDS),
  }
}
