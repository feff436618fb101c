import { existsSync, lstatSync, statSync } from 'node:fs'
import path from 'node:path'
import { codeOf } from '../../error-code.ts'
import { StoreMaintenanceError } from '../errors.ts'
import {
  BACKUP_AT,
  type BackupOptions,
  type BackupResult,
  countRows,
  type StoreContent,
} from '../maintenance.ts'
import { setMeta } from '../meta.ts'
import { foreignObject } from './check.ts'
import { connect, type SqliteDatabase, schemaVersion } from './connection.ts'
import { makeFile, making } from './files.ts'
import { hashOf, pack, packingOf, unpack } from './image.ts'
import { performer } from './sql.ts'

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
  const { version, counts } = await making(file, async (scratch) => {
    const [image, packed] = [scratch('image.sqlite'), scratch('packed')]
    makeFile(image)
    database.prepare('VACUUM INTO ?').run(image)
    const checked = checkImage(image, holds, now)
    const { image: hash, written } = await pack(image, packed, { packing, recipients })
    // Only its recipients can read an encrypted backup: then the bytes are compared.
    const same =
      recipients.length > 0 ? (await hashOf(packed)) === written : (await unpack(packed, undefined)) === hash
    if (!same)
      throw new StoreMaintenanceError(`what was written to ${file} reads back differently: check the disk.`)
    return { made: packed, ...checked }
  })
  return { file, bytes: statSync(file).size, version, counts }
}

function checkImage(image: string, holds: StoreContent, now: number) {
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
    if (holds === 'course' && schemaVersion(copy) > 0) performer(copy)(setMeta(BACKUP_AT, String(now)))
    return { version: schemaVersion(copy), counts: performer(copy)(countRows()) }
  } finally {
    // Back to one file without a log of its own, as it is to be packed.
    copy.pragma('journal_mode = DELETE')
    copy.close()
  }
}

/** Turns SQLite's error about damaged pages into a sentence; leaves any other error as it is. */
export function explainDamage(file: string, error: unknown): unknown {
  if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(codeOf(error))) return error
  return new StoreMaintenanceError(
    `${file} is damaged: platformctl db verify says where, and platformctl db restore puts a backup in its place.`,
    { cause: error },
  )
}
