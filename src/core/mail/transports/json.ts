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

/** A text as a JSON string in ASCII. */
export const quoted = (text: string): string => `"${asciiJson.encode(text)}"`

/** Adds a message's HTML or text as the inside of a JSON string. */
export function fillPart(message: Message, part: 'html' | 'text', pieces: Piece[]): void {
  if (message.source === undefined) pieces.push(asciiJson.encode(message[part]))
  else fill(message.source.compiled[part], message.source.slots, pieces)
}

/** An address with its name, as a mail API parses it. */
export function mailboxText({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  return name === undefined ? bare : `"${name.replace(/["\\]/g, '\\$&')}" <${bare}>`
}

/** The names under which an API takes an attachment. */
interface AttachmentFields {
  readonly list: string
  readonly name: string
  readonly type: string
  readonly content: string
}

/** The field of the attachments with a comma before it, or nothing. */
export function attachmentsJson({ attachments = [] }: Message, as: AttachmentFields): string {
  if (attachments.length === 0) return ''
  const all = attachments.map(
    ({ name, type, content }) =>
      `{"${as.name}":${quoted(name)},"${as.type}":${quoted(type)},"${as.content}":"${content.toString('base64')}"}`,
  )
  return `,"${as.list}":[${all.join()}]`
}
