import { chownSync, existsSync, statSync } from 'node:fs'
import path from 'node:path'

export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Owner of the store, or of its folder if there is no store yet: the daemon's user. */
export function ownerOf(file: string): Owner {
  return statSync(existsSync(file) ? file : path.dirname(path.resolve(file)))
}

/** Whether a file belongs to another user than the store, whose daemon then cannot write it. */
export function isForeign(file: string, storeFile: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false })
  return found !== undefined && found.uid !== ownerOf(storeFile).uid
}

/** A file made or restored by the superuser stays usable by the user that the daemon runs as. */
export function changeOwner({ uid, gid }: Owner, file: string): void {
  if (process.getuid?.() === 0) chownSync(file, uid, gid)
}
