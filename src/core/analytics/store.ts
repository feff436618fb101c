import { DAY_MS } from '../durations.ts'
import type { AnalyticsEvent, EventKind } from './events.ts'

/** The day of a time in UTC milliseconds, counted from 1970. */
export function dayOf(time: number): number {
  return Math.floor(time / DAY_MS)
}

/** How often a kind happened on a day (`2026-11-21`, UTC). */
export interface DayCount {
  readonly day: string
  readonly kind: EventKind
  readonly count: number
}

export interface StoredBatch {
  /** A digest of the batch's id; undefined when the batch has none, and a resend cannot be known. */
  readonly id: Uint8Array | undefined
  /** UTC milliseconds, by the server's clock. */
  readonly receivedAt: number
  /** Sanitised, not empty. */
  readonly events: readonly AnalyticsEvent[]
  /** The counts of these events. */
  readonly counts: readonly DayCount[]
}

export interface AnalyticsStatus {
  readonly kind: 'sqlite' | 'postgres'
  readonly table: string
  readonly batches: number
  readonly events: number
  readonly bytes: number | undefined
}

/** Space that a store of analytics takes up. */
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
  append(
    batch: StoredBatch,
  ): Promise<{ readonly kind: 'stored'; readonly bytes: number } | { readonly kind: 'repeated' }>
  /**
   * The usage in total and of one day, which counts from 1970 in UTC. Cheap: it adds up one row for each day.
   */
  usage(day: number): Promise<AnalyticsUsage>
  /** By day, then by kind; `since` is a day and included. */
  counts(since: string | undefined): Promise<readonly DayCount[]>
  /** Removes what was received before a time, a few batches a step so that nothing waits long for it. */
  prune(before: number): Promise<void>
  status(): Promise<AnalyticsStatus>
  /** A real read. */
  ping(): Promise<void>
  close(): Promise<void>
}
