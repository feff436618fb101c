import {
  accessSync,
  closeSync,
  constants,
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
import { suppressionHashes } from '../../course/links.ts'
import { codeOf } from '../../error-code.ts'
import { systemRandom } from '../../random.ts'
import { secret } from '../../secret.ts'
import { type Departures, departuresSql, journalOf } from '../departures.ts'
import {
  ANCHOR,
  covers,
  entriesOf,
  entryOf,
  type JournalEntry,
  journalFile,
  linesOf,
  readJournal,
} from '../journal.ts'
import { rowReader } from '../sql.ts'
import type { SqliteDatabase } from './connection.ts'
import { changeOwner, ownerOf } from './owner.ts'

const ANCHOR_BYTES = 12

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
  /** The id that ties a backup to this journal, which then has every change that the store knows of. */
  anchor(now: number): string
}

/** The name in `meta` of the lines that could not be written to the file. */
export const OWED = 'journal_owed'

/** The journal beside a store. */
export function openJournal(database: SqliteDatabase, storeFile: string): Journal {
  const file = journalFile(storeFile)
  const owedLines = () => owedOf(database)
  const append = (text: string) => appendText(storeFile, text)
  const settle = () => database.prepare('DELETE FROM meta WHERE name = ?').run(OWED)
  const journal: Journal = {
    add(...entries) {
      if (entries.length === 0) return
      const [owed, lines] = [owedLines(), linesOf(entries)]
      try {
        append(owed + lines)
        if (owed === '') return
      } catch {
        database
          .prepare(
            'INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value || excluded.value',
          )
          .run(OWED, lines)
        return
      }
      dropErased(file, database, entriesOf(owed))
      settle()
    },
    forget(identity) {
      try {
        dropLines(file, (named) => named === identity)
        return true
      } catch {
        return false
      }
    },
    catchUp() {
      try {
        accessSync(existsSync(file) ? file : path.dirname(file), constants.W_OK)
        const owed = owedLines()
        if (owed === '') return
        append(owed)
        dropErased(file, database, entriesOf(owed))
        settle()
      } catch (error) {
        throw Object.assign(new Error(`${file} cannot be written`, { cause: error }), {
          code: `JOURNAL_${codeOf(error)}`,
        })
      }
    },
    anchor(now) {
      database
        .prepare('INSERT OR IGNORE INTO meta (name, value) VALUES (?, ?)')
        .run(ANCHOR, Buffer.from(systemRandom.bytes(ANCHOR_BYTES)).toString('base64url'))
      const id = String(database.prepare('SELECT value FROM meta WHERE name = ?').pluck().get(ANCHOR))
      const written = readableJournal(file)
      if (covers([...(written ?? []), ...entriesOf(owedLines())], id)) return id
      // A journal that was lost begins again with what the rows say.
      if (written === undefined) journal.add(...journalOf(departuresOf(database)))
      journal.add({ what: 'anchor', at: now, id })
      return id
    },
  }
  return journal
}

/** Appends to the journal beside a store that is not open. */
export function appendToJournal(storeFile: string, entries: readonly JournalEntry[]): void {
  if (entries.length > 0) appendText(storeFile, linesOf(entries))
}

function appendText(storeFile: string, text: string): void {
  const file = journalFile(storeFile)
  const descriptor = openSync(file, 'a', 0o600)
  try {
    // Before the first byte: a file that the superuser made would be closed to the daemon.
    changeOwner(ownerOf(storeFile), file)
    writeSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** What a store says about who left it. */
export function departuresOf(database: SqliteDatabase): Departures {
  const rows = Object.entries(departuresSql('')).map(([name, sql]) => {
    const found = database.prepare(sql).all() as Record<string, unknown>[]
    return [name, found.map(rowReader())]
  })
  // Safe to cast: the tables are STRICT, so SQLite enforces the types of the columns that the statements select.
  return Object.fromEntries(rows) as unknown as Departures
}

/** The lines that a store keeps because its journal could not be written. */
export function owedOf(database: SqliteDatabase): string {
  const found = database.prepare('SELECT value FROM meta WHERE name = ?').pluck().get(OWED)
  return found === undefined ? '' : String(found)
}

/** A journal that this user may not read is there all the same. */
function readableJournal(file: string): readonly JournalEntry[] | undefined {
  try {
    return readJournal(file)
  } catch {
    return []
  }
}

/** Does what `forget` could not do at the time: an erasure keeps no address, only its hash. */
function dropErased(file: string, database: SqliteDatabase, entries: readonly JournalEntry[]): void {
  if (entries.some(({ what }) => what === 'erased')) dropLines(file, isErasedBy(database, entries))
}

/** Recognizes the people whom entries erase. */
export function isErasedBy(
  database: SqliteDatabase,
  entries: readonly JournalEntry[],
): (identity: string) => boolean {
  const hashes = new Set(entries.flatMap((entry) => (entry.what === 'erased' ? [entry.hash] : [])))
  const secrets = addressKeysOf(database).map(secret)
  return (identity) => suppressionHashes(secrets, identity).some((hash) => hashes.has(hash))
}

/** The keys of a store by which its erasures hashed addresses. */
function addressKeysOf(database: SqliteDatabase): readonly string[] {
  return database
    .prepare(`SELECT value FROM meta WHERE name IN ('address_key', 'link_key')`)
    .pluck()
    .all()
    .map(String)
}

function dropLines(file: string, drops: (identity: string) => boolean): void {
  if (!existsSync(file)) return
  const lines = readFileSync(file, 'utf8').split('\n')
  const kept = lines.filter((line) => {
    const entry = entryOf(line)
    return !((entry?.what === 'suppressed' || entry?.what === 'released') && drops(entry.identity))
  })
  if (kept.length < lines.length) replaceFile(file, kept.join('\n'))
}

/** Replaces a file as a whole or not at all, keeping its owner and permissions. */
function replaceFile(file: string, text: string): void {
  const fresh = `${file}.new`
  const owner = statSync(file)
  writeFileSync(fresh, text, { mode: owner.mode, flush: true })
  changeOwner(owner, fresh)
  renameSync(fresh, file)
}
