import { createHmac } from 'node:crypto'
import { mailboxKey } from '../address.ts'

/**
 * Each class of mail has its own limit, so that mail which strangers request never keeps a person from
 * signing in. `program` has none: it is what the platform's own code sends at once.
 */
const ALLOWANCES = ['sign-in', 'invite', 'other', 'program'] as const

/** The limit per recipient that a mail counts toward. */
export type Allowance = (typeof ALLOWANCES)[number]

/**
 * The keyed hash under which mail to a mailbox is counted: the address is not kept, and nobody without the
 * key can test a list of addresses against it.
 */
export function recipientHash(input: {
  readonly key: string
  readonly identity: string
  /** `other` if undefined. */
  readonly allowance: Allowance | undefined
}): string {
  return hashOf(input.key, input.allowance ?? 'other', input.identity)
}

/** All hashes under which mail to an address is counted. Its erasure deletes them. */
export function recipientHashes(key: string, identity: string): readonly string[] {
  return ALLOWANCES.map((of) => hashOf(key, of, identity))
}

function hashOf(key: string, of: string, identity: string): string {
  return createHmac('sha256', key)
    .update(`recipient:${of} ${mailboxKey(identity)}`)
    .digest('base64url')
}
