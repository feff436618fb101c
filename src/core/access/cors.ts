/** Until origins are configured, only pages served from this machine may call (CONTRACT §2, site). */
const LOCALHOST = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/

/** Whether a page of an origin may call. Compared as serialized origins (RFC 6454 §6.2), never by prefix. */
export function originPolicy(configured: readonly string[] | undefined): (origin: string) => boolean {
  const allowed = new Set(configured)
  return configured === undefined ? (origin) => LOCALHOST.test(origin) : (origin) => allowed.has(origin)
}
