import { createPublicKey, type KeyObject } from 'node:crypto'
import { readTags } from './tags.ts'

/** Receivers ignore signatures of shorter RSA keys (RFC 8301 §3.2). */
const LEAST_RSA_BITS = 1024

/** A DKIM key record as receivers read it (RFC 6376 §3.6.1). */
export type DkimReading =
  | { readonly kind: 'usable'; readonly key: KeyObject }
  | { readonly kind: 'revoked' }
  | { readonly kind: 'broken'; readonly fault: string }

/** Reads a key record as a receiver does; undefined when the text is not one. */
export function readDkim(text: string): DkimReading | undefined {
  if (!/(?:^|;)\s*(?:p\s*=|v\s*=\s*DKIM)/i.test(text)) return undefined
  const read = readTags(text)
  if ('fault' in read) return { kind: 'broken', fault: `it ${read.fault}` }
  const { tags } = read
  const [first] = tags.keys()
  if (tags.has('v') && (first !== 'v' || tags.get('v') !== 'DKIM1'))
    return { kind: 'broken', fault: 'it does not begin with v=DKIM1' }
  const encoded = tags.get('p')?.replace(/\s/g, '')
  if (encoded === undefined) return { kind: 'broken', fault: 'it has no key (p=)' }
  if (encoded === '') return { kind: 'revoked' }
  const hashes = tags.get('h')?.split(':')
  if (hashes && !hashes.some((hash) => hash.trim().toLowerCase() === 'sha256'))
    return { kind: 'broken', fault: 'it does not allow sha256' }
  const type = (tags.get('k') ?? 'rsa').toLowerCase()
  if (type !== 'rsa' && type !== 'ed25519')
    return { kind: 'broken', fault: 'its kind of key (k=) is unknown' }
  const key = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) ? keyOf(Buffer.from(encoded, 'base64'), type) : undefined
  if (key === undefined) return { kind: 'broken', fault: 'its key (p=) cannot be read' }
  return type === 'rsa' && (key.asymmetricKeyDetails?.modulusLength ?? 0) < LEAST_RSA_BITS
    ? { kind: 'broken', fault: `its RSA key has fewer than ${LEAST_RSA_BITS} bits` }
    : { kind: 'usable', key }
}

/**
 * Reads a public key. An RSA key is a SubjectPublicKeyInfo or, as RFC 6376 says, an RSAPublicKey; an Ed25519
 * key is 32 bytes (RFC 8463).
 */
function keyOf(bytes: Buffer, type: 'rsa' | 'ed25519'): KeyObject | undefined {
  const forms =
    type === 'rsa'
      ? [
          () => createPublicKey({ key: bytes, format: 'der', type: 'spki' }),
          () => createPublicKey({ key: bytes, format: 'der', type: 'pkcs1' }),
        ]
      : [
          () =>
            createPublicKey({
              key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') },
              format: 'jwk',
            }),
        ]
  for (const form of forms) {
    try {
      const key = form()
      if (key.asymmetricKeyType === type) return key
    } catch {
      // Not of this form; the next is tried.
    }
  }
  return undefined
}
