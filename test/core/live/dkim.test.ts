import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { readDkim } from '../../../src/core/live/sender.ts'

const rsa = (modulusLength: number, type: 'spki' | 'pkcs1' = 'spki') =>
  generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ type, format: 'der' }).toString('base64')
const ed25519 = generateKeyPairSync('ed25519').publicKey
const RSA = rsa(1024)
const ED25519 = Buffer.from(ed25519.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64')
const ED25519_SPKI = ed25519.export({ type: 'spki', format: 'der' }).toString('base64')

test.each<[what: string, record: string, reading: string | undefined]>([
  ['an RSA key of 1024 bits', `v=DKIM1; k=rsa; p=${RSA}`, 'rsa'],
  ['one of fewer bits', `v=DKIM1; p=${rsa(1016)}`, 'its RSA key has fewer than 1024 bits'],
  ['one in the form of RFC 6376', `v=DKIM1; p=${rsa(1024, 'pkcs1')}`, 'rsa'],
  ['one without a version or a kind', `p=${RSA}`, 'rsa'],
  ['one with spaces in it', `v=DKIM1; p = ${RSA.slice(0, 70)} \t${RSA.slice(70)}`, 'rsa'],
  ['a kind in capitals', `v=DKIM1; k=RSA; p=${RSA}`, 'rsa'],
  ['an Ed25519 key', `v=DKIM1; k=ed25519; p=${ED25519}`, 'ed25519'],
  ['an Ed25519 key said to be RSA', `v=DKIM1; p=${ED25519_SPKI}`, 'its key (p=) cannot be read'],
  ['a key of a kind that is not known', `v=DKIM1; k=dsa; p=${RSA}`, 'its kind of key (k=) is unknown'],
  ['a key with a sign that is not base64', `v=DKIM1; p=!${RSA}`, 'its key (p=) cannot be read'],
  ['a hash that receivers take', `v=DKIM1; h=sha1: SHA256; p=${RSA}`, 'rsa'],
  ['only hashes that they do not', `v=DKIM1; h=sha1:sha512; p=${RSA}`, 'it does not allow sha256'],
  ['no key', 'v=DKIM1; k=rsa', 'it has no key (p=)'],
  ['an empty key', 'v=DKIM1; k=rsa; p= ', 'revoked'],
  ['another version', `v=DKIM2; p=${RSA}`, 'it does not begin with v=DKIM1'],
  ['a version that is not first', `k=rsa; v=DKIM1; p=${RSA}`, 'it does not begin with v=DKIM1'],
  ['the same tag twice', `v=DKIM1; p=${RSA}; p=`, 'it has the tag p twice'],
  ['something that is no tag', `v=DKIM1; rsa; p=${RSA}`, 'it is not a list of tags'],
  ['another record', 'v=spf1 -all', undefined],
  ['a text that ends in a tag like p', 'google-site-verification; xp=1', undefined],
])('a record with %s is read as receivers do', (_, record, expected) => {
  const reading = readDkim(record)
  const read =
    reading?.kind === 'usable'
      ? reading.key.asymmetricKeyType
      : reading?.kind === 'broken'
        ? reading.fault
        : reading?.kind
  expect(read).toBe(expected)
})
