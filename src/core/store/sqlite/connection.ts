import { mkdirSync } from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { PlatformError } from '../../errors.ts'
import { StoreOpenError } from '../store.ts'

export type SqliteDatabase = Database.Database

/** Below this, a WAL reset can corrupt the file (sqlite.org/releaselog/3_51_3). */
const OLDEST_SQLITE = [3, 51, 3]
/** A lock held longer than this is somebody's long transaction: waiting blocks the event loop. */
const BUSY_MS = 1000

/**
 * Opens (and creates) an SQLite file in WAL mode and brings its schema up to date. `synchronous: 'FULL'` survives a
 * power cut; `'NORMAL'` only a killed process.
 */
export function openDatabase(input: {
  readonly file: string
  readonly synchronous: 'FULL' | 'NORMAL'
  readonly migrations: readonly string[]
}): SqliteDatabase {
  const { file } = input
  let database: SqliteDatabase | undefined
  try {
    mkdirSync(path.dirname(file), { recursive: true })
    database = new Database(file, { timeout: BUSY_MS })
    assertVersion(String(database.prepare('SELECT sqlite_version()').pluck().get()))
    database.pragma('journal_mode = WAL')
    database.pragma(`synchronous = ${input.synchronous}`)
    database.pragma('foreign_keys = ON')
    database.pragma(`journal_size_limit = ${64 * 1024 * 1024}`)
    migrate(database, file, input.migrations)
    return database
  } catch (error) {
    database?.close()
    throw error instanceof StoreOpenError
      ? error
      : new StoreOpenError(sentence(file, error), { cause: error })
  }
}

/** Additive steps, each whole or absent, under a write lock so that two processes cannot both run one. */
function migrate(database: SqliteDatabase, file: string, migrations: readonly string[]): void {
  const version = () => Number(database.pragma('user_version', { simple: true }))
  if (version() > migrations.length) {
    throw new StoreOpenError(
      `${file} was written by a newer platformctl (schema ${version()}, this build knows ${migrations.length}): run that version, or restore a backup made before it.`,
    )
  }
  while (version() < migrations.length) {
    database
      .transaction(() => {
        const step = migrations[version()]
        if (step === undefined) return
        const next = version() + 1
        database.exec(step)
        database.pragma(`user_version = ${next}`)
      })
      .immediate()
  }
}

function assertVersion(found: string): void {
  const parts = found.split('.').map(Number)
  for (const [index, least] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0
    if (part > least) return
    if (part < least)
      throw new StoreOpenError(
        `SQLite ${found} can corrupt its file; platformctl needs ${OLDEST_SQLITE.join('.')} or newer.`,
      )
  }
}

function sentence(file: string, error: unknown): string {
  const code = codeOf(error)
  if (code === 'SQLITE_NOTADB')
    return `${file} is not an SQLite file: name another file, or move this one away.`
  if (code === 'SQLITE_CORRUPT') return `${file} is damaged: restore a backup (platformctl db restore).`
  if (code.startsWith('SQLITE_BUSY')) return `${file} is locked by another process: wait for it, or stop it.`
  if (code === 'SQLITE_FULL' || code === 'ENOSPC') return `${file} cannot grow: the disk is full.`
  if (code === 'ENOTDIR' || code === 'EEXIST')
    return `${path.dirname(file)} is not a folder: name another one with --data or STORE_URL.`
  return `${file} cannot be opened for writing: check that its folder exists and belongs to this user (${code || 'no reason given'}).`
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Runs a statement's work; a full disk, a lock or an I/O error becomes `store_unavailable` (503). */
export function guarded<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (codeOf(error).startsWith('SQLITE_') || error instanceof TypeError) {
      throw new PlatformError(
        'store_unavailable',
        'The store cannot be read or written now; try again later.',
        { cause: error },
      )
    }
    throw error
  }
}
