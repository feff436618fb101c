import { codeOf } from './error-code.ts'

/** A caller got no connection of the pool in time. */
export const POOL_BUSY = 'POOL_BUSY'

/** The faults of a store: what health and logs call each, then how its codes begin. The first that fits counts. */
const FAULTS = {
  journal: ['its journal cannot be written, so a restore would forget who leaves now', 'JOURNAL_'],
  // SHMSIZE: the index of the log, beside the file, cannot be made.
  disk_full: ['its disk is full', 'SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT', '53100'],
  damaged: ['a page of its file is damaged', 'SQLITE_CORRUPT', 'SQLITE_NOTADB', 'XX001', 'XX002'],
  disk_error: ['its disk reports errors', 'SQLITE_IOERR', 'EIO', '58030'],
  locked: ['another process holds its lock', 'SQLITE_BUSY', 'SQLITE_LOCKED'],
  not_writable: [
    'its file cannot be written',
    ...['SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_PERM', 'EACCES', 'EROFS'],
  ],
  read_only: ['its server accepts no writes: it is a replica, or was set to read-only', '25006'],
  not_reached: [
    'its server cannot be reached',
    ...['ECONN', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT', '57P0', '08'],
  ],
  busy: ['every connection of its pool is in use', POOL_BUSY],
  crowded: ['its server has no connection left', '53300'],
  denied: ['its server refused the user or the password', '28'],
  foreign: ['its server does not let this user use its tables: they belong to another', '42501'],
  other_platform: ['belongs to a platform of another name', 'OTHER_PLATFORM'],
  unknown: ['cannot be opened, written or read'],
} as const satisfies Record<string, readonly [reason: string, ...starts: string[]]>

type StoreFault = keyof typeof FAULTS
const NAMES = Object.keys(FAULTS) as readonly StoreFault[]

/** The fault behind an error of a store. Its causes are read too, because the outer errors are written for visitors. */
export function storeFault(error: unknown): StoreFault {
  for (let each = error; each instanceof Error; each = each.cause) {
    const code = codeOf(each)
    const known = NAMES.find((name) => FAULTS[name].some((start, at) => at > 0 && code.startsWith(start)))
    if (known) return known
  }
  return 'unknown'
}

/** The fault as a predicate: "its disk is full". It names no file and no host, so anybody may read it. */
export const storeFaultReason = (error: unknown) => FAULTS[storeFault(error)][0]
