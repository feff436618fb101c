import { createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createGunzip, createGzip, createZstdCompress, createZstdDecompress } from 'node:zlib'
import { StoreCareError } from '../care.ts'

export type Packing = 'zstd' | 'gzip' | 'plain'

const MAGIC: readonly (readonly [Packing, Buffer])[] = [
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['gzip', Buffer.from([0x1f, 0x8b])],
  ['plain', Buffer.from('SQLite format 3\0', 'latin1')],
]

/** gzip always carries a checksum of its content, zstd only when asked to. */
const CHECKED = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }

/** How a backup is packed, from the name it is to have. */
export function packingOf(file: string): Packing {
  if (file.endsWith('.zst')) return 'zstd'
  if (file.endsWith('.gz')) return 'gzip'
  if (file.endsWith('.sqlite')) return 'plain'
  throw new StoreCareError(
    `the name says how a backup is packed: end it in .sqlite.zst, .sqlite.gz or .sqlite, not as ${file} does.`,
  )
}

/** How a backup was packed, from its first bytes: its name may have changed. */
async function packingFound(file: string): Promise<Packing> {
  const handle = await open(file, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(16), 0, 16, 0)
    const head = buffer.subarray(0, bytesRead)
    const found = MAGIC.find(([, magic]) => head.subarray(0, magic.length).equals(magic))
    if (found) return found[0]
  } finally {
    await handle.close()
  }
  throw new StoreCareError(
    `${file} is not a backup of a store: it is neither SQLite nor packed by zstd or gzip.`,
  )
}

/** Packs a file into a new one, for its owner only; gives the SHA-256 of what went in. Durable when it returns. */
export async function pack(from: string, to: string, packing: Packing): Promise<string> {
  const hash = createHash('sha256')
  const sink = createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  if (packing === 'plain') await pipeline(createReadStream(from), hashing(hash), sink)
  else
    await pipeline(
      createReadStream(from),
      hashing(hash),
      packing === 'zstd' ? createZstdCompress(CHECKED) : createGzip(),
      sink,
    )
  return hash.digest('hex')
}

/** Unpacks into a new file, or into nothing (`to` undefined); gives the SHA-256 of what came out. */
export async function unpack(from: string, to: string | undefined): Promise<string> {
  const packing = await packingFound(from)
  const hash = createHash('sha256')
  const sink =
    to === undefined
      ? new Writable({ write: (_chunk, _encoding, done) => done() })
      : createWriteStream(to, { flags: 'wx', mode: 0o600, flush: true })
  if (packing === 'plain') await pipeline(createReadStream(from), hashing(hash), sink)
  else
    await pipeline(
      createReadStream(from),
      packing === 'zstd' ? createZstdDecompress() : createGunzip(),
      hashing(hash),
      sink,
    )
  return hash.digest('hex')
}

function hashing(hash: Hash): (source: AsyncIterable<Buffer>) => AsyncIterable<Buffer> {
  return async function* (source) {
    for await (const chunk of source) {
      hash.update(chunk)
      yield chunk
    }
  }
}
