import { createHmac } from 'node:crypto'
import { mailboxKey } from '../address.ts'

/** Counted apart, so that what strangers can have sent to somebody never keeps that person from signing in. */
const ALLOWANCES = ['sign-in', 'invite', 'other'] as const

/** Which limit for each recipient a mail counts toward. */
export type Allowance = (typeof ALLOWANCES)[number]

/** Counts the mails to a mailbox without keeping the address, and without a hash that a list of addresses could be tried on. */
export function recipientHash(input: {
  readonly key: string
  readonly identity: string
  /** `other` if undefined. */
  readonly allowance: Allowance | undefined
}): string {
  return hashOf(input.key, input.allowance ?? 'other', input.identity)
}

/** All under which the mails to an address are counted: what its erasure forgets. */
export function recipientHashes(key: string, identity: string): readonly string[] {
  return ALLOWANCES.map((of) => hashOf(key, of, identity))
}

function hashOf(key: string, of: string, identity: string): string {
  return createHmac('sha256', key)
    .update(`recipient:${of} ${mailboxKey(identity)}`)
    .digest('base64url')
}
