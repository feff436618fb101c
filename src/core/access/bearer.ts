import { isAcceptedSecret } from '../accepted-secret.ts'
import type { SecretPair } from '../secret.ts'

/** The bearer token of a request, if it has the form of one. */
export function bearerOf(request: Request): string | undefined {
  return /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
}

/**
 * Whether the request's Authorization header carries this secret (either value while it is being rotated) as
 * a bearer token. Without a secret, nothing can authenticate.
 */
export function hasBearer(request: Request, secret: SecretPair | undefined): boolean {
  return isAcceptedSecret(bearerOf(request), secret)
}

/**
 * Whether the request carries the secret as the password of `Authorization: Basic` (RFC 7617; any user name).
 * A browser asks its user for that by itself, so a person needs no script and no cookie.
 */
export function hasBasicPassword(request: Request, secret: SecretPair | undefined): boolean {
  const given = /^Basic ([A-Za-z0-9+/]{1,8192}={0,2})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  const pair = given === undefined ? undefined : Buffer.from(given, 'base64').toString('utf8')
  return isAcceptedSecret(pair?.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined, secret)
}
