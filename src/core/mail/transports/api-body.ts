import { asciiAddress, type Mailbox } from '../../address.ts'
import { type Encoding, encodedFill, type Piece } from '../encoding.ts'
import type { Message } from '../transport.ts'

/** ASCII characters that a JSON string may hold unescaped (RFC 8259 §7). */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const WIDE = /[\u0080-\uffff]/g

/** ASCII only, so that bytes and characters are the same and are written as they are. */
const asciiJson: Encoding = {
  encode: (text) =>
    PLAIN.test(text)
      ? text
      : JSON.stringify(text)
          .slice(1, -1)
          .replace(WIDE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
}
const fill = encodedFill(asciiJson)
const quoted = (text: string) => `"${asciiJson.encode(text)}"`

/** The JSON of one message (docs/mail-api.md), in pieces: the same message has the same bytes. */
export function jsonPiecesOf(message: Message): readonly Piece[] {
  const { from, to, replyTo, subject, headers, messageId } = message
  const pieces: Piece[] = [
    `${senderOf(from)},"to":[${quoted(asciiAddress(to.address))}],${replyTo === undefined ? '' : `"reply_to":${quoted(textOf(replyTo))},`}"subject":${quoted(subject)},"html":"`,
  ]
  fillPart(message, 'html', pieces)
  pieces.push('","text":"')
  fillPart(message, 'text', pieces)
  let tail = '","headers":{'
  // A header's name is a token (RFC 5322 §2.2) and needs no escaping.
  for (const name in headers) tail += `"${name}":${quoted(headers[name] ?? '')},`
  pieces.push(`${tail}"Message-ID":${quoted(`<${messageId}>`)}}}`)
  return pieces
}

const senders = new WeakMap<Mailbox, string>()

/** The sender is the same in every message. */
function senderOf(from: Mailbox): string {
  let written = senders.get(from)
  if (written === undefined) {
    written = `{"from":${quoted(textOf(from))}`
    senders.set(from, written)
  }
  return written
}

function fillPart(message: Message, part: 'html' | 'text', pieces: Piece[]): void {
  if (message.source === undefined) pieces.push(asciiJson.encode(message[part]))
  else fill(message.source.compiled[part], message.source.slots, pieces)
}

function textOf({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  return name === undefined ? bare : `"${name.replace(/["\\]/g, '\\$&')}" <${bare}>`
}
