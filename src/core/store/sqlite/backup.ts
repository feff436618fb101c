import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { type BackupResult, StoreCareError } from '../care.ts'
import { connect, type SqliteDatabase, schemaVersion } from './connection.ts'
import { pack, packingOf, unpack } from './image.ts'
import { countRows } from './verify.ts'

/**
 * Backs a store up while others write to it: one read transaction copies a consistent state (VACUUM INTO), the copy is
 * checked, packed, read back and compared, and only then gets its name. A failure leaves nothing behind.
 */
export async function backup(database: SqliteDatabase, file: string): Promise<BackupResult> {
  const packing = packingOf(file)
  if (existsSync(file))
    throw new StoreCareError(`${file} exists and was left as it is: give the backup a new name.`)
  if (!existsSync(path.dirname(file)))
    throw new StoreCareError(`${path.dirname(file)} does not exist: make the folder for backups first.`)
  const scratch = `${file}.part-${process.pid}`
  const [image, packed] = [`${scratch}.sqlite`, `${scratch}.packed`]
  try {
    database.prepare('VACUUM INTO ?').run(image)
    const { version, counts } = checkImage(image)
    const hash = await pack(image, packed, packing)
    if ((await unpack(packed, undefined)) !== hash)
      throw new StoreCareError(`what was written to ${file} reads back differently: check the disk.`)
    await rename(packed, file)
    await syncFolder(path.dirname(file))
    return { file, bytes: statSync(file).size, version, counts }
  } catch (error) {
    throw failed(file, error)
  } finally {
    for (const one of [image, `${image}-wal`, `${image}-shm`, `${image}-journal`, packed])
      await rm(one, { force: true })
  }
}

function checkImage(image: string): { version: number; counts: Record<string, number> } {
  const copy = connect({ file: image })
  try {
    const found = copy.pragma('integrity_check(1)', { simple: true })
    if (found !== 'ok')
      throw new StoreCareError(
        `the store itself is damaged (${String(found)}): platformctl db verify says where.`,
      )
    return { version: schemaVersion(copy), counts: countRows(copy) }
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

/** What SQLite says of damaged pages as a sentence; any other error as it is. */
export function damagedOr(file: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error && /^SQLITE_(?:CORRUPT|NOTADB)/.test(String(error.code))))
    return error
  return new StoreCareError(
    `${file} is damaged: platformctl db verify says where, and platformctl db restore puts a backup in its place.`,
    { cause: error },
  )
}

export function failed(file: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (code === 'ENOSPC' || code === 'SQLITE_FULL' || code === 'EDQUOT')
    return new StoreCareError(
      `the disk of ${path.dirname(file)} is full; nothing was left there: free some space, or name another disk.`,
      { cause: error },
    )
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'SQLITE_CANTOPEN')
    return new StoreCareError(`${path.dirname(file)} cannot be written to by this user.`, { cause: error })
  if (code === 'ENOENT') return new StoreCareError(`there is no file ${file}.`, { cause: error })
  if (code === 'EISDIR') return new StoreCareError(`${file} is a folder: name a file.`, { cause: error })
  if (code.startsWith('SQLITE_IOERR') || code === 'EIO')
    return new StoreCareError(
      `the disk of ${path.dirname(file)} reports an error (${code}): nothing was left there.`,
      { cause: error },
    )
  return error
}
