import type { CourseStore } from '../course/store.ts'
import type { Log } from '../host.ts'
import { directory, paymentEvents, sentMail } from './account.ts'
import { confirmations } from './confirmations.ts'
import { counts } from './counts.ts'
import { dispatch, type RowByRow } from './dispatch.ts'
import { enrolments } from './enrolments.ts'
import { erasure } from './erasure.ts'
import { feedback } from './feedback.ts'
import { incidents } from './incidents.ts'
import { heartbeats, hours } from './jobs.ts'
import { messages } from './messages.ts'
import { plans } from './plans.ts'
import type { OnMigrate, StoreSchema } from './schema.ts'
import { sending } from './sending.ts'
import { meta, type Sql } from './sql.ts'

/** Where the platform keeps what must outlive a process. */
export interface Store extends ReturnType<typeof operations> {
  readonly kind: 'memory' | 'sqlite' | 'postgres'
  /** False for the in-memory fallback: dispatch refuses it. */
  readonly persistent: boolean
  /** A real write and read; rejects on a full disk, or after damage was met. `pages`: reads every page of a file. */
  ping(options?: { readonly pages?: boolean }): Promise<void>
  status(): Promise<StoreStatus>
  close(): Promise<void>
}

interface StoreStatus extends Pick<StoreSchema, 'version' | 'latest'> {
  readonly kind: Store['kind']
  readonly bytes: number | undefined
  /** When `db backup` last made a backup of it, in UTC milliseconds. */
  readonly backupAt: number | undefined
}

export interface StoreOptions {
  readonly poolSize?: number
  readonly log?: Log
  readonly onLost?: OnLost | undefined
  /** Milliseconds by which leases are measured; default: a clock that everything that shares the store agrees on. */
  readonly leaseClock?: (() => number) | undefined
  /** Refuses a database without a store instead of making one. */
  readonly mustExist?: boolean
  readonly onMigrate?: OnMigrate | undefined
}

/** A file's disk did not confirm a write: the file has closed itself, and is `store_unavailable` until it is opened anew, best in a new process. */
export type OnLost = (cause: unknown) => void

export function operations(sql: Sql, rowByRow?: RowByRow) {
  const course: CourseStore = {
    ...confirmations(sql),
    ...enrolments(sql),
    ...messages(sql),
    ...counts(sql),
    ...erasure(sql),
    ...plans(sql),
    ...sentMail(sql),
    ...dispatch(sql, rowByRow),
  }
  return {
    course,
    feedback: feedback(sql),
    sending: sending(sql),
    directory: directory(sql),
    sentMail: sentMail(sql),
    paymentEvents: paymentEvents(sql),
    incidents: incidents(sql),
    heartbeats: heartbeats(sql),
    ...meta(sql),
    ...hours(sql),
  }
}
