/** Every error that leaves the platform: code → HTTP status → meaning (CONTRACT §4). The only such table. */
export const ERRORS = {
  bad_request: {
    status: 400,
    meaning: 'The request does not have the documented form; `issues` names each field.',
  },
  token_invalid: { status: 400, meaning: 'The link’s token matches nothing.' },
  token_expired: { status: 400, meaning: 'The link’s token was valid for 7 days and has expired.' },
  signature_invalid: {
    status: 400,
    meaning: 'The webhook’s signature does not fit its body, or was made more than 5 minutes ago.',
  },
  challenge_failed: {
    status: 400,
    meaning: 'The challenge that this platform asks of subscribers was not passed.',
  },
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
  store_not_persistent: {
    status: 503,
    meaning: 'Dispatch needs a persistent store, and this is the in-memory fallback.',
  },
  store_unavailable: {
    status: 503,
    meaning: 'The store cannot be read or written now; nothing was recorded.',
  },
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
