import type { KeyObject } from 'node:crypto'
import { attempt } from './is-record.ts'

/** Canonical base64 (RFC 4648 §3.5) of at least 24 bytes: 32 characters are exactly that. */
const BASE64 = '(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?'
const SIGNING = `(?:whsec_)?${BASE64}`
/** A DER sequence, as every public key is, begins with M in base64. */
const PUBLIC = `(?=M)${BASE64}`

/** Finds values that are not one key, or several separated by commas. */
const unless = (key: string) => new RegExp(`^(?!\\s*${key}(?:\\s*,\\s*${key})*\\s*$)`)

/**
 * Rules about keys that cannot be used: the daemon calls them wrong usage, as it does a malformed STORE_URL. They refuse
 * values that a lenient decoder would turn into an empty or short key.
 */
export const KEY_RULES = {
  signing: { id: 'feedback-signing-key', value: unless(SIGNING) },
  public: { id: 'feedback-public-key', value: unless(PUBLIC) },
  alerts: { id: 'alerts-signing-key', value: new RegExp(`^\\s*whsec_(?!${BASE64}\\s*$)`) },
} as const

const SIGNING_KEY = new RegExp(`^${SIGNING}$`)

/** The bytes of a Standard Webhooks key; undefined for any other text, which would be a key that can be guessed. */
export function decodeWebhookKey(text: string): Buffer | undefined {
  return SIGNING_KEY.test(text) ? Buffer.from(text.replace(/^whsec_/, ''), 'base64') : undefined
}

/** Receivers ignore signatures of shorter keys (RFC 8301 §3.2). */
export const LEAST_RSA_BITS = 1024

/** The private RSA key of a PEM text, in which line ends may be written `\n`; undefined if receivers would refuse it. */
export function dkimPrivateKey(text: string): KeyObject | undefined {
  // Loading the crypto module takes 6 ms of a cold start, so text that cannot be a key never does.
  if (!text.includes('-----BEGIN ')) return undefined
  const { createPrivateKey } = process.getBuiltinModule('node:crypto')
  const key = attempt(() => createPrivateKey(text.replaceAll('\\n', '\n')))
  const bits = key?.asymmetricKeyDetails?.modulusLength ?? 0
  return key?.asymmetricKeyType === 'rsa' && bits >= LEAST_RSA_BITS ? key : undefined
}
