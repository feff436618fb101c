import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../../audit.ts'
import type { Suppression } from '../../mail/feedback/mailbox.ts'
import type { ErasedRows } from './erase.ts'

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

export interface Journal {
  /** On the disk when it returns: all of them by one write. */
  add(...entries: readonly JournalEntry[]): void
  /** Takes out every line that names the address. Like `add`, only while the store's write lock is held. */
  forget(identity: string): void
}

const WHATS: ReadonlySet<string> = new Set<JournalEntry['what']>([
  'unsubscribed',
  'undone',
  'erased',
  'suppressed',
  'released',
  'audited',
])

/** `/data/platform.sqlite` → `/data/platform-journal.jsonl` */
export function journalFile(storeFile: string): string {
  const { dir, name } = path.parse(storeFile)
  return path.join(dir, `${name}-journal.jsonl`)
}

/** The journal beside a store; a store in memory has none. */
export function openJournal(storeFile: string | undefined): Journal {
  return {
    add(...entries) {
      if (storeFile === undefined || entries.length === 0) return
      const descriptor = openSync(journalFile(storeFile), 'a', 0o600)
      try {
        // Start with a line end too, so that a line torn by a power cut does not spoil the next one.
        writeSync(descriptor, entries.map((entry) => `\n${JSON.stringify(entry)}\n`).join(''))
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
    },
    forget(identity) {
      if (storeFile === undefined) return
      const file = journalFile(storeFile)
      if (!existsSync(file)) return
      const lines = readFileSync(file, 'utf8').split('\n')
      const kept = lines.filter((line) => !names(entryOf(line), identity))
      if (kept.length < lines.length) replaceFile(file, kept.join('\n'))
    },
  }
}

/** Every entry in order; a torn line is left out. */
export function readJournal(storeFile: string): readonly JournalEntry[] {
  const file = journalFile(storeFile)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => entryOf(line) ?? [])
}

function entryOf(line: string): JournalEntry | undefined {
  try {
    const entry = JSON.parse(line) as JournalEntry
    return WHATS.has(entry.what) ? entry : undefined
  } catch {
    return undefined
  }
}

function names(entry: JournalEntry | undefined, identity: string): boolean {
  return (entry?.what === 'suppressed' || entry?.what === 'released') && entry.identity === identity
}

/** Replaces a file as a whole or not at all, keeping its owner and permissions. */
function replaceFile(file: string, text: string): void {
  const fresh = `${file}.new`
  const { uid, gid, mode } = statSync(file)
  writeFileSync(fresh, text, { mode, flush: true })
  if (process.getuid?.() === 0) chownSync(fresh, uid, gid)
  renameSync(fresh, file)
}
