import type { Clock } from '../clock.ts'
import { type AnalyticsStore, type AnalyticsUsage, dayOf } from './store.ts'

export interface AnalyticsBudget {
  readonly totalBytes: number
  readonly dailyBytes: number
}

/** Why events are not stored now. */
export type Refusal = 'disk' | 'total' | 'day' | 'client'

export const REFUSALS: Readonly<Record<Refusal, string>> = {
  disk: 'the disk of the store is nearly full, so events are not stored',
  total: 'the storage budget of analytics (ANALYTICS_TOTAL_MB) is used up, so events are not stored',
  day: 'the storage budget of the day (ANALYTICS_DAILY_MB) is used up, so events are not stored until tomorrow',
  client: 'this client has used its share of the day, so its events are not stored until tomorrow',
}

export interface BudgetKeeper {
  /** Why nothing of this client can be stored now; undefined when it can. */
  refusal(store: Pick<AnalyticsStore, 'usage'>, client: string | undefined): Promise<Refusal | undefined>
  /** Counts bytes that were stored for a client. */
  spend(bytes: number, client: string | undefined): void
  /** Reads the usage anew, for callers that store nothing. */
  look(store: Pick<AnalyticsStore, 'usage'>): Promise<AnalyticsUsage>
  /** Why nobody's events are stored, as last seen; undefined while there is room. */
  full(): Exclude<Refusal, 'client'> | undefined
}

/**
 * One client may use a day's budget divided by this, so that a client that floods leaves most of it to
 * others.
 */
const CLIENT_PART = 8
/** Clients beyond this number in a day share one share. */
const MOST_CLIENTS = 10_000
/** Usage is read this often; in between, this process adds what it stores itself. */
const READ_EVERY_MS = 10_000
/** The free disk space that analytics leave to everything else: this, or a fifth of a small disk. */
const DISK_RESERVE_BYTES = 1024 ** 3
const DISK_RESERVE_PART = 5

/** Keeps events from filling the disk that subscriptions are on (docs/limits.md). */
export function createBudget(input: {
  readonly budget: AnalyticsBudget
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
}): BudgetKeeper {
  const { budget, clock } = input
  let known: { readonly day: number; readonly until: number; used: AnalyticsUsage } | undefined
  let shares = { day: 0, spent: new Map<string, number>() }

  const keyOf = (client: string) =>
    shares.spent.has(client) || shares.spent.size < MOST_CLIENTS ? client : 'others'
  const spentBy = (client: string): number => {
    const day = dayOf(clock.now())
    if (shares.day !== day) shares = { day, spent: new Map() }
    return shares.spent.get(keyOf(client)) ?? 0
  }

  async function look(store: Pick<AnalyticsStore, 'usage'>): Promise<AnalyticsUsage> {
    const day = dayOf(clock.now())
    const used = await store.usage(day)
    known = { day, until: clock.monotonic() + READ_EVERY_MS, used }
    return used
  }

  function full(): Exclude<Refusal, 'client'> | undefined {
    if (known === undefined) return undefined
    const { total, today, disk } = known.used
    if (disk && disk.free < Math.min(DISK_RESERVE_BYTES, disk.size / DISK_RESERVE_PART)) return 'disk'
    if (total >= budget.totalBytes) return 'total'
    return known.day === dayOf(clock.now()) && today >= budget.dailyBytes ? 'day' : undefined
  }

  return {
    async refusal(store, client) {
      const current = known && known.day === dayOf(clock.now()) && clock.monotonic() < known.until
      if (!current) await look(store)
      const all = full()
      if (all !== undefined) return all
      const share = budget.dailyBytes / CLIENT_PART
      return client !== undefined && spentBy(client) >= share ? 'client' : undefined
    },
    spend(bytes, client) {
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
