import { createHmac } from 'node:crypto'
import { asciiAddress, parseAddress } from '../../address.ts'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const TOKEN_CHARACTERS = 26

/** Makes the envelope senders of our messages, and tells genuine bounces to them from forged ones. */
export interface BounceAddresses {
  /** `bounce+TOKEN@example.com`: only the recipient of our mail to this address knows it. */
  senderFor(address: string): string
  /** Does the text (a bounce, its headers included) name the envelope sender of this address? */
  isNamedIn(text: string, identity: string): boolean
}

/**
 * Envelope senders with a token each, an HMAC over the recipient under a key of the store. Lower-case letters and digits,
 * since mail servers may fold case; nothing is stored.
 */
export function createBounceAddresses(bounceAddress: string, key: string): BounceAddresses {
  const ascii = asciiAddress(bounceAddress)
  const at = ascii.lastIndexOf('@')
  const sender = (identity: string) => `${ascii.slice(0, at)}+${tokenOf(key, identity)}${ascii.slice(at)}`
  return {
    senderFor(address) {
      const parsed = parseAddress(address)
      return parsed.ok ? sender(parsed.identity) : ascii
    },
    isNamedIn: (text, identity) => text.toLowerCase().includes(sender(identity).toLowerCase()),
  }
}

function tokenOf(key: string, identity: string): string {
  const digest = createHmac('sha256', key).update(`bounce:${identity}`).digest()
  // Five bits of each byte: 130 bits in all.
  return Array.from(digest.subarray(0, TOKEN_CHARACTERS), (byte) => BASE32.charAt(byte & 31)).join('')
}
