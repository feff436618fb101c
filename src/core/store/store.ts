import type { AuditLog } from '../audit.ts'
import type { HourStore } from '../course/hours.ts'
import type { CourseStore } from '../course/store.ts'
import type { HeartbeatStore } from '../heartbeats.ts'
import type { IncidentStore } from '../incidents/incident.ts'
import type { Directory } from '../mail/definition.ts'
import type { SendingStore } from '../mail/feedback/sending.ts'
import type { FeedbackStore } from '../mail/feedback/store.ts'
import type { SentMailStore } from '../mail/send-once.ts'
import type { PaymentEventStore } from '../payments/webhook.ts'

export interface StoreSchema {
  readonly version: number
  /** The version that this build migrates to. */
  readonly latest: number
  /** The name of the platform that has claimed it; absent before one has, or if it was not asked for. */
  readonly owner?: string | undefined
}

export interface StoreStatus {
  readonly kind: Store['kind']
  /** The version of the schema; `latest` is the one that this build migrates to. */
  readonly version: number
  readonly latest: number
  readonly bytes: number | undefined
  /** When `db backup` last made a backup of it, in UTC milliseconds. */
  readonly backupAt: number | undefined
}

/** The platform that a store belongs to, by its name. */
export interface StoreOwner {
  /** Undefined until a platform has claimed the store. */
  name(): Promise<string | undefined>
  /** The first platform to claim a store keeps it, until another adopts it. Gives the name of the one that has it. */
  claim(platform: string, options?: { readonly adopt?: boolean | undefined }): Promise<string>
}

/** Where the platform keeps what must outlive a process. Opened by `open.ts`, which alone names the adapters. */
export interface Store extends HourStore {
  readonly kind: 'memory' | 'sqlite' | 'postgres'
  /** False for the in-memory fallback: dispatch refuses it. */
  readonly persistent: boolean
  readonly course: CourseStore
  readonly directory: Directory
  readonly sentMail: SentMailStore
  readonly paymentEvents: PaymentEventStore
  /** The log of operators' actions. */
  readonly audit: AuditLog
  /** Incidents, and the alerts that were sent about them. */
  readonly incidents: IncidentStore
  readonly heartbeats: HeartbeatStore
  readonly owner: StoreOwner
  readonly feedback: FeedbackStore
  readonly sending: SendingStore
  lastHour(): Promise<string | undefined>
  /** The clock that leases are measured by, in UTC milliseconds: the server's, where there is one. */
  readonly time?: () => Promise<number>
  /** The value stored under a name; the first caller makes it. */
  getOrCreate(name: string, make: () => string): Promise<string>
  /** Notes what a replica runs with, as one text, and gives those of the others that were seen within three minutes. */
  noteConfiguration(replica: string, configuration: string, now: number): Promise<readonly string[]>
  /**
   * A real write and a real read; rejects while its disk is full, or after a damaged page was met. `pages` also reads
   * every page, where the store is a file of its own.
   */
  ping(options?: { readonly pages?: boolean }): Promise<void>
  status(): Promise<StoreStatus>
  close(): Promise<void>
}

/**
 * A file's disk did not confirm a write, so nothing in it is trusted: it has closed itself, everything asked of it is
 * `store_unavailable`, and only opening it anew (best in a new process) makes it usable again.
 */
export type OnLost = (cause: unknown) => void
