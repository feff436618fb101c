import { escapeHtml } from './render.ts'
import type { Part } from './template.ts'

/** How a text is written in ASCII for what carries it: a JSON string, quoted-printable … */
export interface Encoding {
  /** Encodes one piece so that pieces may be joined: each begins where a fresh one could. */
  encode(text: string): string
}

/** A piece of a message: encoded text, or static bytes that were encoded when the mail was first sent. */
export type Piece = string | Uint8Array

/**
 * A filler for one encoding. The static parts of a compiled mail are encoded once, to bytes; from then on a message
 * costs the encoding of its slots, and copying the rest.
 */
export function encodedFill(
  encoding: Encoding,
): (parts: readonly Part[], slots: Readonly<Record<string, string>>, onto: Piece[]) => void {
  const known = new WeakMap<readonly Part[], readonly (Uint8Array | Exclude<Part, string>)[]>()
  return (parts, slots, onto) => {
    let encoded = known.get(parts)
    if (encoded === undefined) {
      encoded = parts.map((part) =>
        typeof part === 'string' ? Buffer.from(encoding.encode(part), 'latin1') : part,
      )
      known.set(parts, encoded)
    }
    for (const part of encoded) {
      if (part instanceof Uint8Array) onto.push(part)
      else {
        const value = slots[part.slot] ?? ''
        onto.push(encoding.encode(part.as === 'plain' ? value : escapeHtml(value)))
      }
    }
  }
}

/** The pieces in one buffer that nothing else writes to. Text is ASCII, unless `wide` says that it may be more. */
export function joinPieces(pieces: readonly Piece[], wide = false): Buffer {
  return writePieces(pieces, freshBytes(bytesOf(pieces, wide)), wide)
}

const SLAB_BYTES = 256 * 1024
let slab = Buffer.alloc(0)
let used = 0

/**
 * Messages share slabs, as Node's own small buffers do: allocating and freeing memory for each would cost as much as
 * filling it.
 */
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

function bytesOf(pieces: readonly Piece[], wide = false): number {
  let length = 0
  for (const piece of pieces)
    length += wide && typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
  return length
}

/** Writes the pieces at the beginning of `target`, and gives that part of it. */
export function writePieces(pieces: readonly Piece[], target: Buffer, wide = false): Buffer {
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
