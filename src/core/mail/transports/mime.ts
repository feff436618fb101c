import type { KeyObject } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import DKIM from 'nodemailer/lib/dkim'
import { asciiAddress, type Mailbox } from '../../address.ts'
import type { DkimSettings } from '../../env/settings.ts'
import { encodedFill, joinPieces, type Piece } from '../encoding.ts'
import type { Attachment, Message } from '../mailer.ts'

/** RFC 2045 §6.7: no encoded line is longer. */
const LONGEST_ENCODED_LINE = 76
const SOFT_BREAK = '=\r\n'
/** A short value that fits on one line unencoded. */
const PLAIN = /^(?![.-]|From )[\x21-\x3c\x3e-\x7e](?:[\x20-\x3c\x3e-\x7e]{0,70}[\x21-\x3c\x3e-\x7e])?$/

/**
 * Quoted-printable (RFC 2045 §6.7). It ends at the beginning of a line, with a soft break if need be: pieces encoded
 * apart may be joined. A dot or `From ` that begins a line, to which SMTP and mailboxes give a meaning (RFC 5321
 * §4.5.2), is written in hexadecimal, and so is a hyphen.
 */
export function quotedPrintable(text: string): string {
  if (PLAIN.test(text)) return `${text}${SOFT_BREAK}`
  if (text === '') return ''
  const lines = text.split(/\r\n|\r|\n/)
  const last = lines.pop() ?? ''
  const full = lines.map((line) => `${encodeLine(line, true)}\r\n`).join('')
  return last === '' ? full : `${full}${encodeLine(last, false)}${SOFT_BREAK}`
}

function encodeLine(line: string, ends: boolean): string {
  let text = line.replace(NOT_AS_IT_IS, hex)
  // White space at a line's end is dropped on the way by some servers.
  if (ends) text = text.replace(/[ \t]$/, hex)
  let encoded = ''
  let from = 0
  for (;;) {
    const begins = hasMeaningFirst(text, from)
    // A first character in hexadecimal takes two more, and a line that goes on takes one for the soft break.
    const room = LONGEST_ENCODED_LINE - (begins ? 2 : 0)
    const fits = text.length - from <= (ends ? room : room - 1)
    const to = fits ? text.length : notWithinHex(text, from + room - 1)
    encoded += begins ? hex(text.charAt(from)) + text.slice(from + 1, to) : text.slice(from, to)
    if (fits) return encoded
    encoded += SOFT_BREAK
    from = to
  }
}

/** Everything but printable ASCII without the equals sign, space and tab. */
const NOT_AS_IT_IS = /[^\t\x20-\x3c\x3e-\x7e]/gu

const hasMeaningFirst = (text: string, at: number) =>
  text[at] === '.' || text[at] === '-' || text.startsWith('From ', at)

const notWithinHex = (text: string, at: number) =>
  text[at - 1] === '=' ? at - 1 : text[at - 2] === '=' ? at - 2 : at

const hex = (character: string) => Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '=$&')

/** RFC 5322 §2.1.1. */
const LONGEST_LINE = 998
const FOLD_AT = 76
const LINE_END = /[\r\n\0]/
/** Octets of text in one encoded word: 45 make 60 characters of base64, and the word may have 75 (RFC 2047 §2). */
const WORD_OCTETS = 45

/** One header field, folded, with its line end. CR, LF and NUL in a value are refused, never encoded away. */
export function headerField(name: string, value: string): string {
  // Folded values are encoded words made in this file; any other line end came from the caller.
  if (LINE_END.test(value) && LINE_END.test(value.replaceAll('\r\n ', ' ')))
    throw new TypeError(`the header field ${name} holds a line end`)
  const line = `${name}: ${value}\r\n`
  if (line.length <= FOLD_AT + 2) return line
  const folded = fold(line)
  if (folded.split('\r\n').some((one) => one.length > LONGEST_LINE))
    throw new TypeError(`the header field ${name} has a line of more than ${LONGEST_LINE} octets`)
  return folded
}

/** Unstructured text (Subject): as it is when it is printable ASCII, otherwise in encoded words. */
export const headerText = (text: string): string =>
  /^[\x20-\x7e]*$/.test(text) && !text.includes('=?') ? text : encodedWords(text)

/** An address as a header field writes it (RFC 5322 §3.4). */
export function headerMailbox({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  if (name === undefined || name === '') return bare
  const isPlain = headerText(name) !== name || /^[A-Za-z0-9 !#$%&'*+\-/=?^_`{|}~]+$/.test(name)
  return `${isPlain ? headerText(name) : `"${name.replace(/["\\]/g, '\\$&')}"`} <${bare}>`
}

/** RFC 5322 §3.3, in UTC. */
export function headerDate(date: Date): string {
  if (Number.isNaN(date.getTime())) throw new TypeError('the date of a mail is not a date')
  return date.toUTCString().replace('GMT', '+0000')
}

function encodedWords(text: string): string {
  const words: string[] = []
  let word = ''
  for (const character of text) {
    if (Buffer.byteLength(word) + Buffer.byteLength(character) > WORD_OCTETS) {
      words.push(word)
      word = ''
    }
    word += character
  }
  return [...words, word].map((one) => `=?UTF-8?B?${Buffer.from(one).toString('base64')}?=`).join('\r\n ')
}

/** Breaks at spaces only: a long word, such as an address in angle brackets, stays whole. */
function fold(line: string): string {
  const lines: string[] = []
  for (const part of line.trimEnd().split('\r\n ')) {
    let current = lines.length === 0 ? '' : ' '
    for (const word of part.split(' ')) {
      const breaks = current.trim() !== '' && !current.endsWith(': ') && word !== ''
      if (breaks && current.length + word.length > FOLD_AT) {
        lines.push(current.trimEnd())
        current = ' '
      }
      current += `${word} `
    }
    lines.push(current.trimEnd())
  }
  return `${lines.join('\r\n')}\r\n`
}

const fillPart = encodedFill(quotedPrintable)
const PART = (type: string) =>
  `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n`
const [TEXT, HTML] = [PART('text/plain'), PART('text/html')]
const MULTIPART = (kind: string, boundary: string) =>
  `Content-Type: multipart/${kind}; boundary="${boundary}"\r\n\r\n`
const WIDE = /[\u0080-\uffff]/

function attachmentPart({ name, type, content }: Attachment): string {
  const base64 = content.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')
  return `${headerField('Content-Type', type)}Content-Transfer-Encoding: base64\r\n${headerField('Content-Disposition', `attachment;\r\n ${fileNameParameter(name)}`)}\r\n${base64}\r\n`
}

/** A short ASCII name in quotes; any other in UTF-8, percent-encoded and in pieces (RFC 2231 §3, §4). */
function fileNameParameter(name: string): string {
  if (/^[\x20-\x7e]{1,50}$/.test(name)) return `filename="${name.replace(/["\\]/g, '\\$&')}"`
  const encoded = encodeURIComponent(name).replace(/[*'()]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
  const [first = '', ...more] = encoded.match(/(?:%..|[^%]){1,50}/g) ?? []
  if (more.length === 0) return `filename*=UTF-8''${first}`
  return [`filename*0*=UTF-8''${first}`, ...more.map((part, at) => `filename*${at + 1}*=${part}`)].join(
    ';\r\n ',
  )
}

/**
 * The message as it goes over the wire, DKIM aside: plain text and HTML as alternatives (RFC 2046 §5.1.4), each in
 * quoted-printable. The same message has the same bytes: ASCII, but for a local part that is not (RFC 6532). Throws a
 * TypeError for a line end in a header field.
 */
export function mimeOf(message: Message): Buffer {
  const { from, to, replyTo, subject, messageId, date, headers, attachments = [] } = message
  // Neither quoted-printable nor base64 writes `=_`, so the boundaries occur in no part.
  const boundary = `=_${messageId.slice(0, 32)}`
  let head =
    headerField('From', headerMailbox(from)) +
    headerField('To', headerMailbox(to)) +
    (replyTo === undefined ? '' : headerField('Reply-To', headerMailbox(replyTo))) +
    headerField('Subject', headerText(subject)) +
    headerField('Message-ID', `<${messageId}>`) +
    headerField('Date', headerDate(date))
  for (const [name, value] of Object.entries(headers)) head += headerField(name, value)
  head += 'MIME-Version: 1.0\r\n'
  const mixed = attachments.length === 0 ? undefined : `=_m${messageId.slice(0, 32)}`
  if (mixed !== undefined) head += `${MULTIPART('mixed', mixed)}--${mixed}\r\n`
  head += MULTIPART('alternative', boundary)
  const pieces: Piece[] = [`${head}--${boundary}\r\n${TEXT}`]
  fillPart(message, 'text', pieces)
  pieces.push(`\r\n--${boundary}\r\n${HTML}`)
  fillPart(message, 'html', pieces)
  pieces.push(`\r\n--${boundary}--\r\n`)
  for (const attachment of attachments) pieces.push(`--${mixed}\r\n`, attachmentPart(attachment))
  if (mixed !== undefined) pieces.push(`--${mixed}--\r\n`)
  return joinPieces(pieces, WIDE.test(head))
}

/** Header fields to sign: those of RFC 6376 §5.4.1, and the fields for unsubscribing (RFC 8058 §4). */
const SIGNED =
  'From:Reply-To:Subject:Date:Message-ID:To:MIME-Version:Content-Type:Auto-Submitted:Feedback-ID:List-Id:List-Unsubscribe:List-Unsubscribe-Post'

/** Gives a message with its signature in front. */
export type SignMessage = (message: Buffer) => Promise<Buffer>

/** Signs for a domain with the key that its DNS record `SELECTOR._domainkey.DOMAIN` publishes. */
export function createDkimSigner({ domain, selector }: DkimSettings, privateKey: KeyObject): SignMessage {
  const signer = new DKIM({ domainName: domain, keySelector: selector, privateKey, headerFieldNames: SIGNED })
  return (message) => buffer(signer.sign(message))
}
