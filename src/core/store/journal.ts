import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../audit.ts'
import type { Suppression } from '../mail/feedback/mailbox.ts'

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

const WHATS: ReadonlySet<string> = new Set<JournalEntry['what']>([
  'unsubscribed',
  'undone',
  'erased',
  'suppressed',
  'released',
  'audited',
  'anchor',
])

/** The name in `meta` of the id that ties a store and its backups to their journal. */
export const ANCHOR = 'journal_anchor'

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
    const entry = JSON.parse(line) as JournalEntry
    return WHATS.has(entry.what) ? entry : undefined
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
