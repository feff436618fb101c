import { chownSync, copyFileSync, existsSync, linkSync, renameSync, rmdirSync, statSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../../audit.ts'
import { codeOf } from '../../error-code.ts'
import { type StoreContent, StoreMaintenanceError } from '../maintenance.ts'
import { StoreOpenError } from '../store.ts'
import { insertAudit } from './audit.ts'
import { failed, syncFolder } from './backup.ts'
import { connect, makeFolder, migrate, type SqliteDatabase, schemaVersion } from './connection.ts'
import { unpack } from './image.ts'
import { openJournal, readJournal } from './journal.ts'
import { foreignObject } from './made-here.ts'
import { MIGRATIONS } from './migrations.ts'
import { NOTHING_REPLAYED, type Replayed, replay } from './replay.ts'
import { makeScratch, type Scratch } from './scratch.ts'
import { countTableRows, verifyDatabase } from './verify.ts'

export interface RestoreResult {
  readonly version: number
  readonly counts: Readonly<Record<string, number>>
  /** Rows that break an invariant of the course: restored as they were. */
  readonly faults: readonly string[]
  /** Changes from the journal beside the store that the backup did not have. */
  readonly replayed: Replayed
  /** Where the store that was replaced is now; undefined when there was none. */
  readonly kept: string | undefined
}

export interface RestorePart {
  /** The backup. */
  readonly from: string
  /** The file in whose place it is put. */
  readonly to: string
  readonly holds: StoreContent
}

export interface RestoreOptions {
  readonly force: boolean
  readonly now: number
  /** Secret keys of age, for backups that are encrypted. */
  readonly identities: readonly string[]
  /** Written into the store before it is put in place. */
  readonly audit?: AuditEntry | undefined
}

/**
 * Puts backups in the place of a store's files. Each is unpacked beside its file and verified there before any file is
 * replaced; with `force` an existing one is moved aside, never deleted, and only when no process has it open.
 */
export async function restore(
  parts: readonly RestorePart[],
  { force, now, identities, audit }: RestoreOptions,
): Promise<readonly RestoreResult[]> {
  for (const { from, to } of parts) {
    if (!existsSync(from)) throw new StoreMaintenanceError(`there is no file ${from}.`)
    if (isPresent(to) && !force)
      throw new StoreMaintenanceError(
        `${to} exists and was left as it is: --force replaces it (and keeps it under another name).`,
      )
  }
  const made = parts.flatMap(folderOf)
  const scratches: Scratch[] = []
  try {
    const ready: { part: RestorePart; image: string; checked: Checked }[] = []
    for (const part of parts)
      await naming(part, async () => {
        const scratch = makeScratch(path.dirname(part.to))
        scratches.push(scratch)
        const image = scratch.file('image.sqlite')
        ready.push({ part, image, checked: await unpackAndCheck(part, image, { now, identities, audit }) })
      })
    const results: RestoreResult[] = []
    for (const { part, image, checked } of ready) {
      results.push({ ...checked, kept: await naming(part, () => putInPlace(part, image, now)) })
      // Known to the restore after this one too.
      if (audit && part.holds === 'course')
        openJournal(part.to).add({ what: 'audited', at: now, entry: audit })
    }
    return results
  } finally {
    for (const scratch of scratches) scratch.remove()
    // Folders made for what was refused go again, so that nothing was changed; those that hold something stay.
    for (const folder of made.toReversed()) removeIfEmpty(folder)
  }
}

type Checked = Omit<RestoreResult, 'kept'>

const isPresent = (to: string) => existsSync(to) || existsSync(`${to}-wal`)

/** Makes the folder of a file; gives what had to be made for it, the outermost first. */
function folderOf({ to }: RestorePart): readonly string[] {
  const folder = path.dirname(to)
  try {
    return makeFolder(folder)
  } catch (error) {
    const code = codeOf(error) || 'no reason given'
    if (code === 'ENOSPC' || code === 'EDQUOT') throw failed(to, error)
    throw new StoreMaintenanceError(
      `${folder} is no folder and cannot be made one (${code}): name another one with --data or STORE_URL.`,
      { cause: error },
    )
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // It holds the store that was put there, or what another process did.
  }
}

/** A fault of the disk becomes a sentence about the file that it met. */
async function naming<T>({ to }: RestorePart, work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw failed(to, error)
  })
}

async function unpackAndCheck(
  { from, to, holds }: RestorePart,
  image: string,
  { now, identities, audit }: Pick<RestoreOptions, 'now' | 'identities' | 'audit'>,
): Promise<Checked> {
  await unpack(from, image, identities).catch((error: unknown) => {
    throw damaged(from, error)
  })
  return check({ image, from, to, holds, now, audit })
}

interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Owner of the store, or of its folder if there is no store yet: the daemon's user. */
function ownerOf(to: string): Owner {
  return statSync(existsSync(to) ? to : path.dirname(to))
}

/** Restored by the superuser, a store stays usable by the user that the daemon runs as. */
export function changeOwner({ uid, gid }: Owner, file: string): void {
  if (process.getuid?.() === 0) chownSync(file, uid, gid)
}

async function putInPlace({ to }: RestorePart, image: string, now: number): Promise<string | undefined> {
  const kept = isPresent(to) ? `${to}.before-${stamp(now)}` : undefined
  if (kept !== undefined && existsSync(kept))
    throw new StoreMaintenanceError(`${kept} exists: try again in a second.`)
  changeOwner(ownerOf(to), image)
  if (kept === undefined) renameSync(image, to)
  else replace({ image, to, kept })
  await syncFolder(path.dirname(to))
  return kept
}

async function check({
  image,
  from,
  to,
  holds,
  now,
  audit,
}: {
  readonly image: string
  readonly from: string
  readonly to: string
  readonly holds: StoreContent
  readonly now: number
  readonly audit: AuditEntry | undefined
}): Promise<Checked> {
  try {
    const database = connect({ file: image })
    try {
      const empty = schemaVersion(database) === 0
      if (holds === 'course' && empty)
        throw new StoreMaintenanceError(`${from} is an empty database, not a backup of a store.`)
      if (holds === 'analytics' && !empty)
        throw new StoreMaintenanceError(`${from} is the backup of a store, not of analytics: move it away.`)
      // Before a row is read: a newer schema cannot be distinguished from another program's.
      if (holds === 'course' && schemaVersion(database) > MIGRATIONS.length)
        throw new StoreMaintenanceError(
          `${from} was written by a newer platformctl (schema ${schemaVersion(database)}, this build knows ${MIGRATIONS.length}): restore it with that version.`,
        )
      const foreign = foreignObject(database, holds)
      if (foreign !== undefined)
        throw new StoreMaintenanceError(
          `${from} was not restored: it has ${foreign}, which no platformctl made. Restore a backup that you trust, or drop it from a copy first.`,
        )
      // One that is older is brought up to date here, not at the next start.
      if (holds === 'course') migrate(database, from, MIGRATIONS)
      const replayed = holds === 'course' ? await replay(database, readJournal(to)) : NOTHING_REPLAYED
      if (audit && holds === 'course') insertAudit(database, audit)
      const result = verifyDatabase(database, { now, holds })
      if (result.damaged)
        throw new StoreMaintenanceError(`${from} is damaged and was not restored: ${result.faults[0]}.`)
      return {
        version: schemaVersion(database),
        counts: countTableRows(database),
        faults: result.faults,
        replayed,
      }
    } finally {
      database.pragma('wal_checkpoint(TRUNCATE)')
      database.pragma('journal_mode = DELETE')
      database.close()
    }
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw damaged(from, error)
    const worse = damaged(from, error.cause)
    // Its sentence names the unpacked copy; the operator named the backup.
    throw worse instanceof StoreMaintenanceError
      ? worse
      : new StoreMaintenanceError(error.message.replaceAll(image, from), { cause: error })
  }
}

function damaged(from: string, error: unknown): unknown {
  const code = codeOf(error)
  const torn = /^(?:Z_|ERR_ZLIB|ZSTD_|SQLITE_CORRUPT|SQLITE_NOTADB|ERR_STREAM_PREMATURE)/.test(code)
  return torn
    ? new StoreMaintenanceError(`${from} is damaged and was not restored (${code}).`, { cause: error })
    : error
}

/** Swaps the files while holding every lock on the old one, so that no process can be writing to either. */
function replace({ image, to, kept }: { image: string; to: string; kept: string }): void {
  const old = existsSync(to) ? holdAlone(to) : undefined
  try {
    // SQLite would replay a leftover log into the new file.
    for (const end of ['-wal', '-shm'])
      if (existsSync(`${to}${end}`)) renameSync(`${to}${end}`, `${kept}${end}`)
    if (existsSync(to)) keep(to, kept)
    // Windows renames over no open file; elsewhere the locks are held to the end.
    if (process.platform === 'win32') old?.close()
    renameSync(image, to)
  } finally {
    old?.close()
  }
}

/** A second name first, so that at no time the store has none. */
function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept)
  } catch {
    copyFileSync(file, kept)
  }
}

/** The old store with every lock taken; undefined when it is too damaged to be locked, and so to be in use. */
function holdAlone(file: string): SqliteDatabase | undefined {
  let database: SqliteDatabase | undefined
  try {
    database = connect({ file, busyMs: 0 })
    // Leaving WAL mode needs every lock there is, and moves the log into the file.
    if (database.pragma('journal_mode = DELETE', { simple: true }) !== 'delete') throw inUse(file)
    database.pragma('locking_mode = EXCLUSIVE')
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database?.close()
    const cause = error instanceof StoreOpenError ? error.cause : error
    if (cause instanceof Error && 'code' in cause && String(cause.code).startsWith('SQLITE_BUSY'))
      throw inUse(file)
    if (error instanceof StoreMaintenanceError) throw error
    return undefined
  }
}

function inUse(file: string): StoreMaintenanceError {
  return new StoreMaintenanceError(
    `${file} is open in another process: stop the daemon first; nothing was changed.`,
  )
}

/** `20261121T072600Z`: sorts, and is a file name everywhere. */
function stamp(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')
}
