import { createHash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { type AnalyticsEvent, EVENT_KINDS, type EventKind } from './events.ts'
import { type DropReason, sanitiseEvent } from './sanitise.ts'
import type { AnalyticsStore, DayCount } from './store.ts'

const DAY_MS = 86_400_000
/** What is stored is kept for 13 months: a year, and the month to compare it with. */
export const RETENTION_DAYS = 395
/** A device's clock may run ahead so far; what comes from later is a wrong clock. */
const AHEAD_MS = DAY_MS

export interface Batch {
  readonly id: string | undefined
  readonly events: readonly unknown[]
}

/** The answer of CONTRACT §4: accepted events are durable when `stored` is true; `reason` says why it is not. */
export interface IngestAnswer {
  readonly accepted: number
  /** Events and properties that were left out, by reason. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>
  readonly stored: boolean
  readonly reason?: string
}

/** Where events go: a store, or the reason why there is none. */
export type Destination =
  | { readonly store: () => Promise<AnalyticsStore> }
  | { readonly store: undefined; readonly reason: string }

export interface Ingest {
  /** `objects`: the request carried a Global Privacy Control signal, so nothing of it is kept. */
  take(batch: Batch, options: { readonly objects: boolean }): Promise<IngestAnswer>
  /** Removes what has been kept for its time. */
  prune(): Promise<void>
}

export function createIngest({
  destination,
  clock,
}: {
  readonly destination: Destination
  readonly clock: Clock
}): Ingest {
  const oldest = (now: number) => now - RETENTION_DAYS * DAY_MS
  let prunedOn: number | undefined
  /** Once a day beside the answers, for a platform that nothing schedules; a failure is tried with the next batch. */
  const pruneDaily = (store: AnalyticsStore, now: number) => {
    const day = Math.floor(now / DAY_MS)
    if (prunedOn === day) return
    prunedOn = day
    store.prune(oldest(now)).catch(() => {
      prunedOn = undefined
    })
  }
  return {
    async take(batch, { objects }) {
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
        const event = sanitiseEvent(value, drop)
        if (event === undefined) continue
        if (event.at > now + AHEAD_MS || event.at < oldest(now)) drop('time_out_of_range')
        else events.push(event)
      }
      const answer = { accepted: events.length, dropped }
      if (destination.store === undefined) return { ...answer, stored: false, reason: destination.reason }
      if (events.length === 0) return { ...answer, stored: false, reason: 'no event is left to store' }
      const store = await destination.store()
      const outcome = await store.append({
        id: batch.id === undefined ? undefined : digest(batch.id),
        receivedAt: now,
        events,
        counts: countByDay(events),
      })
      pruneDaily(store, now)
      return outcome === 'stored'
        ? { ...answer, stored: true }
        : { ...answer, stored: true, reason: 'this batch was stored before' }
    },
    async prune() {
      if (destination.store !== undefined) await (await destination.store()).prune(oldest(clock.now()))
    },
  }
}

/** A digest and not the id: what a client wrote there is not kept. */
function digest(id: string): Uint8Array {
  return createHash('sha256').update(id).digest().subarray(0, 16)
}

/** One number for a day and a kind: a batch may be scattered over months, and this is done for every event. */
function countByDay(events: readonly AnalyticsEvent[]): DayCount[] {
  const counts = new Map<number, number>()
  for (const { kind, at } of events) {
    const cell = Math.floor(at / DAY_MS) * EVENT_KINDS.length + (KIND_INDEX.get(kind) ?? 0)
    counts.set(cell, (counts.get(cell) ?? 0) + 1)
  }
  return [...counts].map(([cell, count]) => ({
    day: new Date(Math.floor(cell / EVENT_KINDS.length) * DAY_MS).toISOString().slice(0, 10),
    // The remainder is an index of the list.
    kind: EVENT_KINDS[cell % EVENT_KINDS.length] as EventKind,
    count,
  }))
}

const KIND_INDEX: ReadonlyMap<EventKind, number> = new Map(EVENT_KINDS.map((kind, index) => [kind, index]))
