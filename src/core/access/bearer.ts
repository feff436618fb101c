import { createHash, timingSafeEqual } from 'node:crypto'
import type { Secret } from '../secret.ts'

/**
 * Does the request carry this secret as `Authorization: Bearer`? Both sides are hashed first, so that the
 * comparison takes the same time for every length. Without a secret nothing can authenticate.
 */
export function hasBearer(request: Request, secret: Secret | undefined): boolean {
  const given = /^Bearer ([\x21-\x7e]{1,4096})$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  const digest = (value: string) => createHash('sha256').update(value).digest()
  const equal = timingSafeEqual(digest(given ?? ''), digest(secret?.reveal() ?? ''))
  return equal && given !== undefined && secret !== undefined
}
