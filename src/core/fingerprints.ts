import { createHmac, type ScryptOptions, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { type Environment, rawValue } from './env/settings.ts'
import type { ResolvedPlatform } from './platform.ts'
import { WEB } from './service.ts'

/** Shorter tokens could be guessed, and with one the fingerprints that are made under it. */
export const LEAST_TOKEN = 24

/** 16 bytes that the caller chose, in hexadecimal. */
export const NONCE = /^[0-9a-f]{32}$/i

// 16 MB and some 40 ms a derivation.
const COST: ScryptOptions = { N: 2 ** 14, r: 8, p: 1 }
const derive = promisify<string | Buffer, string | Buffer, number, ScryptOptions, Buffer>(scrypt)

/** One text for all that web runs with, to compare replicas. It can only test a guess at the whole. */
export async function fingerprintAll(
  { name: salt, contract, definition }: ResolvedPlatform,
  env: Environment,
  /** False for values that no file and no environment set. */
  isSet: (name: string) => boolean,
): Promise<string> {
  const values = contract.variables.flatMap(({ name, perReplica, services }) =>
    services.includes(WEB) && !perReplica && isSet(name) ? `${name}=${rawValue(env, name) ?? ''}` : [],
  )
  const all = JSON.stringify([definition?.fingerprint(), values])
  return (await derive(all, salt, 32, COST)).toString('base64url')
}

export type Fingerprint = (
  variable: { readonly name: string; readonly secret: boolean },
  value: string,
) => Promise<string>

let last: { readonly of: string; readonly key: Promise<Buffer> } | undefined

/** Comparable under one token and nonce only. Secrets go through scrypt, so that testing a guess is slow. */
export async function openFingerprints(token: string, nonce: string): Promise<Fingerprint> {
  const of = `${nonce}${token}`
  // The services of one daemon are asked with one nonce, and need one key.
  if (last?.of !== of) last = { of, key: derive(token, Buffer.from(nonce, 'hex'), 32, COST) }
  const key = await last.key
  return async ({ name, secret }, value) => {
    const bound = createHmac('sha256', key).update(`${name}\0`)
    const made = secret ? await derive(value, bound.digest(), 32, COST) : bound.update(value).digest()
    return made.toString('base64url')
  }
}
