import { createHmac } from 'node:crypto'
import type { Secret } from '../secret.ts'

/** The provider's signature of a webhook body: `t=UNIX_SECONDS,v1=HEX`, HMAC-SHA256 over `t.body`. */
export function signatureOf(input: {
  readonly body: string
  readonly secret: Secret
  readonly nowMs: number
}): string {
  const time = Math.floor(input.nowMs / 1000)
  const signature = createHmac('sha256', input.secret.reveal()).update(`${time}.${input.body}`).digest('hex')
  return `t=${time},v1=${signature}`
}
