import { accessSync, constants, existsSync, readlinkSync, readSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { codeError, codeOf, faultOf, PlatformError, storeFault } from '../../errors.ts'
import { attempt } from '../../is-record.ts'
import { withFile } from '../../regular-file.ts'
import { cannotOpen, refusalFor, StoreOpenError, UNAVAILABLE } from '../errors.ts'
import { makeFile, makeFolder, readOnlyDisk, removeAbandoned } from './files.ts'

export type SqliteDatabase = Database.Database

/** Below this, a WAL reset can corrupt the file (sqlite.org/releaselog/3_51_3). */
const OLDEST_SQLITE = '3.51.3'
const weightOf = (version: string) => version.split('.').reduce((sum, part) => sum * 1000 + Number(part), 0)
/** A lock held longer than this is somebody's long transaction: waiting blocks the event loop. */
const BUSY_MS = 1000

/** Whether the commit is durable is not known. */
const UNCONFIRMED = ['SQLITE_IOERR_FSYNC', 'SQLITE_IOERR_DIR_FSYNC']
/** "PLAT" in the file's header (PRAGMA application_id): tells a store of ours from another program's file. */
const APPLICATION_ID = 0x504c4154
/** Where SQLite keeps what is to end with the process: a name that is no file. */
export const IN_MEMORY = ':memory:'

interface Opening {
  file: string
  synchronous?: 'FULL' | 'NORMAL'
  busyMs?: number
  /** Without a file beside it, for which a full disk may have no room; nobody else can open it meanwhile. */
  alone?: boolean
}

/** Opens an SQLite file without migrating it, and creates it if it is missing; refuses another program's file. */
export function connect(input: Opening): SqliteDatabase {
  const { file, synchronous = 'FULL', busyMs = BUSY_MS, alone } = input
  let database: SqliteDatabase | undefined
  try {
    return asOpening(file, () => {
      if (file !== IN_MEMORY) {
        makeFolder(path.dirname(path.resolve(file)))
        // SQLite gives the log beside a file its rights, and a file behind a link those of any. Why one cannot be made, it says.
        const behind = attempt(() => readlinkSync(file)) ?? path.basename(file)
        faultOf(() => makeFile(path.resolve(path.dirname(file), behind)))
      }
      database = new Database(file, { timeout: busyMs })
      if (alone) database.pragma('locking_mode = EXCLUSIVE')
      const found = String(database.prepare('SELECT sqlite_version()').pluck().get())
      // Not by localeCompare, which loads ICU: 6 ms of a start.
      if (weightOf(found) < weightOf(OLDEST_SQLITE))
        throw cannotOpen`SQLite ${found} can corrupt its file; platformctl needs ${OLDEST_SQLITE} or newer.`
      // Before the first pragma that writes: not a byte of a foreign file is changed.
      const fresh = !isMarked(database, file)
      // While another process makes the file, SQLite refuses this at once, but waits for a transaction.
      if (faultOf(() => database?.pragma('journal_mode = WAL'), /^SQLITE_BUSY/))
        database.exec('BEGIN IMMEDIATE; COMMIT; PRAGMA journal_mode = WAL')
      if (fresh) database.pragma(`application_id = ${APPLICATION_ID}`)
      database.pragma(`synchronous = ${synchronous}`)
      database.pragma('foreign_keys = ON')
      // Overwrite deleted data, so that an erasure is final.
      database.pragma('secure_delete = ON')
      database.pragma(`journal_size_limit = ${64 * 1024 * 1024}`)
      return database
    })
  } catch (error) {
    database?.close()
    // While this waited for its lock, a restore put another file in its place.
    if (error instanceof StoreOpenError && codeOf(error.cause) === 'SQLITE_READONLY_DBMOVED')
      return connect(input)
    throw error
  }
}

/** Lends a file that is being made, and leaves it as one: what is left in a log would stay behind when it is moved. */
export async function withImage<T>(file: string, work: (database: SqliteDatabase) => T | Promise<T>) {
  const database = connect({ file })
  try {
    const result = await work(database)
    database.pragma('journal_mode = DELETE')
    return result
  } finally {
    database.close()
  }
}

/** Opens a store that may lie on a full disk, where its daemon does not run. */
export function connectAnyway(input: Opening): SqliteDatabase {
  try {
    return connect(input)
  } catch (error) {
    if (storeFault(error) !== 'disk_full') throw error
    return connect({ ...input, alone: true })
  }
}

/** Takes every lock of a file, and moves its log into it; closes and refuses a file that another process has open. */
export function holdAlone(on: SqliteDatabase, file: string, done: 'copied' | 'changed'): SqliteDatabase {
  try {
    // Leaving WAL mode needs every lock there is.
    if (on.pragma('journal_mode = DELETE', { simple: true }) !== 'delete') throw codeError('SQLITE_BUSY')
    on.pragma('locking_mode = EXCLUSIVE')
    on.exec('BEGIN EXCLUSIVE')
    return on
  } catch (error) {
    on.close()
    throw inUse(error, file, done)
  }
}

/** Says so if a file cannot be had alone; gives any other error as it is. */
export function inUse(cause: unknown, file: string, done: 'copied' | 'changed'): unknown {
  if (!codeOf(cause).startsWith('SQLITE_BUSY')) return cause
  return refusalFor(cause)`${file} is open in another process: stop the daemon first; nothing was ${done}.`
}

/** Turns an SQLite error while opening a file into one sentence with the fix. */
export function asOpening<T>(file: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof StoreOpenError) throw error
    throw new StoreOpenError(sentence(file, error), { cause: error })
  }
}

/** Turns SQLite's error about damaged pages into a sentence; leaves any other error as it is. */
export function explainDamage(file: string, cause: unknown): unknown {
  if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(cause))) return cause
  return refusalFor(
    cause,
  )`${file} is damaged: platformctl db verify says where, and platformctl db restore puts a backup in its place.`
}

/** Closes a connection, and leaves one file behind instead of three; a busy reader elsewhere only postpones that. */
export function closeFile(database: SqliteDatabase): void {
  if (!database.open) return
  try {
    database.pragma('wal_checkpoint(TRUNCATE)')
  } finally {
    // On a full disk too: what is in the log is durable, and the next process that opens the file moves it.
    database.close()
  }
}

export const schemaVersion = (database: SqliteDatabase): number =>
  Number(database.pragma('user_version', { simple: true }))

/** An empty file is ours to mark; any other has our mark in its header, or is refused. */
function isMarked(database: SqliteDatabase, file: string): boolean {
  const tables = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get()
  const version = schemaVersion(database)
  // Last: another process that makes the file marks it before anything else.
  if (database.pragma('application_id', { simple: true }) === APPLICATION_ID) return true
  if (tables !== 0 || version !== 0)
    throw cannotOpen`${file} is a database of another program and was left as it is: name another file, or move this one away.`
  return false
}

function sentence(file: string, error: unknown): string {
  const code = codeOf(error)
  if (code === 'SQLITE_NOTADB')
    return `${file} is not an SQLite file: name another file, or move this one away.`
  if (code === 'SQLITE_CORRUPT') return `${file} is damaged: restore a backup (platformctl db restore).`
  if (code.startsWith('SQLITE_BUSY')) return `${file} is locked by another process: wait for it, or stop it.`
  if (storeFault(error) === 'disk_full') return `${file} cannot grow: the disk is full. Make room on it.`
  const all = [file, `${file}-wal`, `${file}-shm`, path.dirname(path.resolve(file))]
  const codes = all.map((name) => faultOf(() => accessSync(name, constants.R_OK | constants.W_OK)))
  if (code === 'EEXIST' || [code, ...codes].includes('ENOTDIR'))
    return `${path.dirname(file)} is not a folder: name another one with --data or STORE_URL.`
  if (codes.includes('EROFS')) return readOnlyDisk(file)
  const denied = all.find((_, at) => (codes[at] ?? 'ENOENT') !== 'ENOENT')
  if (denied !== undefined)
    return `${denied} cannot be written by this user: change its owner or its mode, or run this as the daemon’s user.`
  return `${file} cannot be opened for writing (${code || 'no reason given'}): check that its folder exists, and its disk.`
}

/** Runs a statement's work; a full disk, a lock or an I/O error becomes `store_unavailable` (503). */
export type Guarded = <T>(work: () => T) => T
type Hears = (error: unknown) => void

/**
 * After an error that leaves open whether a commit is durable, the connection is closed: the kernel drops what it could
 * not write and says "done" to the next fsync, so a commit on top could vanish with the one before.
 */
export function guard(database: SqliteDatabase, onLost?: Hears, onFault?: Hears): Guarded {
  let lost = false
  return (work) => {
    try {
      return work()
    } catch (error) {
      onFault?.(error)
      if (UNCONFIRMED.includes(codeOf(error))) {
        lost = true
        database.close()
        onLost?.(error)
      }
      // A TypeError: better-sqlite3's answer once the connection is closed.
      if (codeOf(error).startsWith('SQLITE_') || error instanceof TypeError)
        throw new PlatformError('store_unavailable', lost ? LOST : UNAVAILABLE, {
          final: !database.open,
          cause: error,
        })
      throw error
    }
  }
}

const LOST =
  'The disk did not confirm a write, so it may not have been recorded: the store was closed, and must be opened anew.'

/**
 * Takes erased text out of the file, and out of what a killed restore or backup left beside it: empties the log, and
 * rewrites the file where a page still holds a copy, since SQLite moves rows within pages. True: no byte of it is left.
 */
export function scrubFile(database: SqliteDatabase, file: string, texts: readonly string[]): boolean {
  removeAbandoned(path.dirname(file))
  // The first column of the answer is whether another process held it up.
  const emptied = () => database.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0
  const gone = () => ![file, `${file}-wal`].some((one) => holds(one, texts))
  emptied()
  if (gone()) return true
  // Another process may hold the file. One that was rewritten holds what is in the store and nothing else.
  return attempt(() => database.exec('VACUUM') && emptied()) ?? false
}

const CHUNK = 1024 * 1024

function holds(file: string, texts: readonly string[]): boolean {
  if (!existsSync(file)) return false
  const wanted = texts.map((text) => Buffer.from(text))
  const overlap = Math.max(...wanted.map(({ length }) => length))
  const buffer = Buffer.alloc(CHUNK + overlap)
  return withFile(file, (descriptor) => {
    for (let position = 0; ; ) {
      const count = readSync(descriptor, buffer, 0, buffer.length, position)
      if (wanted.some((one) => buffer.subarray(0, count).includes(one))) return true
      if (count <= overlap) return false
      position += count - overlap
    }
  })
}
