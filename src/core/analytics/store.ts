import { createHash } from 'node:crypto'
import { DAY_MS } from '../durations.ts'
import type { Clock } from '../host.ts'
import type { AnalyticsEvent, EventDefinition, EventKind } from './events.ts'
import { createSanitiser, type DropReason } from './sanitise.ts'

/** The day of a time in UTC milliseconds, counted from 1970. */
export const dayOf = (time: number) => Math.floor(time / DAY_MS)

/** How often a kind happened on a day (`2026-11-21`, UTC). */
export interface DayCount {
  readonly day: string
  readonly kind: EventKind
  readonly count: number
}

export interface AnalyticsUsage {
  /** Bytes of events and counts, of everything that is kept and of one day. */
  readonly total: number
  readonly today: number
  /** Bytes of the disk that it is on, where this machine can see it. */
  readonly disk: { readonly free: number; readonly size: number } | undefined
}

/** Where ingest keeps what it took. Opened by `core/store/open.ts`. */
export interface AnalyticsStore {
  /** Durable when it resolves; `repeated`: a batch of this id is there already, and nothing was changed. */
  append(batch: {
    /** A digest of the batch's id; undefined when the batch has none, and a resend cannot be known. */
    readonly id: Uint8Array | undefined
    /** UTC milliseconds, by the server's clock. */
    readonly receivedAt: number
    /** Sanitised, not empty. */
    readonly events: readonly AnalyticsEvent[]
    readonly counts: readonly DayCount[]
  }): Promise<{ readonly kind: 'stored'; readonly bytes: number } | { readonly kind: 'repeated' }>
  /** The usage in total and of one day, which counts from 1970 in UTC. Cheap: it adds up one row for each day. */
  usage(day: number): Promise<AnalyticsUsage>
  /** By day, then by kind; `since` is a day and included. */
  counts(since: string | undefined): Promise<readonly DayCount[]>
  /** Removes what was received before a time, a few batches a step so that nothing waits long for it. */
  prune(before: number): Promise<void>
  status(): Promise<{
    readonly kind: 'sqlite' | 'postgres'
    readonly table: string
    readonly batches: number
    readonly events: number
    readonly bytes: number | undefined
  }>
  ping(): Promise<void>
  close(): Promise<void>
}

export type AnalyticsBudget = Readonly<Record<'totalBytes' | 'dailyBytes', number>>

export type Refusal = 'disk' | 'total' | 'day' | 'client'

export const REFUSALS: Readonly<Record<Refusal, string>> = {
  disk: 'the disk of the store is nearly full, so events are not stored',
  total: 'the storage budget of analytics (ANALYTICS_TOTAL_MB) is used up, so events are not stored',
  day: 'the storage budget of the day (ANALYTICS_DAILY_MB) is used up, so events are not stored until tomorrow',
  client: 'this client has used its share of the day, so its events are not stored until tomorrow',
}

/** One client may use a day's budget divided by this, so that a client that floods leaves most of it to others. */
const CLIENT_PART = 8
/** Clients beyond this number in a day share one share. */
const MOST_CLIENTS = 10_000
/** Usage is read this often; in between, this process adds what it stores itself. */
const READ_EVERY_MS = 10_000
/** The free disk space that analytics leave to everything else: this, or a fifth of a small disk. */
const DISK_RESERVE_BYTES = 1024 ** 3
const DISK_RESERVE_PART = 5

/** Keeps events from filling the disk that subscriptions are on (docs/reference/limits.md). */
export function createBudget(clock: Pick<Clock, 'now' | 'monotonic'>, budget: AnalyticsBudget) {
  let known: { readonly day: number; readonly until: number; used: AnalyticsUsage } | undefined
  let shares = { day: 0, spent: new Map<string, number>() }

  const keyOf = (client: string) =>
    shares.spent.has(client) || shares.spent.size < MOST_CLIENTS ? client : 'others'
  const spentBy = (client: string): number => {
    const day = dayOf(clock.now())
    if (shares.day !== day) shares = { day, spent: new Map() }
    return shares.spent.get(keyOf(client)) ?? 0
  }

  /** Reads the usage anew, for callers that store nothing. */
  async function look(store: Pick<AnalyticsStore, 'usage'>): Promise<AnalyticsUsage> {
    const day = dayOf(clock.now())
    const used = await store.usage(day)
    known = { day, until: clock.monotonic() + READ_EVERY_MS, used }
    return used
  }

  /** Why nobody's events are stored, as last seen; undefined while there is room. */
  function full(): Exclude<Refusal, 'client'> | undefined {
    if (known === undefined) return undefined
    const { total, today, disk } = known.used
    if (disk && disk.free < Math.min(DISK_RESERVE_BYTES, disk.size / DISK_RESERVE_PART)) return 'disk'
    if (total >= budget.totalBytes) return 'total'
    return known.day === dayOf(clock.now()) && today >= budget.dailyBytes ? 'day' : undefined
  }

  return {
    /** Why nothing of this client can be stored now; undefined when it can. */
    async refusal(store: Pick<AnalyticsStore, 'usage'>, client: string | undefined) {
      const current = known && known.day === dayOf(clock.now()) && clock.monotonic() < known.until
      if (!current) await look(store)
      const isSpent = client !== undefined && spentBy(client) >= budget.dailyBytes / CLIENT_PART
      return full() ?? (isSpent ? 'client' : undefined)
    },
    spend(bytes: number, client: string | undefined): void {
      if (known) {
        const { total, today, disk } = known.used
        const left = disk && { ...disk, free: disk.free - bytes }
        known.used = { total: total + bytes, today: today + bytes, disk: left }
      }
      if (client === undefined) return
      const spent = spentBy(client)
      shares.spent.set(keyOf(client), spent + bytes)
    },
    look,
    full,
  }
}

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
