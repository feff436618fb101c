import { perObject } from '../calls.ts'
import type { Message } from './mailer.ts'
import { fill, type Part } from './template.ts'

/** A piece of a message: encoded text, or static bytes that were encoded when the mail was first sent. */
export type Piece = string | Uint8Array

/**
 * Writes one part of a message. `encode` encodes a piece of it in ASCII for what carries it (a JSON string,
 * quoted-printable …), so that pieces may be joined. The static parts of a compiled mail are encoded once, to bytes; from
 * then on a message costs the encoding of its slots, and copying the rest.
 */
export function encodedFill(
  encode: (text: string) => string,
): (message: Pick<Message, 'source' | 'html' | 'text'>, part: 'html' | 'text', onto: Piece[]) => void {
  const encodedOnce = perObject((parts: readonly Part[]) =>
    parts.map((part) => (typeof part === 'string' ? Buffer.from(encode(part), 'latin1') : part)),
  )
  return (message, part, onto) => {
    const { source } = message
    if (source === undefined) return void onto.push(encode(message[part]))
    for (const piece of encodedOnce(source.compiled[part]))
      onto.push(piece instanceof Uint8Array ? piece : encode(fill([piece], source.slots)))
  }
}

/** The pieces in one buffer that nothing else writes to. Text is ASCII, unless `wide` says that it may be more. */
export function joinPieces(pieces: readonly Piece[], wide = false): Buffer {
  let length = 0
  for (const piece of pieces)
    length += wide && typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
  return writePieces(pieces, freshBytes(length), wide)
}

const SLAB_BYTES = 256 * 1024
let slab = Buffer.alloc(0)
let used = 0

/** Messages share slabs, as Node's small buffers do: allocating memory for each would cost as much as filling it. */
function freshBytes(length: number): Buffer {
  if (length > SLAB_BYTES / 4) return Buffer.allocUnsafe(length)
  if (used + length > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    used = 0
  }
  const bytes = slab.subarray(used, used + length)
  used += length
  return bytes
}

/** Writes the pieces at the beginning of `target`, and gives that part of it. */
export function writePieces(pieces: readonly Piece[], target: Buffer, wide: boolean): Buffer {
  let at = 0
  for (const piece of pieces) {
    if (typeof piece === 'string') at += target.write(piece, at, wide ? 'utf8' : 'latin1')
    else {
      target.set(piece, at)
      at += piece.length
    }
  }
  return target.subarray(0, at)
}
