import { constants, copyFileSync, existsSync, linkSync, renameSync, rmdirSync, statSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, faultOf, storeFault } from '../../errors.ts'
import { departures, departuresOf, storeKey } from '../departures.ts'
import { refusal, refusalFor, StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import * as journals from '../journal.ts'
import { BACKUP_AT, countRows, type StoreContent } from '../maintenance.ts'
import { departed, NOTHING_REPLAYED, replay, takeTold, toldBy } from '../replay.ts'
import { addAudit, getMeta, getTime, OWNER, type Steps, setMeta } from '../sql.ts'
import { assertMadeHere, verifyDatabase } from './check.ts'
import type { SqliteDatabase } from './connection.ts'
import { closeFile, connect, holdAlone, inUse, schemaVersion, withImage } from './connection.ts'
import { failed, makeFolder, makeScratch, removeFolder, shareOwner, syncFolder } from './files.ts'
import { unpack } from './image.ts'
import { isErasedBy, openJournal } from './journal.ts'
import { countRepeats, reading, takeSentRecords } from './sent-records.ts'
import { migrateFile, performer, sqliteSql } from './sql.ts'

/** What a restore did; `kept` is where the store that was replaced is now, undefined when there was none. */
export type RestoreResult = Omit<Checked, 'missing'> & { readonly kept: string | undefined }
type Checked = Awaited<ReturnType<typeof check>>

/** A backup, and the file in whose place it is put. */
type RestorePart = { readonly from: string; readonly to: string; readonly holds: StoreContent }

export interface RestoreOptions extends journals.SinceOptions {
  readonly force: boolean
  /** Secret keys of age, for backups that are encrypted. */
  readonly identities?: readonly string[]
  /** The replaced store's file, to take the records of lessons sent since the backup from. */
  readonly sentFrom?: string | undefined
}

/**
 * Puts backups in the place of a store's files. Each is verified beside its file before any is replaced; with `force`, an
 * existing one is moved aside, never deleted, and only when no process has it open.
 */
export async function restore(parts: readonly RestorePart[], options: RestoreOptions) {
  const { force, now, audit } = options
  for (const { to } of parts)
    if (isPresent(to) && !force)
      throw refusal`${to} exists and was left as it is: --force replaces it (and keeps it under another name).`
  const made = parts.flatMap(folderOf)
  const found = new Map<string, string>()
  const scratches: string[] = []
  const locks = new Map<string, SqliteDatabase | undefined>()
  try {
    const ready: (Checked & { part: RestorePart; image: string })[] = []
    for (const part of parts)
      try {
        // As it is once a log that a killed process left was moved into it.
        if (existsSync(part.to)) unlessDamaged(part.to, () => reading(part.to, schemaVersion))
        found.set(part.to, stateOf(part.to))
        const scratch = makeScratch(path.dirname(part.to))
        scratches.push(scratch)
        const image = path.join(scratch, 'image.sqlite')
        ready.push({ part, image, ...(await unpackAndCheck(part, image, options)) })
      } catch (error) {
        throw failed(part.to, error)
      }
    // Every file before any is replaced; one that is too damaged to be locked is in no use.
    for (const { to } of parts)
      if (existsSync(to)) {
        const hold = () => holdUnchanged(to, found.get(to))
        locks.set(to, unlessDamaged(to, hold))
      }
    return ready.map(({ part: { to, holds }, image, missing, ...result }) => {
      const kept = putInPlace(to, image, now, locks.get(to))
      const audited = audit ? [{ what: 'audited' as const, at: now, entry: audit }] : []
      // Known to the restore after this one too.
      if (holds === 'course') addToJournal(to, [...missing, ...audited])
      return { ...result, kept }
    })
  } finally {
    for (const lock of locks.values()) lock?.close()
    scratches.forEach(removeFolder)
    // Folders made for what was refused go again, so that nothing was changed; those that hold something stay.
    for (const folder of made.toReversed()) faultOf(() => rmdirSync(folder))
  }
}

/** Another one after each write by a process that has closed the file: sizes and times. An empty log says nothing. */
function stateOf(to: string): string {
  const stats = [to, `${to}-wal`].map((file) => statSync(file, { bigint: true, throwIfNoEntry: false }))
  return stats.map((found) => (found?.size ? `${found.size} ${found.mtimeNs}` : '')).join()
}

/** Takes every lock of a file that nobody changed since it was found like this, as a command that comes and goes would. */
function holdUnchanged(to: string, found: string | undefined): SqliteDatabase {
  const database = new Database(to, { fileMustExist: true, timeout: 0 })
  const version = () => database.pragma('data_version', { simple: true })
  const before = version()
  const isAsFound = stateOf(to) === found
  holdAlone(database, to, 'changed')
  if (isAsFound && version() === before) return database
  database.close()
  throw refusal`another process changed ${to} meanwhile, which the restore would lose: stop it, and try again; nothing was changed.`
}

/** The store keeps what the journal cannot take now, as it does in daily work. */
function addToJournal(to: string, entries: readonly journals.JournalEntry[]): void {
  if (entries.length === 0) return
  const database = connect({ file: to })
  try {
    database.transaction(() => openJournal(database, to).add(...entries)).immediate()
  } finally {
    closeFile(database)
  }
}

const isPresent = (to: string) => existsSync(to) || existsSync(`${to}-wal`)

/** Makes the folder of a file; gives what had to be made for it, the outermost first. */
function folderOf({ to }: RestorePart): readonly string[] {
  const folder = path.dirname(to)
  try {
    return makeFolder(folder)
  } catch (error) {
    if (storeFault(error) === 'disk_full') throw failed(to, error)
    throw refusalFor(
      error,
    )`${folder} is no folder and cannot be made one (${codeOf(error) || 'no reason given'}): name another one with --data or STORE_URL.`
  }
}

async function unpackAndCheck(part: RestorePart, image: string, options: RestoreOptions): Promise<Checked> {
  try {
    await unpack(part.from, image, options.identities)
    return await withImage(image, (database) => check(database, part, options))
  } catch (error) {
    const { from } = part
    const isOpening = error instanceof StoreOpenError
    const code = codeOf(isOpening ? error.cause : error)
    if (/^(?:Z_|ERR_ZLIB|ZSTD_|SQLITE_CORRUPT|SQLITE_NOTADB|ERR_STREAM_PREMATURE)/.test(code))
      throw refusalFor(error)`${from} is damaged and was not restored (${code}).`
    if (!isOpening) throw error
    // Its sentence names the unpacked copy; the operator named the backup.
    throw new StoreMaintenanceError(error.message.replaceAll(image, from), { cause: error })
  }
}

async function check(database: SqliteDatabase, { from, to, holds }: RestorePart, options: RestoreOptions) {
  const perform = performer(database)
  const isStore = holds === 'course'
  const version = schemaVersion(database)
  if (isStore && version === 0) throw refusal`${from} is an empty database, not a backup of a store.`
  if (!isStore && version !== 0)
    throw refusal`${from} is the backup of a store, not of analytics: move it away.`
  assertMadeHere(database, { file: from, holds, done: 'restored' })
  // One that is older is brought up to date here, not at the next start.
  if (isStore) await migrateFile(database, from)
  const done = { ...NOTHING_DONE, ...(isStore && (await catchUp(database, { from, to, holds }, options))) }
  if (isStore) perform(addAudit(options.audit))
  const { damaged, faults } = verifyDatabase(database, holds, options.now)
  if (damaged) throw refusal`${from} is damaged and was not restored: ${faults[0]}.`
  // `faults` are rows that break an invariant of the course, restored as they were.
  return { version: schemaVersion(database), counts: perform(countRows()), faults, ...done }
}

const NOTHING_DONE = { replayed: NOTHING_REPLAYED, taken: 0, missing: [] }

/** Brings the image up to what the replaced store knew: who left, and with `sentFrom` what was sent. */
async function catchUp(database: SqliteDatabase, { from, to }: RestorePart, options: RestoreOptions) {
  const { journal, withoutJournal, sentFrom, now } = options
  const sql = sqliteSql({ database })
  const perform = performer(database)
  const own = journals.readJournal(journals.journalFile(to))
  const named = journals.readNamedJournal(journal)
  const both = own || named ? [...(own ?? []), ...(named ?? [])] : undefined
  const anchor = perform(getMeta(journals.ANCHOR))
  // A copy was made before what could not be written.
  const owedNow = journals.entriesOf(askReplaced(to, () => getMeta(journals.OWED)) ?? '')
  const tiedAt = perform(getTime(journals.ANCHORED_AT))
  const isCovered = journals.covers(both && [...both, ...owedNow], anchor, tiedAt)
  const madeAt = perform(getTime(BACKUP_AT)) ?? Math.min(now, statSync(from).mtimeMs)
  const state = `${from} was made at ${new Date(madeAt).toISOString()}`
  if (!isCovered && !withoutJournal) {
    const file = journal ?? journals.journalFile(to)
    const why = both ? `${file} is not the journal of its store, or is older` : `there is no ${file}`
    throw journals.uncovered(state, why, 'Name the journal from beside the replaced store with --journal')
  }
  // The journal that begins here does not cover the time before: no later restore may believe that it does.
  if (!isCovered) perform(setMeta(journals.ANCHOR, undefined))
  // What the backup's journal was owed is in its rows, and in the journal beside the store. Appended again, it would
  // seem to have happened last; so would a line that a copy of the journal has too.
  const owedThen = own === undefined ? journals.entriesOf(perform(getMeta(journals.OWED)) ?? '') : []
  perform(setMeta(journals.OWED, undefined))
  const known = new Set(own?.map((entry) => JSON.stringify(entry)))
  const others = [...owedThen, ...(named ?? []), ...owedNow].filter((one) => !known.has(JSON.stringify(one)))
  // The journal may be an older copy, as may the named file: what happened later, the replaced store says.
  const key = perform(storeKey())
  const said = [...new Set([sentFrom ?? to, to])].map((file) => askReplaced(file, () => departuresOf(key)))
  const rows = said.reduce((a, b) => (a && b ? a.concat(journals.laterThan(a, b)) : (a ?? b)))
  const journaled = [...(own ?? []), ...others]
  if (rows === undefined && !withoutJournal) journals.assertRead(journaled, anchor, state)
  const later = journals.laterThan(journaled, rows ?? [])
  const entries = [...journaled, ...later]
  // First, so that nothing waits for somebody who was erased, as a journal may know.
  takeToldOf([to, sentFrom ?? to], madeAt, key, database)
  const had = await sql.one(departed())
  const replayed = await replay(sql, entries, had)
  // After the replay, which lets those go on who undid an unsubscribe that the backup has.
  const taken = sentFrom === undefined ? 0 : takeSentRecords(database, sentFrom)
  // The file named for them may be older than the last entries.
  if (taken > 0) await replay(sql, entries, had)
  const isErased = isErasedBy(database, entries)
  const missing = [...others, ...later, ...(isCovered ? [] : perform(departures()))]
  const lastAt = journaled.reduce((last, { at }) => Math.max(last, at), madeAt)
  return {
    /** Changes from the journal that the backup did not have. */
    replayed,
    /** Since when changes are missing (UTC milliseconds), because no journal covered them. */
    uncoveredSince: isCovered ? undefined : madeAt,
    /** The last change in the journal (UTC milliseconds), where the replaced store could not be read: later ones are lost. */
    coveredTo: isCovered && rows === undefined ? lastAt : undefined,
    /** Lessons that the replaced store sent after the backup, and will be sent again; undefined if it could not be read. */
    repeats: countRepeats(database, sentFrom ?? to),
    /** Lessons whose record was taken from the store named for it. */
    taken,
    /** The name of the platform that the backup belongs to; undefined if it says none. */
    owner: perform(getMeta(OWNER)),
    /** Entries to add to the journal beside the store; one that does not cover the backup gets what the rows know. A copy may be older than an erasure. */
    missing: missing.filter((entry) => !('identity' in entry && isErased(entry.identity))),
  }
}

/** From the first of these files that can be read whole; otherwise leaves what the backup has. */
function takeToldOf(files: readonly string[], madeAt: number, key: string | undefined, on: SqliteDatabase) {
  const ask = (file: string) =>
    askReplaced(file, function* () {
      return (yield* storeKey()) === key ? yield* toldBy(madeAt) : undefined
    })
  const told = files.map(ask).find((found) => found !== undefined)
  faultOf(() => on.transaction(() => told && performer(on)(takeTold(told))).immediate(), /^SQLITE_/)
}

/** What the replaced store says. */
const askReplaced = <Value>(file: string, steps: () => Steps<Value>): Value | undefined =>
  unlessDamaged(file, () => reading(file, (database) => performer(database)(steps())))

/** Undefined if a replaced store is too damaged for the work, or made by a build without it. Throws if it is in use. */
function unlessDamaged<Value>(file: string, work: () => Value): Value | undefined {
  try {
    return work()
  } catch (error) {
    const refused = inUse(error instanceof StoreOpenError ? error.cause : error, file, 'changed')
    if (refused instanceof StoreMaintenanceError) throw refused
    return undefined
  }
}

/** Swaps the files while `old` has every lock, so that no process can be writing to either; gives its new name. */
function putInPlace(to: string, image: string, now: number, old: SqliteDatabase | undefined) {
  // `20261121T072600Z` sorts, and is a file name everywhere.
  const kept = `${to}.before-${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}`
  const isFirst = !isPresent(to)
  if (existsSync(kept)) throw refusal`${kept} exists: try again in a second.`
  try {
    shareOwner(image, to)
    // SQLite would replay a leftover log into the new file.
    for (const end of ['-wal', '-shm'])
      if (existsSync(`${to}${end}`)) renameSync(`${to}${end}`, `${kept}${end}`)
    // A second name first, so that at no time the store has none.
    if (existsSync(to) && faultOf(() => linkSync(to, kept)) !== undefined)
      copyFileSync(to, kept, constants.COPYFILE_EXCL)
    // Windows renames over no open file; elsewhere the locks are held to the end.
    if (process.platform === 'win32') old?.close()
    renameSync(image, to)
    syncFolder(path.dirname(to))
  } catch (error) {
    throw failed(to, error)
  }
  return isFirst ? undefined : kept
}
