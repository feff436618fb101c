import fs from 'node:fs'
import { hostname } from 'node:os'
import path from 'node:path'
import { isRunning } from '../../daemon-record.ts'
import { codeOf, faultOf, storeFault } from '../../errors.ts'
import { attempt } from '../../is-record.ts'
import { refusal, refusalFor, StoreMaintenanceError } from '../errors.ts'

/** The daemon's user: the owner of the store, or of its folder if there is no store yet. */
const ownerOf = (store: string) =>
  fs.statSync(fs.existsSync(store) ? store : path.dirname(path.resolve(store)))

export const sizeOf = (file: string): number => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Whether a file belongs to another user than the store, whose daemon then cannot write it. */
export function isForeign(file: string, store: string): boolean {
  const found = fs.statSync(file, { throwIfNoEntry: false })
  return found !== undefined && found.uid !== ownerOf(store).uid
}

/** A file made by the superuser stays usable by the user that the daemon runs as; what a link in its place leads to is not given away. */
export function shareOwner(file: string, store: string): void {
  const { uid, gid } = ownerOf(store)
  if (process.getuid?.() === 0) fs.lchownSync(file, uid, gid)
}

/** Makes a folder; gives those that it made, the outermost first. Node's own mkdir hangs in /proc, and says ENOENT of a disk that is read-only. */
export function makeFolder(folder: string, mode = 0o700): readonly string[] {
  const parent = path.dirname(folder)
  // A drive that is missing has no folder above it.
  if (fs.existsSync(folder) || parent === folder) return []
  const above = makeFolder(parent, mode)
  try {
    fs.mkdirSync(folder, { mode })
    shareOwner(folder, parent)
    return [...above, folder]
  } catch (error) {
    // Another process that starts beside this one may have made it.
    if (!fs.existsSync(folder)) throw error
    return above
  }
}

/** Makes an empty file for its owner only; fails where there is anything of that name, links included. */
export function makeFile(file: string): void {
  fs.closeSync(fs.openSync(file, 'wx', 0o600))
  shareOwner(file, path.dirname(path.resolve(file)))
}

/** Process numbers mean something on one machine (or in one container) only. */
const PREFIX = `.platformctl-${hostname().replace(/[^\w.]/g, '_')}-`

/** A folder for unfinished copies: its owner's, with a name that nobody can make first, on the disk of `folder` for a rename. */
export function makeScratch(folder: string): string {
  removeAbandoned(folder)
  return fs.mkdtempSync(path.join(folder, `${PREFIX}${process.pid}-`))
}

export const removeFolder = (folder: string): void => fs.rmSync(folder, { recursive: true, force: true })

/** Makes a file that is complete when it gets its name: `work` makes it as `made`, and a failure leaves nothing. */
export async function making<T>(file: string, work: (made: string) => Promise<T>): Promise<T> {
  const folder = path.dirname(file)
  let scratch: string | undefined
  try {
    scratch = makeScratch(folder)
    const made = path.join(scratch, 'made')
    const result = await work(made)
    moveIntoPlace(made, file)
    syncFolder(folder)
    return result
  } catch (error) {
    throw failed(file, error)
  } finally {
    if (scratch) removeFolder(scratch)
  }
}

export function removeAbandoned(folder: string): void {
  for (const name of fs.readdirSync(folder)) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : Number.NaN
    if (Number.isNaN(pid) || isRunning({ pid })) continue
    const file = path.join(folder, name)
    // Not through a link, and nothing that another user put there.
    const found = fs.lstatSync(file, { throwIfNoEntry: false })
    if (found?.isDirectory() && found.uid === (process.geteuid?.() ?? found.uid)) removeFolder(file)
  }
}

/** With less free space the disk counts as full, even while rows can still be changed in place. */
const LEAST_FREE_BYTES = 256 * 1024

export function isDiskFull(file: string): boolean {
  // A file system that does not say so is asked by writing.
  const found = attempt(() => fs.statfsSync(path.dirname(path.resolve(file))))
  if (found === undefined) return false
  // Some blocks may be kept for the superuser.
  return (process.getuid?.() === 0 ? found.bfree : found.bavail) * found.bsize < LEAST_FREE_BYTES
}

/** A second name, because a rename would replace a file that was made meanwhile; a rename where there are no links. */
export function moveIntoPlace(from: string, to: string): void {
  const code = faultOf(() => fs.linkSync(from, to), /^(?:EEXIST|EPERM|ENOTSUP|ENOSYS)$/)
  if (code === 'EEXIST') throw refusal`${to} exists and was left as it is: name another file.`
  if (code !== undefined) fs.renameSync(from, to)
}

/** Makes a rename durable; a folder cannot be opened on Windows, where a rename needs no such thing. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const descriptor = fs.openSync(folder, 'r')
  fs.fsyncSync(descriptor)
  fs.closeSync(descriptor)
}

export const readOnlyDisk = (place: string) =>
  `${place} is on a disk that takes no writes: it is mounted read-only, perhaps after an error (dmesg says).`

/** Makes a fault of the disk a sentence about the file that met it; leaves any other error as it is. */
export function failed(file: string, cause: unknown): unknown {
  // It may be about another file.
  if (cause instanceof StoreMaintenanceError) return cause
  const refuse = refusalFor(cause)
  const code = codeOf(cause)
  const folder = path.dirname(file)
  // Only what is there can belong to somebody else: a new file is refused by its folder.
  const met = cause instanceof Error && 'path' in cause ? String(cause.path) : ''
  if (fs.existsSync(met) && /^(?:EACCES|EPERM)$/.test(code))
    return refuse`${met} cannot be read or written by this user: correct its owner.`
  if (storeFault(cause) === 'disk_full')
    return refuse`the disk of ${folder} is full; nothing was left there: free some space, or name another disk.`
  if (code === 'EROFS') return refuse`${readOnlyDisk(folder)}`
  if (/^(?:EACCES|EPERM|SQLITE_CANTOPEN)$/.test(code))
    return refuse`${folder} cannot be written to by this user.`
  if (code === 'ENOENT' && !fs.existsSync(folder))
    return refuse`${folder} does not exist: make the folder first.`
  if (code === 'ENOENT') return refuse`there is no file ${file}.`
  if (code === 'ENOTDIR') return refuse`${folder} is a file, not a folder: name another place.`
  if (code === 'EISDIR') return refuse`${file} is a folder: name a file.`
  const isRead = cause instanceof Error && 'syscall' in cause && cause.syscall === 'read'
  if (/^(?:SQLITE_IOERR|EIO$)/.test(code))
    return refuse`the disk of ${isRead ? 'what was read' : folder} reports an error (${code}): nothing was left in ${folder}.`
  return cause
}
