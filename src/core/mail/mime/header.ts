import { asciiAddress, type Mailbox } from '../../address.ts'

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
export function headerText(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) && !text.includes('=?') ? text : encodedWords(text)
}

/** An address as a header field writes it (RFC 5322 §3.4). */
export function headerMailbox({ name, address }: Mailbox): string {
  const bare = asciiAddress(address)
  if (name === undefined || name === '') return bare
  const written =
    !/^[\x20-\x7e]*$/.test(name) || name.includes('=?')
      ? encodedWords(name)
      : /^[A-Za-z0-9 !#$%&'*+\-/=?^_`{|}~]+$/.test(name)
        ? name
        : `"${name.replace(/["\\]/g, '\\$&')}"`
  return `${written} <${bare}>`
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
      if (
        current.trim() !== '' &&
        !current.endsWith(': ') &&
        current.length + word.length > FOLD_AT &&
        word !== ''
      ) {
        lines.push(current.trimEnd())
        current = ' '
      }
      current += `${word} `
    }
    lines.push(current.trimEnd())
  }
  return `${lines.join('\r\n')}\r\n`
}
