import type { AuditEntry } from '../audit.ts'
import type { JournalEntry } from './journal.ts'

/** The name in `meta` of the time of the last backup. */
export const BACKUP_AT = 'backup_at'

/** Content of a file: the course and all that belongs to it, or the visitors' events. */
export type StoreContent = 'course' | 'analytics'

export interface MaintenanceStatus {
  readonly kind: 'sqlite' | 'postgres'
  /** File or server, without credentials. */
  readonly location: string
  /** The version of the schema; `latest` is the one that this build migrates to. */
  readonly version: number
  readonly latest: number
  /** Whether this build can run on the schema. A newer schema must itself declare that older builds can. */
  readonly readable: boolean
  readonly bytes: number
  /** Bytes in the write-ahead log that are not in the file yet; undefined for a store without such a log. */
  readonly walBytes: number | undefined
  /** Rows of each table. */
  readonly counts: Readonly<Record<string, number>>
  /** When `verify` last passed, in UTC milliseconds. */
  readonly verifiedAt: number | undefined
}

export interface MigrationStep {
  readonly version: number
  /** The beginning of each statement, such as `CREATE TABLE subscription`. */
  readonly statements: readonly string[]
}

export interface VerifyResult {
  readonly ok: boolean
  /** True: the file itself is corrupt. False: at most some rows are wrong, perhaps edited by hand. */
  readonly damaged: boolean
  /** Subscriptions looked at. */
  readonly checked: number
  /** Each names the row at fault; at most 100. */
  readonly faults: readonly string[]
  readonly moreFaults: number
}

export interface BackupResult {
  readonly file: string
  readonly bytes: number
  readonly version: number
  readonly counts: Readonly<Record<string, number>>
}

export interface BackupOptions {
  /** Public keys of age: the backup is encrypted for all of them. None: it is not encrypted. */
  readonly recipients: readonly string[]
}

/**
 * An operator's maintenance of a store: its state, migrations, checks and backups. Each adapter has its own.
 */
export interface StoreMaintenance {
  status(): Promise<MaintenanceStatus>
  /** The steps that `migrate` would run. */
  pending(): Promise<readonly MigrationStep[]>
  /** Runs them, each whole or absent, and answers how many. Refused while another migration holds the lock. */
  migrate(): Promise<{ readonly from: number; readonly to: number }>
  /** The adapter's own integrity check, and the invariants of the course; records the time when all hold. */
  verify(now: number): Promise<VerifyResult>
  /** A consistent copy, also under write load; complete under its name or not there at all. */
  backup(file: string, now: number, options?: BackupOptions): Promise<BackupResult>
  /** Who left the store, to be kept apart from it: a restore of an older state needs this. */
  journal(now: number): Promise<readonly JournalEntry[]>
  /** Operators' changes, newest first. */
  audit(limit: number): Promise<readonly AuditEntry[]>
  close(): Promise<void>
}

/** Maintenance of the file with visitors' events, beside an SQLite store. */
export type AnalyticsMaintenance = Pick<StoreMaintenance, 'verify' | 'backup' | 'close'>

/** The migration steps after a version, each listed by the beginnings of its statements. */
export function stepsFrom(migrations: readonly string[], version: number): readonly MigrationStep[] {
  return migrations.slice(version).map((sql, index) => ({
    version: version + index + 1,
    statements: statementsOf(sql).map((statement) => statement.split(/\s*[\n(]/)[0] ?? ''),
  }))
}

/** The statements of a step; one within a trigger ends in the middle of a line. */
export function statementsOf(sql: string): readonly string[] {
  return sql
    .split(/;[^\S\n]*(?:\n|$)/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}
