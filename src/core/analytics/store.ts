import { DAY_MS } from '../durations.ts'
import type { Clock } from '../host.ts'
import type { AnalyticsEvent, EventKind } from './events.ts'

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
