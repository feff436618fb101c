import { createHash, timingSafeEqual } from 'node:crypto'
import type { RotatingSecret } from './secret.ts'

const digest = (value: string) => createHash('sha256').update(value).digest()

/** Takes the same time wherever two texts of one length differ. */
export function isSameText(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Whether this value is accepted. All are hashed and compared, so the time depends on neither length nor match. */
export function isAcceptedSecret(given: string | undefined, secret: RotatingSecret | undefined): boolean {
  const asked = digest(given ?? '')
  const equal = (secret?.accepted ?? []).map((one) => timingSafeEqual(asked, digest(one.reveal())))
  return given !== undefined && equal.includes(true)
}
