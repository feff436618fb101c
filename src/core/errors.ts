/** Every error that leaves the platform: code → HTTP status → meaning (CONTRACT §4). The only such table. */
export const ERRORS = {
  bad_request: { status: 400, meaning: 'The request lacks the documented form; `issues` names each field.' },
  token_invalid: { status: 400, meaning: 'The link’s token matches nothing.' },
  token_expired: { status: 400, meaning: 'The link’s token was valid for 7 days and has expired.' },
  signature_invalid: { status: 400, meaning: 'The webhook’s signature is too old, or not of its body.' },
  challenge_failed: { status: 400, meaning: 'The challenge for subscribers was not passed.' },
  unauthenticated: { status: 401, meaning: 'No valid identity or secret came with the request.' },
  locked: { status: 402, meaning: 'The feature is locked or its quota is exhausted.' },
  not_found: { status: 404, meaning: 'No such route, or no such record for this caller.' },
  method_not_allowed: { status: 405, meaning: 'The route exists, but not for this method; see `Allow`.' },
  request_timeout: { status: 408, meaning: 'The request did not arrive in time.' },
  conflict: { status: 409, meaning: 'The record’s state does not allow this.' },
  payload_too_large: { status: 413, meaning: 'The body is larger than this route accepts.' },
  uri_too_long: { status: 414, meaning: 'The URL is too long.' },
  unsupported_media_type: { status: 415, meaning: 'The body’s media type or encoding is not accepted here.' },
  rate_limited: { status: 429, meaning: 'Too many requests; see `Retry-After`.' },
  headers_too_large: { status: 431, meaning: 'The request’s header fields are too many or too long.' },
  internal: { status: 500, meaning: 'A fault of the platform itself; the request id finds it in the log.' },
  unavailable: { status: 503, meaning: 'A dependency is not available now; try again later.' },
  store_not_persistent: { status: 503, meaning: 'Dispatch needs a persistent store; this one is in memory.' },
  store_unavailable: { status: 503, meaning: 'The store cannot be read or written; nothing was recorded.' },
  payments_not_configured: { status: 503, meaning: 'Payments are not configured on this platform.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type ErrorCode = keyof typeof ERRORS

/** One fault in one field of a request: `path` is dotted (`events.3.kind`), empty for the whole body. */
export interface Issue {
  readonly path: string
  readonly message: string
}

/** An error with a stable code and a sentence that may be shown to the caller: it never carries an internal text. */
export class PlatformError extends Error {
  override readonly name = 'PlatformError'
  readonly code: ErrorCode
  readonly issues: readonly Issue[] | undefined
  readonly retryAfterSeconds: number | undefined
  /** Retrying in this process is pointless: a store that was closed stays closed. */
  readonly final: boolean

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      issues?: readonly Issue[]
      retryAfterSeconds?: number
      final?: boolean
      cause?: unknown
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.issues = options.issues
    this.retryAfterSeconds = options.retryAfterSeconds
    this.final = options.final ?? false
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** The code of an error of the system or a package (`ECONNREFUSED`); empty without one. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
}

/** The code of what kept some work from being done; undefined: it was done. Throws a fault whose code is another than `known`. */
export function faultOf(work: () => void, known = /^/): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    const code = codeOf(error)
    if (!known.test(code)) throw error
    return code
  }
}

/** The name of a fault for the log; its text could quote an address or a secret. */
export const faultName = (error: unknown) => (error instanceof Error ? error.name : 'unknown')

/** Where a fault happened. What comes before the frames is left out, because an error's message can quote a value. */
export function framesOf(error: unknown): readonly string[] {
  if (!(error instanceof Error) || error.stack === undefined) return []
  const message = error.stack.indexOf(error.message)
  const frames = message === -1 ? '' : error.stack.slice(message + error.message.length)
  return frames.match(/^[ \t]+at .*/gm) ?? []
}

export const codeError = (code: string) => Object.assign(new Error(code), { code })

/** A caller got no connection of the pool in time. */
export const POOL_BUSY = 'POOL_BUSY'

/** The faults of a store: what health and logs call each, then how its codes begin. The first that fits counts. */
// biome-ignore format: a fault a line
const FAULTS = {
  journal: ['its journal cannot be written, so a restore would forget who leaves now', 'JOURNAL_'],
  // SHMSIZE: the index of the log, beside the file, cannot be made.
  disk_full: ['its disk is full', 'SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC', 'EDQUOT', '53100'],
  damaged: ['a page of its file is damaged', 'SQLITE_CORRUPT', 'SQLITE_NOTADB', 'XX001', 'XX002'],
  disk_error: ['its disk reports errors', 'SQLITE_IOERR', 'EIO', '58030'],
  locked: ['another process holds its lock', 'SQLITE_BUSY', 'SQLITE_LOCKED'],
  not_writable:
    ['its file cannot be written', 'SQLITE_READONLY', 'SQLITE_CANTOPEN', 'SQLITE_PERM', 'EACCES', 'EROFS'],
  read_only: ['its server accepts no writes: it is a replica, or was set to read-only', '25006'],
  not_reached:
    ['its server cannot be reached', 'ECONN', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT', '57P0', '08'],
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
