import { createHash, type Hash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream, statfsSync, statSync } from 'node:fs'
import path from 'node:path'
import { Duplex, type Readable, type Transform, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { constants, createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { refusal } from '../errors.ts'

/** gzip always carries a checksum of its content, zstd only when asked to. */
const packZstd = () => createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })

const SQLITE = { ending: '.sqlite', magic: Buffer.from('SQLite format 3\0', 'latin1'), pack: [], unpack: [] }
/** How a backup is packed: the end of its name, and its first bytes. */
const PACKINGS: readonly Packing[] = [
  { ending: '.zst', magic: Buffer.from('28b52ffd', 'hex'), pack: [packZstd], unpack: [createZstdDecompress] },
  { ending: '.gz', magic: Buffer.from('1f8b', 'hex'), pack: [createGzip], unpack: [createGunzip] },
  SQLITE,
]
type Made = readonly (() => Transform)[]
type Packing = { readonly ending: string; readonly magic: Buffer; readonly pack: Made; readonly unpack: Made }

/** How a file that age encrypted begins (age-encryption.org/v1). */
const AGE = Buffer.from('age-encryption.org/v1\n', 'latin1')
const HEADER_BYTES = 100
/** A backup may unpack to this many times its size. A store packs to about a tenth, zeros by gzip to a thousandth. */
const MOST_RATIO = 200
const LEAST_LIMIT = 64 * 1024 * 1024

/** How a backup is packed, from the name it is to have: not at all, unless the name says so. */
export const packingOf = (name: string): Packing =>
  PACKINGS.find(({ ending }) => name.replace(/\.age$/, '').endsWith(ending)) ?? SQLITE

/** Packs a file into a new one, durably, for its owner only; gives the SHA-256 of what went in and of what was written. */
export async function pack(from: string, to: string, packing: Packing, recipients: readonly string[]) {
  const [image, written] = [createHash('sha256'), createHash('sha256')]
  const seal = recipients.length === 0 ? [] : [(await import('./age.ts')).encrypting(recipients)]
  const steps = [hashing(image), ...packing.pack.map((make) => make()), ...seal, hashing(written)]
  const sink = createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  await pipeline([createReadStream(from), ...steps, sink])
  return { image: image.digest('hex'), written: written.digest('hex') }
}

export async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** Unpacks into a new file, or into nothing (`to` undefined); gives the SHA-256 of what came out. */
export async function unpack(from: string, to: string | undefined, identities: readonly string[] = []) {
  const hash = createHash('sha256')
  const opened = await opening(from, identities)
  const head = await firstOf(opened)
  // Its name may have changed.
  const packing = PACKINGS.find(({ magic }) => head.subarray(0, magic.length).equals(magic))
  if (packing === undefined)
    throw refusal`${from} is not a backup of a store: it is neither SQLite nor packed by zstd or gzip.`
  const sink =
    to === undefined
      ? new Writable({ write: (_chunk, _encoding, done) => done() })
      : createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  await pipeline([opened, ...packing.unpack.map((make) => make()), bounded(from, to), hashing(hash), sink])
  return hash.digest('hex')
}

async function opening(from: string, identities: readonly string[]): Promise<Readable> {
  const firstBytes = (most: number) => buffer(createReadStream(from, { end: most - 1 }))
  if (!(await firstBytes(AGE.length)).equals(AGE)) return createReadStream(from)
  if (identities.length === 0)
    throw refusal`${from} is encrypted: name the file that holds its key with --identity.`
  const age = await import('./age.ts')
  age.checkHeader(from, await firstBytes(age.LARGEST_HEADER_BYTES))
  return age.decrypt(from, createReadStream(from), identities)
}

/** The first bytes of a stream, which gives them again. */
async function firstOf(stream: Readable): Promise<Buffer> {
  await once(stream, 'readable')
  const head: Buffer | null = stream.read()
  if (head !== null) stream.unshift(head)
  return head ?? Buffer.alloc(0)
}

/** Stops what unpacks to more than its first page says (sqlite.org/fileformat2.html), the disk holds, or any store has: a small file may unpack to any size. */
function bounded(from: string, to: string | undefined) {
  const most = Math.max(LEAST_LIMIT, statSync(from).size * MOST_RATIO)
  let declared: number | undefined
  let head = Buffer.alloc(0)
  let size = 0
  return passing((chunk) => {
    size += chunk.length
    if (declared === undefined) {
      head = Buffer.concat([head, chunk])
      if (head.length >= HEADER_BYTES) declared = declaredSize(head, to)
    }
    if (size > Math.min(most, declared ?? HEADER_BYTES))
      throw refusal`${from} was not restored: it unpacks to more than a store can be, so no platformctl made it.`
  })
}

function declaredSize(head: Buffer, to: string | undefined): number {
  const page = head.readUInt16BE(16)
  const size = (page === 1 ? 65_536 : page) * head.readUInt32BE(28)
  if (to === undefined) return size
  const { bavail, bsize } = statfsSync(path.dirname(to))
  if (size > bavail * bsize)
    throw refusal`the backup unpacks to ${Math.ceil(size / 1e6)} MB, and the disk it is restored to has room for ${Math.floor((bavail * bsize) / 1e6)} MB: free some space, or restore to another disk.`
  return size
}

const hashing = (hash: Hash) => passing((chunk) => void hash.update(chunk))

/** Passes everything on after a look at it; an exception ends the stream. */
const passing = (look: (chunk: Buffer) => void) =>
  Duplex.from(async function* (source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      look(chunk)
      yield chunk
    }
  })
