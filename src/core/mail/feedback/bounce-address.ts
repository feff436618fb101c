import { createHmac } from 'node:crypto'
import { asciiAddress, parseAddress } from '../../address.ts'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const TOKEN_CHARACTERS = 26

export type BounceAddresses = ReturnType<typeof createBounceAddresses>

/**
 * Makes the envelope senders of our messages, and tells genuine bounces to them from forged ones: each has a token, an
 * HMAC over the recipient under a key of the store. Lower-case, since mail servers may fold case; nothing is stored.
 */
export function createBounceAddresses(bounceAddress: string, key: string) {
  const ascii = asciiAddress(bounceAddress)
  const at = ascii.lastIndexOf('@')
  const [prefix, suffix] = [`${ascii.slice(0, at)}+`, ascii.slice(at)]
  const sender = (identity: string) => `${prefix}${tokenOf(key, identity)}${suffix}`
  return {
    /** `bounce+TOKEN@example.com`: only the recipient of our mail to this address knows it. */
    senderFor(address: string): string {
      const parsed = parseAddress(address)
      return parsed.ok ? sender(parsed.identity) : ascii
    },
    /** Reads the envelope senders in a bounce, headers included, and gives whether that of an address is one of them. */
    namedIn(text: string): (identity: string) => boolean {
      const tokens = tokensIn(text.toLowerCase(), prefix.toLowerCase(), suffix.toLowerCase())
      return (identity: string) => tokens.has(tokenOf(key, identity))
    },
  }
}

/** What stands between the two, wherever it is as long as a token. */
function tokensIn(text: string, prefix: string, suffix: string): ReadonlySet<string> {
  const tokens = new Set<string>()
  for (let at = text.indexOf(prefix); at !== -1; at = text.indexOf(prefix, at + 1)) {
    const [from, to] = [at + prefix.length, at + prefix.length + TOKEN_CHARACTERS]
    if (text.startsWith(suffix, to)) tokens.add(text.slice(from, to))
  }
  return tokens
}

function tokenOf(key: string, identity: string): string {
  const digest = createHmac('sha256', key).update(`bounce:${identity}`).digest()
  // Five bits of each byte: 130 bits in all.
  return Array.from(digest.subarray(0, TOKEN_CHARACTERS), (byte) => BASE32.charAt(byte & 31)).join('')
}
