import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../audit.ts'
import { isRecord } from '../is-record.ts'
import type { Suppression } from '../mail/feedback/mailbox.ts'
import { StoreMaintenanceError } from './errors.ts'

/** The ids of the rows that the erasure of a person deletes. */
export interface ErasedRows {
  readonly subscription: string | undefined
  /** Enrolments in further courses; missing where a build that knew only one course wrote it. */
  readonly others?: readonly string[]
  readonly invites: readonly string[]
  readonly logins: readonly string[]
}

/**
 * Entry of the journal of changes that must survive a restore: a backup is older than the unsubscribes, suppressions
 * and erasures that came after it. One JSON line each, with random ids and keyed hashes. Only suppressions name an
 * address, because the backup may not know it; an erasure removes those lines.
 */
export type JournalEntry =
  | {
      readonly what: 'unsubscribed' | 'undone'
      readonly at: number
      readonly id: string
      readonly enrolment: number
    }
  | { readonly what: 'erased'; readonly at: number; readonly hash: string; readonly rows: ErasedRows }
  | {
      readonly what: 'suppressed'
      readonly at: number
      readonly identity: string
      readonly suppression: Suppression
    }
  | { readonly what: 'released'; readonly at: number; readonly identity: string }
  | { readonly what: 'audited'; readonly at: number; readonly entry: AuditEntry }
  /** A store that this journal follows; its backups carry the same id. */
  | { readonly what: 'anchor'; readonly at: number; readonly id: string }

/** The journal beside a store. */
export interface Journal {
  /**
   * Call it within the transaction of the change: on the disk when it returns, all of them by one write. What cannot be
   * written is kept in the store by the same commit, and appended later.
   */
  add(...entries: readonly JournalEntry[]): void
  /** Takes out every line that names the address; false if it must wait until the file can be written. */
  forget(identity: string): boolean
  /** Appends what could not be written; throws while the file still cannot be. Like `add`, within a transaction. */
  catchUp(): void
  /** Ties backups to this journal, which then has every change that the store knows of. */
  anchor(now: number): void
}

/** UTC milliseconds that a date can have. */
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && !Number.isNaN(new Date(value).getTime())

/** An example of each kind of entry, to which one has to be like: a file from elsewhere may hold anything. */
const LIKE: Readonly<Record<JournalEntry['what'], object>> = {
  unsubscribed: { id: '', enrolment: 0 },
  undone: { id: '', enrolment: 0 },
  erased: { hash: '', rows: { 'subscription?': '', 'others?': [''], invites: [''], logins: [''] } },
  suppressed: { identity: '', suppression: { cause: '', at: 0, source: '', reason: '' } },
  released: { identity: '' },
  audited: { entry: { at: 0, id: '', action: '', who: '', place: '' } },
  anchor: { id: '' },
}

function isLike(value: unknown, example: unknown): boolean {
  if (Array.isArray(example)) return Array.isArray(value) && value.every((one) => isLike(one, example[0]))
  if (!isRecord(example))
    return typeof value === typeof example && (typeof value !== 'number' || isTime(value))
  return (
    isRecord(value) &&
    Object.entries(example).every(([name, one]) => {
      const found = value[name.replace('?', '')]
      return (found === undefined && name.endsWith('?')) || isLike(found, one)
    })
  )
}

/** The name in `meta` of the id that ties a store and its backups to their journal. */
export const ANCHOR = 'journal_anchor'

/** The name in `meta` of the lines that could not be written to the file. */
export const OWED = 'journal_owed'

/** `/data/platform.sqlite` → `/data/platform-journal.jsonl` */
export function journalFile(storeFile: string): string {
  const { dir, name } = path.parse(storeFile)
  return path.join(dir, `${name}-journal.jsonl`)
}

/** Each line starts with a line end too, so that a line torn by a power cut does not spoil the next one. */
export function linesOf(entries: readonly JournalEntry[]): string {
  return entries.map((entry) => `\n${JSON.stringify(entry)}\n`).join('')
}

/** Every entry in order; a torn line is left out. */
export function entriesOf(text: string): readonly JournalEntry[] {
  return text.split('\n').flatMap((line) => entryOf(line) ?? [])
}

/** The entries of a journal file; undefined if there is no such file. */
export function readJournal(file: string): readonly JournalEntry[] | undefined {
  return existsSync(file) ? entriesOf(readFileSync(file, 'utf8')) : undefined
}

export function entryOf(line: string): JournalEntry | undefined {
  try {
    const entry: unknown = JSON.parse(line)
    if (!isLike(entry, { what: '', at: 0 })) return undefined
    // Like an entry in what all of them have.
    const known = entry as JournalEntry
    return isLike(known, LIKE[known.what] ?? []) ? known : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether a journal has every change since a backup was made. One made by a build without anchors cannot prove it, and
 * any journal is believed.
 */
export function covers(entries: readonly JournalEntry[] | undefined, anchor: string | undefined): boolean {
  if (entries === undefined) return false
  return (
    anchor === undefined ||
    entries.some(({ what, ...entry }) => what === 'anchor' && 'id' in entry && entry.id === anchor)
  )
}

/** The entries of the journal that an operator names. */
export function readNamedJournal(file: string | undefined): readonly JournalEntry[] | undefined {
  const named = file === undefined ? undefined : readJournal(file)
  if (file !== undefined && named === undefined)
    throw new StoreMaintenanceError(`there is no file ${file}: name the journal of the replaced store.`)
  return named
}

/** No journal tells what happened since `state`. */
export function uncovered(state: string, why: string, fix: string): StoreMaintenanceError {
  return new StoreMaintenanceError(
    `${state}, and ${why}: people who unsubscribed, bounced or were erased since then would be mailed again. ${fix}, or accept that with --without-journal; nothing was changed.`,
  )
}
