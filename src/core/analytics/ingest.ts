import { createHash } from 'node:crypto'
import { DAY_MS } from '../durations.ts'
import type { Clock } from '../host.ts'
import type { AnalyticsEvent, EventDefinition } from './events.ts'
import { createSanitiser, type DropReason } from './sanitise.ts'
import type { AnalyticsBudget, AnalyticsStore, DayCount, Refusal } from './store.ts'
import { createBudget, dayOf, REFUSALS } from './store.ts'

/** How long events are kept: 13 months, which is a year and the month to compare it with. */
export const RETENTION_DAYS = 395
/** How far ahead a device's clock may run. A later event comes from a wrong clock. */
const AHEAD_MS = DAY_MS

/** Where events go: a store, or the reason why there is none. */
export type Destination =
  | { readonly store: () => Promise<AnalyticsStore> }
  | { readonly store: undefined; readonly reason: string }

export function createIngest(input: {
  readonly destination: Destination
  readonly events: readonly EventDefinition[]
  readonly budget: AnalyticsBudget
  readonly clock: Clock
  /** Called for every batch that was not stored for lack of room. */
  readonly onRefused?: (refusal: Refusal) => void
}) {
  const { destination, events: kinds, budget, clock, onRefused = () => {} } = input
  const sanitise = createSanitiser(kinds)
  const keeper = createBudget(clock, budget)
  const oldest = (now: number) => now - RETENTION_DAYS * DAY_MS
  let prunedOn: number | undefined
  /** Prunes once a day without delaying an answer; after a failure, again with the next batch. */
  const pruneDaily = (store: AnalyticsStore, now: number) => {
    const day = dayOf(now)
    if (prunedOn === day) return
    prunedOn = day
    store.prune(oldest(now)).catch(() => {
      prunedOn = undefined
    })
  }
  return {
    /**
     * The answer of CONTRACT §4: accepted events are durable when `stored` is true; `reason` says why it is not.
     * `objects`: the request carried a Global Privacy Control signal. `client`: whose share of the day it counts for.
     */
    async take(
      batch: { readonly id: string | undefined; readonly events: readonly unknown[] },
      { objects, client }: { readonly objects: boolean; readonly client?: string | undefined },
    ) {
      if (objects) {
        const dropped = batch.events.length > 0 ? { opted_out: batch.events.length } : {}
        return { accepted: 0, dropped, stored: false, reason: 'Global Privacy Control is on' }
      }
      const now = clock.now()
      const dropped: Partial<Record<DropReason, number>> = {}
      const drop = (reason: DropReason) => {
        dropped[reason] = (dropped[reason] ?? 0) + 1
      }
      const events: AnalyticsEvent[] = []
      for (const value of batch.events) {
        const event = sanitise(value, drop)
        if (event === undefined) continue
        if (event.at > now + AHEAD_MS || event.at < oldest(now)) drop('time_out_of_range')
        else events.push(event)
      }
      const answer = { accepted: events.length, dropped }
      if (destination.store === undefined) return { ...answer, stored: false, reason: destination.reason }
      if (events.length === 0) return { ...answer, stored: false, reason: 'no event is left to store' }
      const store = await destination.store()
      const refusal = await keeper.refusal(store, client)
      // Prune after this refusal too: a full store stays full until old batches are deleted.
      if (refusal === 'total') pruneDaily(store, now)
      if (refusal !== undefined) {
        onRefused(refusal)
        return { ...answer, stored: false, reason: REFUSALS[refusal] }
      }
      // A digest, because what a client wrote there is not kept.
      const id =
        batch.id === undefined ? undefined : createHash('sha256').update(batch.id).digest().subarray(0, 16)
      const outcome = await store.append({ id, receivedAt: now, events, counts: countByDay(events) })
      pruneDaily(store, now)
      if (outcome.kind === 'repeated')
        return { ...answer, stored: true, reason: 'this batch was stored before' }
      keeper.spend(outcome.bytes, client)
      return { ...answer, stored: true }
    },
    async size() {
      if (destination.store === undefined) return undefined
      return (await keeper.look(await destination.store())).total
    },
    /** Why events are not being stored, as last seen; undefined while there is room. */
    full() {
      const refusal = keeper.full()
      return refusal && REFUSALS[refusal]
    },
    async prune() {
      if (destination.store !== undefined) await (await destination.store()).prune(oldest(clock.now()))
    },
  }
}

/** Counts events by day and kind. It runs for every event, and a batch may be scattered over months. */
function countByDay(events: readonly AnalyticsEvent[]): DayCount[] {
  const days = new Map<number, Map<string, number>>()
  for (const { kind, at } of events) {
    const day = dayOf(at)
    const kinds = days.get(day) ?? new Map<string, number>()
    days.set(day, kinds)
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  }
  return [...days].flatMap(([day, kinds]) => {
    const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
    return [...kinds].map(([kind, count]) => ({ day: date, kind, count }))
  })
}
