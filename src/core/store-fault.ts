/** Fault of a store, as health, the status page and the log name it. */
export type StoreFault =
  | 'disk_full'
  | 'damaged'
  | 'disk_error'
  | 'locked'
  | 'not_writable'
  | 'read_only'
  | 'journal'
  | 'not_reached'
  | 'busy'
  | 'crowded'
  | 'denied'
  | 'foreign'
  | 'other_platform'
  | 'unknown'

const REASONS: Readonly<Record<StoreFault, string>> = {
  disk_full: 'its disk is full',
  damaged: 'a page of its file is damaged',
  disk_error: 'its disk reports errors',
  locked: 'another process holds its lock',
  not_writable: 'its file cannot be written',
  read_only: 'its server accepts no writes: it is a replica, or was set to read-only',
  journal: 'its journal cannot be written, so a restore would forget who leaves now',
  not_reached: 'its server cannot be reached',
  busy: 'every connection of its pool is in use',
  crowded: 'its server has no connection left',
  denied: 'its server refused the user or the password',
  foreign: 'its server does not let this user use its tables: they belong to another',
  other_platform: 'belongs to a platform of another name',
  unknown: 'cannot be opened, written or read',
}

/** A caller got no connection of the pool in time. */
export const POOL_BUSY = 'POOL_BUSY'

/** Codes of SQLite, PostgreSQL (SQLSTATE) and the system, by how they begin; the first that fits counts. */
const CODES: readonly (readonly [start: string, fault: StoreFault])[] = [
  ['JOURNAL_', 'journal'],
  ['SQLITE_FULL', 'disk_full'],
  // The index of the log, beside the file, cannot be made.
  ['SQLITE_IOERR_SHMSIZE', 'disk_full'],
  ['ENOSPC', 'disk_full'],
  ['EDQUOT', 'disk_full'],
  ['53100', 'disk_full'],
  ['SQLITE_CORRUPT', 'damaged'],
  ['SQLITE_NOTADB', 'damaged'],
  ['XX001', 'damaged'],
  ['XX002', 'damaged'],
  ['SQLITE_IOERR', 'disk_error'],
  ['EIO', 'disk_error'],
  ['58030', 'disk_error'],
  ['SQLITE_BUSY', 'locked'],
  ['SQLITE_LOCKED', 'locked'],
  ['SQLITE_READONLY', 'not_writable'],
  ['SQLITE_CANTOPEN', 'not_writable'],
  ['SQLITE_PERM', 'not_writable'],
  ['EACCES', 'not_writable'],
  ['EROFS', 'not_writable'],
  ['25006', 'read_only'],
  ['ECONN', 'not_reached'],
  ['ENOTFOUND', 'not_reached'],
  ['EHOSTUNREACH', 'not_reached'],
  ['ETIMEDOUT', 'not_reached'],
  ['57P0', 'not_reached'],
  [POOL_BUSY, 'busy'],
  ['53300', 'crowded'],
  ['28', 'denied'],
  ['42501', 'foreign'],
  ['08', 'not_reached'],
  ['OTHER_PLATFORM', 'other_platform'],
]

/**
 * The fault behind an error of a store. Its causes are read too, because the outer errors are written for
 * visitors.
 */
export function storeFault(error: unknown): StoreFault {
  for (let each = error; each instanceof Error; each = each.cause) {
    const code = 'code' in each ? String(each.code) : ''
    const known = CODES.find(([start]) => code.startsWith(start))
    if (known) return known[1]
  }
  return 'unknown'
}

/** The fault as a predicate: "its disk is full". It names no file and no host, so anybody may read it. */
export function storeFaultReason(error: unknown): string {
  return REASONS[storeFault(error)]
}
