import { existsSync, linkSync, lstatSync, renameSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from '../../error-code.ts'
import { storeFault } from '../../store-fault.ts'
import { BACKUP_AT, type BackupOptions, type BackupResult, type StoreContent } from '../maintenance.ts'
import { setMeta } from '../meta.ts'
import { StoreMaintenanceError } from '../store.ts'
import { countRows } from '../upkeep.ts'
import { connect, type SqliteDatabase, schemaVersion } from './connection.ts'
import { hashOf, pack, packingOf, unpack } from './image.ts'
import { foreignObject } from './made-here.ts'
import { makePrivateFile, makeScratch, type Scratch } from './scratch.ts'
import { DIALECT, plainPerformer } from './sql.ts'

/**
 * Backs a store up while others write to it: one read transaction copies a consistent state (VACUUM INTO), the copy is
 * checked, packed, encrypted for the recipients, read back and compared, and only then gets its name. A failure leaves
 * nothing behind; a kill leaves a folder that only its owner can read, which the next backup removes.
 */
export async function backup(
  database: SqliteDatabase,
  file: string,
  { holds, recipients, now }: BackupOptions & { readonly holds: StoreContent; readonly now: number },
): Promise<BackupResult> {
  const packing = packingOf(file)
  if (file.endsWith('.age') !== recipients.length > 0)
    throw new StoreMaintenanceError(
      recipients.length > 0
        ? `${file} would be encrypted: let its name end in .age.`
        : `${file} says that it is encrypted: name who may read it with --recipient.`,
    )
  // Not by what a link leads to: a link is somebody's file too.
  if (lstatSync(file, { throwIfNoEntry: false }))
    throw new StoreMaintenanceError(`${file} exists and was left as it is: give the backup a new name.`)
  if (!existsSync(path.dirname(file)))
    throw new StoreMaintenanceError(
      `${path.dirname(file)} does not exist: make the folder for backups first.`,
    )
  let scratch: Scratch | undefined
  try {
    scratch = makeScratch(path.dirname(file))
    const [image, packed] = [scratch.file('image.sqlite'), scratch.file('packed')]
    makePrivateFile(image)
    database.prepare('VACUUM INTO ?').run(image)
    const { version, counts } = checkImage(image, holds, now)
    const { image: hash, written } = await pack(image, packed, { packing, recipients })
    // Only its recipients can read an encrypted backup: then the bytes are compared.
    const same =
      recipients.length > 0 ? (await hashOf(packed)) === written : (await unpack(packed, undefined)) === hash
    if (!same)
      throw new StoreMaintenanceError(`what was written to ${file} reads back differently: check the disk.`)
    moveIntoPlace(packed, file)
    await syncFolder(path.dirname(file))
    return { file, bytes: statSync(file).size, version, counts }
  } catch (error) {
    throw failed(file, error)
  } finally {
    scratch?.remove()
  }
}

/** A second name, because a rename would replace a file that was made meanwhile; a rename where there are no links. */
export function moveIntoPlace(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST')
      throw new StoreMaintenanceError(`${to} exists and was left as it is: give the backup a new name.`)
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error
    renameSync(from, to)
  }
}

function checkImage(
  image: string,
  holds: StoreContent,
  now: number,
): { version: number; counts: Record<string, number> } {
  const copy = connect({ file: image })
  try {
    const foreign = foreignObject(copy, holds)
    if (foreign !== undefined)
      throw new StoreMaintenanceError(
        `the store has ${foreign}, which platformctl did not make, and a restore would refuse it: drop it, or restore the schema.`,
      )
    const found = copy.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok')
      throw new StoreMaintenanceError(
        `the store itself is damaged (${String(found)}): platformctl db verify says where.`,
      )
    // A restore names the time since then.
    if (holds === 'course' && schemaVersion(copy) > 0) plainPerformer(copy)(setMeta(BACKUP_AT, String(now)))
    return { version: schemaVersion(copy), counts: plainPerformer(copy)(countRows(DIALECT)) }
  } finally {
    // Back to one file without a log of its own, as it is to be packed.
    copy.pragma('journal_mode = DELETE')
    copy.close()
  }
}

/** Makes a rename durable; a folder cannot be opened on Windows, where a rename needs no such thing. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  await handle.sync().finally(() => handle.close())
}

/** Turns SQLite's error about damaged pages into a sentence; leaves any other error as it is. */
export function explainDamage(file: string, error: unknown): unknown {
  if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error))) return error
  return new StoreMaintenanceError(
    `${file} is damaged: platformctl db verify says where, and platformctl db restore puts a backup in its place.`,
    { cause: error },
  )
}

export function failed(file: string, error: unknown): unknown {
  const code = codeOf(error)
  if (storeFault(error) === 'disk_full')
    return new StoreMaintenanceError(
      `the disk of ${path.dirname(file)} is full; nothing was left there: free some space, or name another disk.`,
      { cause: error },
    )
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'SQLITE_CANTOPEN')
    return new StoreMaintenanceError(`${path.dirname(file)} cannot be written to by this user.`, {
      cause: error,
    })
  if (code === 'ENOENT') return new StoreMaintenanceError(`there is no file ${file}.`, { cause: error })
  if (code === 'EISDIR')
    return new StoreMaintenanceError(`${file} is a folder: name a file.`, { cause: error })
  if (code.startsWith('SQLITE_IOERR') || code === 'EIO')
    return new StoreMaintenanceError(
      `the disk of ${path.dirname(file)} reports an error (${code}): nothing was left there.`,
      { cause: error },
    )
  return error
}
