import fs from 'node:fs'
import path from 'node:path'
import { suppressionHashes } from '../../course/links.ts'
import { codeError, codeOf, faultOf } from '../../errors.ts'
import { attempt } from '../../is-record.ts'
import { readWhole, withFile } from '../../regular-file.ts'
import { secret } from '../../secret.ts'
import { anchorOf, departures } from '../departures.ts'
import * as journals from '../journal.ts'
import { addressKeys, getMeta, getTime, setMeta } from '../sql.ts'
import type { SqliteDatabase } from './connection.ts'
import { shareOwner } from './files.ts'
import { performer } from './sql.ts'

export function openJournal(database: SqliteDatabase, storeFile: string) {
  const file = journals.journalFile(storeFile)
  const perform = performer(database)
  const owedLines = () => perform(getMeta(journals.OWED)) ?? ''

  /** Appends the lines, and before them those that could not be written. */
  function append(lines: string): void {
    const owed = owedLines()
    appendText(storeFile, owed + lines)
    if (owed === '') return
    // What `forget` could not do at the time: an erasure keeps no address, only its hash.
    const entries = journals.entriesOf(owed + lines)
    if (entries.some(({ what }) => what === 'erased')) dropLines(file, isErasedBy(database, entries))
    perform(setMeta(journals.OWED, undefined))
  }

  return {
    /** Within the transaction of the change: durable when it returns, or kept in the store by the same commit, for later. */
    add(...entries: readonly journals.JournalEntry[]) {
      if (entries.length === 0) return
      const lines = journals.linesOf(entries)
      if (faultOf(() => append(lines)) === undefined) return
      perform(setMeta(journals.OWED, owedLines() + lines))
    },
    /** Takes out every line that names the address; false if it must wait until the file can be written. */
    forget: (identity: string) => faultOf(() => dropLines(file, (named) => named === identity)) === undefined,
    /** Appends what could not be written; throws while the file still cannot be. Like `add`, within a transaction. */
    catchUp() {
      try {
        fs.accessSync(fs.existsSync(file) ? file : path.dirname(file), fs.constants.W_OK)
        append('')
      } catch (error) {
        throw Object.assign(codeError(`JOURNAL_${codeOf(error)}`), { cause: error })
      }
    },
    /** Ties a backup to this journal, which then has every change that the store knows of, as an older copy has not. */
    anchor(now: number, isBackup: boolean) {
      const before = perform(getMeta(journals.ANCHOR))
      // This user may not be allowed to read it.
      const written = attempt(() => journals.readJournal(file))
      const entries = [...(written ?? []), ...journals.entriesOf(owedLines())]
      const tiedAt = perform(getTime(journals.ANCHORED_AT))
      const isTied = before !== undefined && journals.covers(entries, before, tiedAt)
      if (isTied && !isBackup) return
      if (isBackup) perform(setMeta(journals.ANCHORED_AT, String(now)))
      // One that was lost begins again with what the rows say, also if changes since have begun it.
      const isLost = !fs.existsSync(file) || (before !== undefined && written !== undefined && !isTied)
      this.add(...(isLost ? perform(departures()) : []), { what: 'anchor', at: now, id: perform(anchorOf()) })
    },
  }
}

/** Appends to the journal beside a store, which need not be open. */
export function appendText(storeFile: string, text: string): void {
  if (text === '') return
  const file = journals.journalFile(storeFile)
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = fs.constants
  // A link may be the owner's of the folder, who would have the superuser write to what is somebody else's.
  const direct = process.getuid?.() === 0 ? O_NOFOLLOW : 0
  const write = (descriptor: number) => {
    // Before the first byte: a file that the superuser made would be closed to the daemon.
    shareOwner(file, storeFile)
    fs.appendFileSync(descriptor, text, { flush: true })
  }
  withFile(file, write, O_WRONLY | O_APPEND | O_CREAT | direct)
}

export function isErasedBy(database: SqliteDatabase, entries: readonly journals.JournalEntry[]) {
  const hashes = new Set(entries.flatMap((entry) => (entry.what === 'erased' ? [entry.hash] : [])))
  const secrets = performer(database)(addressKeys()).map(secret)
  return (identity: string) => suppressionHashes(secrets, identity).some((hash) => hashes.has(hash))
}

function dropLines(file: string, drops: (identity: string) => boolean): void {
  if (!fs.existsSync(file)) return
  const lines = readWhole(file).split('\n')
  const kept = lines.filter((line) => {
    const entry = journals.entryOf(line)
    // What is left of a torn line may name anybody.
    if (entry === undefined) return line === '' || line.endsWith('}')
    return !((entry.what === 'suppressed' || entry.what === 'released') && drops(entry.identity))
  })
  if (kept.length === lines.length) return
  // As a whole or not at all, keeping its owner and permissions.
  const fresh = `${file}.new`
  fs.rmSync(fresh, { force: true })
  fs.writeFileSync(fresh, kept.join('\n'), { flag: 'wx', mode: fs.statSync(file).mode, flush: true })
  shareOwner(fresh, file)
  fs.renameSync(fresh, file)
}
