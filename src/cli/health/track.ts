import { type RemoteState, stateOf, type Verdict } from '../../core/health/verdict.ts'

/** Memory of `--watch` for one service. */
export interface StateHistory {
  readonly state: RemoteState
  /** When it came into this state, in UTC milliseconds; at first, when the watch began. */
  readonly since: number
  /** Oldest first; `ms` is undefined where there was no answer. */
  readonly points: readonly { readonly ms: number | undefined; readonly state: RemoteState }[]
}

const MOST_POINTS = 40

/** Adds one round to the tracks; gives new ones. */
export function follow(
  tracks: ReadonlyMap<string, StateHistory>,
  { results }: Verdict,
  now: number,
): ReadonlyMap<string, StateHistory> {
  return new Map(
    results.map((health) => {
      const before = tracks.get(health.service)
      const state = stateOf(health)
      const point = { ms: health.reached ? health.phases.total : undefined, state }
      return [
        health.service,
        {
          state,
          since: before?.state === state ? before.since : now,
          points: [...(before?.points ?? []), point].slice(-MOST_POINTS),
        },
      ]
    }),
  )
}

/** One round: every service asked at once, each for at most `timeoutMs`. */
export type Ask = (timeoutMs: number) => Promise<Verdict>
