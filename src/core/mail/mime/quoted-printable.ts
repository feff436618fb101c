import type { Encoding } from '../encoding.ts'

/** RFC 2045 §6.7: no encoded line is longer. */
const LONGEST_LINE = 76
const SOFT_BREAK = '=\r\n'
/** A short value that fits on one line unencoded. */
const PLAIN = /^(?![.-]|From )[\x21-\x3c\x3e-\x7e](?:[\x20-\x3c\x3e-\x7e]{0,70}[\x21-\x3c\x3e-\x7e])?$/

/**
 * Quoted-printable (RFC 2045 §6.7). What is encoded ends at the beginning of a line, with a soft break unless the
 * text itself ended one: so pieces that are encoded apart may be joined. A dot or `From ` that begins a line is
 * written in hexadecimal, because SMTP and mailboxes give those a meaning (RFC 5321 §4.5.2), and so is a hyphen.
 */
export const quotedPrintable: Encoding = {
  encode(text) {
    if (PLAIN.test(text)) return `${text}${SOFT_BREAK}`
    if (text === '') return ''
    const lines = text.split(/\r\n|\r|\n/)
    const last = lines.pop() ?? ''
    const full = lines.map((line) => `${encodeLine(line, true)}\r\n`).join('')
    return last === '' ? full : `${full}${encodeLine(last, false)}${SOFT_BREAK}`
  },
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
    const room = LONGEST_LINE - (begins ? 2 : 0)
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

function hasMeaningFirst(text: string, at: number): boolean {
  const first = text.charCodeAt(at)
  return first === 46 || first === 45 || (first === 70 && text.startsWith('From ', at))
}

function notWithinHex(text: string, at: number): number {
  if (text.charCodeAt(at - 1) === 61) return at - 1
  return text.charCodeAt(at - 2) === 61 ? at - 2 : at
}

function hex(character: string): string {
  let written = ''
  for (const byte of Buffer.from(character)) written += `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
  return written
}
