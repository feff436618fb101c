import type { Identify, Identity } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'

/** Who asks, or 401. */
export async function requireIdentity(identify: Identify, request: Request): Promise<Identity> {
  const identity = await identify(request)
  if (identity === undefined)
    throw new PlatformError('unauthenticated', 'This route needs the token of a signed-in account.')
  return identity
}
