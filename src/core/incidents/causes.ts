import type { ProbeResult } from '../health/probe.ts'

/** Findings of one round: one service's probes, or the daemon's conditions. */
export interface RoundReport {
  readonly service: string
  readonly probes: Readonly<Record<string, ProbeResult>>
}

/** A failing probe that no other one explains, with the other services that fail because of it. */
export interface Cause {
  /** The probe's name. */
  readonly cause: string
  readonly service: string
  readonly reason: string | undefined
  readonly affected: readonly string[]
}

/**
 * The root causes in one round. A probe that asks a service which itself fails is explained by that one; probes of the
 * same name in several services are one cause.
 */
export function causesOf(reports: readonly RoundReport[]): Cause[] {
  const failing = reports.flatMap(({ service, probes }) =>
    Object.entries(probes).flatMap(([probe, { state, reason }]) =>
      state === 'failing' ? [{ service, probe, reason }] : [],
    ),
  )
  type Failing = (typeof failing)[number]
  const rootsOf = (one: Failing, seen: readonly Failing[]): Failing[] => {
    const explained = failing.filter((other) => other.service === one.probe && !seen.includes(other))
    return explained.length === 0
      ? [one]
      : explained.flatMap((other) => rootsOf(other, [...seen, one, ...explained]))
  }
  const causes = new Map<string, Cause & { readonly affected: string[] }>()
  for (const one of failing)
    for (const root of rootsOf(one, [one])) {
      const known = causes.get(root.probe) ?? {
        cause: root.probe,
        service: root.service,
        reason: root.reason,
        affected: [],
      }
      causes.set(root.probe, known)
      if (one.service !== known.service && !known.affected.includes(one.service))
        known.affected.push(one.service)
    }
  return [...causes.values()]
}

/** For each cause, how many rounds in a row found it failing (positive) or well (negative). */
export type Streaks = ReadonlyMap<string, number>

export interface RoundOutcome {
  readonly streaks: Streaks
  /** Causes that failed twice in a row: each opens an incident. */
  readonly opens: readonly Cause[]
  /** Causes that were well twice in a row: each closes its incident. */
  readonly closes: readonly string[]
}

/** Rounds in a row that open an incident, and that close it. */
const ROUNDS = 2

/**
 * Decides which incidents a round opens and closes. Only probes that the round ran count: those of other
 * machines are neither passing nor failing.
 */
export function followRound({
  streaks,
  reports,
  open,
  isKnown = () => true,
}: {
  readonly streaks: Streaks
  readonly reports: readonly RoundReport[]
  /** Causes of the incidents that are open. */
  readonly open: readonly string[]
  /** False for a cause that nothing checks any more, because it was removed from the definition. */
  readonly isKnown?: ((cause: string) => boolean) | undefined
}): RoundOutcome & { readonly causes: readonly Cause[] } {
  const causes = causesOf(reports)
  const failing = new Set(causes.map(({ cause }) => cause))
  const next = new Map<string, number>()
  for (const { cause } of causes) next.set(cause, Math.max(0, streaks.get(cause) ?? 0) + 1)
  const looked = new Set(reports.flatMap(({ probes }) => Object.keys(probes)))
  for (const cause of new Set([...streaks.keys(), ...open])) {
    if (failing.has(cause)) continue
    // Not checked in this round, so neither better nor worse.
    if (!looked.has(cause) && isKnown(cause)) next.set(cause, streaks.get(cause) ?? 0)
    else if (open.includes(cause)) next.set(cause, Math.min(0, streaks.get(cause) ?? 0) - 1)
  }
  return {
    causes,
    streaks: next,
    opens: causes.filter(({ cause }) => (next.get(cause) ?? 0) >= ROUNDS && !open.includes(cause)),
    closes: open.filter((cause) => (next.get(cause) ?? 0) <= -ROUNDS),
  }
}
