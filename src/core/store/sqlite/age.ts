import { Duplex, Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { Decrypter, Encrypter } from 'age-encryption'
import { refusal, refusalFor } from '../errors.ts'

/** Bytes of an age header, and recipients in it: each key is tried on each of them. */
export const LARGEST_HEADER_BYTES = 256 * 1024
const MOST_RECIPIENTS = 100

/** Encrypts what passes for everybody whose public key (`age1…`) is named. */
export function encrypting(recipients: readonly string[]): Duplex {
  if (recipients.length > MOST_RECIPIENTS)
    throw refusal`a backup is encrypted for at most ${MOST_RECIPIENTS} public keys, and ${recipients.length} are named.`
  const encrypter = new Encrypter()
  for (const recipient of recipients)
    try {
      encrypter.addRecipient(recipient)
    } catch (error) {
      throw refusalFor(error)`${recipient} is not a public key of age (age1…): age-keygen prints one.`
    }
  return Duplex.from(async function* (plain: AsyncIterable<Uint8Array>) {
    yield* fromWeb(await encrypter.encrypt(toWeb(Readable.from(plain))))
  })
}

/** Refuses an encrypted file whose header, which nothing authenticates before it is read, is too large. */
export function checkHeader(from: string, head: Buffer): void {
  const end = head.indexOf('\n--- ')
  const recipients = head.toString('latin1', 0, end).split('\n-> ').length - 1
  if (end === -1 || recipients > MOST_RECIPIENTS)
    throw refusal`${from} is damaged and was not restored (its header is cut off, is larger than ${LARGEST_HEADER_BYTES / 1024} KB or names more than ${MOST_RECIPIENTS} keys).`
}

/** Decrypts a stream with the first key that fits; the keys are `AGE-SECRET-KEY-1…`. */
export async function decrypt(from: string, sealed: Readable, identities: readonly string[]) {
  const decrypter = new Decrypter()
  for (const [index, identity] of identities.entries())
    try {
      decrypter.addIdentity(identity)
    } catch (error) {
      // Not with the error's own text, which may quote the key.
      throw refusalFor(error)`key ${index + 1} of the file with keys is not a secret key of age.`
    }
  const opened = await decrypter.decrypt(toWeb(sealed)).catch((error: unknown) => {
    const foreign = error instanceof Error && error.message.includes('no identity matched')
    const refuse = refusalFor(error)
    throw foreign
      ? refuse`${from} is encrypted for other keys: name the file that holds one of them with --identity.`
      : refuse`${from} is damaged and was not restored (its header cannot be read).`
  })
  return Readable.from(orDamaged(from, fromWeb(opened)))
}

/** Each part is authenticated on its own, so damage shows while the file is read. */
async function* orDamaged(from: string, source: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* source
  } catch (error) {
    throw refusalFor(error)`${from} is damaged and was not restored (a part does not decrypt).`
  }
}

// Node's web streams are those of the standard; TypeScript keeps two declarations of them.
const toWeb = (stream: Readable) => Readable.toWeb(stream) as unknown as globalThis.ReadableStream<Uint8Array>
const fromWeb = (stream: globalThis.ReadableStream<Uint8Array>) =>
  Readable.fromWeb(stream as unknown as ReadableStream<Uint8Array>)
