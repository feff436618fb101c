import { encodedFill, joinPieces, type Piece } from '../encoding.ts'
import type { Message } from '../transport.ts'
import { headerDate, headerField, headerMailbox, headerText } from './header.ts'
import { quotedPrintable } from './quoted-printable.ts'

const fill = encodedFill(quotedPrintable)
const PART = (type: string) =>
  `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n`
const [TEXT, HTML] = [PART('text/plain'), PART('text/html')]
const WIDE = /[\u0080-\uffff]/

/**
 * The message as it goes over the wire, DKIM aside: header fields, then plain text and HTML as alternatives (RFC 2046
 * §5.1.4), each in quoted-printable. The same message has the same bytes: ASCII, but for an address whose local part
 * is not (RFC 6532). Throws a TypeError for a line end in a header field.
 */
export function mimeOf(message: Message): Buffer {
  const { from, to, replyTo, subject, messageId, date, headers } = message
  // Quoted-printable never writes `=_`, so the boundary occurs in no part.
  const boundary = `=_${messageId.slice(0, 32)}`
  let head =
    headerField('From', headerMailbox(from)) +
    headerField('To', headerMailbox(to)) +
    (replyTo === undefined ? '' : headerField('Reply-To', headerMailbox(replyTo))) +
    headerField('Subject', headerText(subject)) +
    headerField('Message-ID', `<${messageId}>`) +
    headerField('Date', headerDate(date))
  for (const [name, value] of Object.entries(headers)) head += headerField(name, value)
  head += `MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary="${boundary}"\r\n\r\n`
  const pieces: Piece[] = [`${head}--${boundary}\r\n${TEXT}`]
  fillPart(message, 'text', pieces)
  pieces.push(`\r\n--${boundary}\r\n${HTML}`)
  fillPart(message, 'html', pieces)
  pieces.push(`\r\n--${boundary}--\r\n`)
  return joinPieces(pieces, WIDE.test(head))
}

function fillPart(message: Message, part: 'html' | 'text', pieces: Piece[]): void {
  if (message.source === undefined) pieces.push(quotedPrintable.encode(message[part]))
  else fill(message.source.compiled[part], message.source.slots, pieces)
}
