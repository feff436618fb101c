import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { recordFile } from './daemon-places.ts'
import { postgresLocation } from './env/postgres-url.ts'
import type { StoreAddress } from './env/settings.ts'
import { codeOf } from './error-code.ts'
import type { Service } from './service.ts'

/** A daemon's description of itself in its data folder, without any secret, for commands that use the same store. */
export interface DaemonRecord {
  readonly version: 1
  readonly pid: number
  readonly host: string
  readonly startedAt: string
  /** When it stopped in an orderly way. */
  readonly stoppedAt?: string
  readonly build: string | null
  /** Absent in the record of an older build. */
  readonly platform?: RecordedPlatform
  readonly store: RecordedStore
  /** Absolute paths, in the order in which they were read. */
  readonly envFiles: readonly string[]
  readonly schedule: boolean
  /** Where each service listens. */
  readonly urls: Readonly<Partial<Record<Service, string>>>
}

export interface RecordedPlatform {
  readonly name: string
  /** The absolute path of the definition; null for the default platform. */
  readonly definition: string | null
  readonly fingerprint: string | null
}

export interface RecordedStore {
  readonly kind: 'sqlite' | 'postgres'
  /** The file, or `host:port/database`: never a user or a password. */
  readonly location: string
}

/** A store as it may be shown and compared. */
export function recordedStore(address: StoreAddress): RecordedStore {
  if (address.kind === 'sqlite') return { kind: 'sqlite', location: path.resolve(address.file) }
  return { kind: 'postgres', location: postgresLocation(address.url.reveal()) }
}

/** Writes the record whole or not at all; readable by its owner only. */
export function writeRecord(folder: string, record: DaemonRecord): void {
  const file = recordFile(folder)
  const scratch = `${file}.${process.pid}`
  writeFileSync(scratch, `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600 })
  chmodSync(scratch, 0o600)
  renameSync(scratch, file)
}

/** The last record of the daemon that owns a folder; undefined if there is none, or it cannot be read. */
export function readRecord(folder: string): DaemonRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(folder), 'utf8')) as DaemonRecord
    return record.version === 1 && typeof record.store?.location === 'string' ? record : undefined
  } catch {
    return undefined
  }
}

/** Whether the recorded daemon is running on this machine. */
export function isRunning({ pid, stoppedAt }: Pick<DaemonRecord, 'pid' | 'stoppedAt'>): boolean {
  if (stoppedAt !== undefined || hasEnded(pid)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process may not be signalled, but it is there.
    return codeOf(error) === 'EPERM'
  }
}

/** Whether a process has ended. Linux keeps its number until its parent has looked. */
function hasEnded(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
