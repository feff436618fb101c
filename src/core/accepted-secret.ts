import { createHash, timingSafeEqual } from 'node:crypto'
import type { SecretPair } from './secret.ts'

const digest = (value: string) => createHash('sha256').update(value).digest()

/**
 * Whether this is one of the accepted values. Both sides are hashed first and every value is compared, so the
 * time depends on neither length nor match. Nothing matches an absent secret.
 */
export function isAcceptedSecret(given: string | undefined, secret: SecretPair | undefined): boolean {
  const asked = digest(given ?? '')
  const equal = (secret?.accepted ?? []).map((one) => timingSafeEqual(asked, digest(one.reveal())))
  return given !== undefined && equal.includes(true)
}
