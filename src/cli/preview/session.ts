import { randomBytes } from 'node:crypto'
import { isAcceptedSecret } from '../../core/accepted-secret.ts'
import { type SecretPair, secret } from '../../core/secret.ts'

/** Keeps other accounts of this machine, which can open the preview too, from sending mail through it. */
export interface Session {
  /** For the fragment of the printed address, which no server sees and no other account reads. */
  readonly key: string
  /** Gives the session's token for the key, the first time only. */
  exchange(key: string): string | undefined
  isHeldBy(token: string | undefined): boolean
}

export function createSession(): Session {
  const [key, token] = [random(), random()]
  let open: SecretPair | undefined = onlyValue(key)
  return {
    key,
    exchange(given) {
      if (!isAcceptedSecret(given, open)) return undefined
      open = undefined
      return token
    },
    isHeldBy: (given) => isAcceptedSecret(given, onlyValue(token)),
  }
}

const random = () => randomBytes(24).toString('base64url')

function onlyValue(value: string): SecretPair {
  const current = secret(value)
  return { current, accepted: [current] }
}
