import type { Identify, Identity } from '../../core/access/identity.ts'
import { PlatformError } from '../../core/errors.ts'
import type { RouteRequest } from './route.ts'

/** The identity that a request proves, or 401. */
export async function requireIdentity(
  identify: Identify,
  { request, passed }: Pick<RouteRequest, 'request' | 'passed'>,
): Promise<Identity> {
  const identity = await identify(request)
  if (identity === undefined)
    throw new PlatformError('unauthenticated', 'This route needs the token of a signed-in account.')
  passed()
  return identity
}
