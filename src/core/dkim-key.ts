import type { KeyObject } from 'node:crypto'

/** Receivers ignore signatures of shorter keys (RFC 8301 §3.2). */
const LEAST_BITS = 1024

/**
 * The private RSA key of a PEM text; undefined for anything that receivers would not accept. An env file holds the text
 * on one line, with `\n` for its line ends.
 */
export function dkimPrivateKey(text: string): KeyObject | undefined {
  // Loading the crypto module takes 6 ms of a cold start, so text that cannot be a key never does.
  if (!text.includes('-----BEGIN ')) return undefined
  const { createPrivateKey } = process.getBuiltinModule('node:crypto')
  try {
    const key = createPrivateKey(text.replaceAll('\\n', '\n'))
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
    return key.asymmetricKeyType === 'rsa' && bits >= LEAST_BITS ? key : undefined
  } catch {
    return undefined
  }
}
