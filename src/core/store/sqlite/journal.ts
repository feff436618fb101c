import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../../audit.ts'
import type { ErasedRows } from './erase.ts'

/**
 * What must outlive a restore: a backup is older than the unsubscribes and erasures that came after it. One JSON line
 * each, with random ids and keyed hashes, and no address.
 */
export type JournalEntry =
  | {
      readonly what: 'unsubscribed' | 'undone'
      readonly at: number
      readonly id: string
      readonly enrolment: number
    }
  | { readonly what: 'erased'; readonly at: number; readonly hash: string; readonly rows: ErasedRows }
  | { readonly what: 'audited'; readonly at: number; readonly entry: AuditEntry }

export interface Journal {
  /** On the disk when it returns: all of them by one write. */
  add(...entries: readonly JournalEntry[]): void
}

/** `/data/platform.sqlite` → `/data/platform-journal.jsonl` */
function journalFile(storeFile: string): string {
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
        // With its line end before it too: a line that a power cut tore does not take the next with it.
        writeSync(descriptor, entries.map((entry) => `\n${JSON.stringify(entry)}\n`).join(''))
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
    },
  }
}

/** Every entry in order; a torn line is left out. */
export function readJournal(storeFile: string): readonly JournalEntry[] {
  const file = journalFile(storeFile)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => {
      try {
        const entry = JSON.parse(line) as JournalEntry
        return ['unsubscribed', 'undone', 'erased', 'audited'].includes(entry.what) ? [entry] : []
      } catch {
        return []
      }
    })
}
