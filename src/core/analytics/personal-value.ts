import { attempt } from '../is-record.ts'
import { trimEnd } from '../trim-end.ts'

/** An e-mail address anywhere in a text, without anchors: a cut text matches only where the whole one did. */
const ADDRESS = /[^\s@＠](?:@|＠|%40)[^\s@＠]/i
/** An address for people's eyes: `anna (at) example (dot) com`. */
const SPELLED_ADDRESS = /[^\s@]\s*[([{<]\s*(?:at|@|ät|arroba|chez)\s*[)\]}>]\s*[^\s@]/i

/** Tokens and keys, by how their issuers begin them. */
const KEY = new RegExp(
  [
    // A JSON Web Token: its first part is JSON in base64.
    '\\beyJ[\\w-]{8,}\\.[\\w-]{4,}',
    '\\b(?:sk|pk|rk)[-_](?:live|test|ant|proj)[-_][\\w-]{8,}',
    '\\b(?:whsec|github_pat|glpat|npm|hf|shpat|dop_v1)[-_][\\w-]{12,}',
    '\\bgh[pousr]_\\w{16,}',
    '\\bxox[abeprs]-[\\w-]{10,}',
    '\\b(?:AKIA|ASIA)[0-9A-Z]{12,}',
    '\\bAIza[\\w-]{30,}',
    '\\bya29\\.[\\w-]{10,}',
    '\\bSG\\.[\\w-]{16,}',
    '-----BEGIN ',
  ].join('|'),
)

/** With a country's code, or as it is dialed within one; never a plain number or a string of bits. */
const PHONE =
  /(?:^|[^\p{L}\p{N}.])(?:(?:\+|00)[1-9](?:[\s()./-]{0,2}\d){6,14}|0[1-9](?:[\s()/-]{0,2}\d){7,11}|\(\d{2,5}\)(?:[\s./-]{0,2}\d){5,10}|\d{3}[-.\s]\d{3}[-.\s]\d{4})(?!\d)/u
const NATIONAL_NUMBER = /(?:^|\D)\d{3}-\d{2}-\d{4}(?!\d)/
const DIGITS = /\d(?:[\s-]?\d){12,18}/g
/** The numbers of networks that issue cards. None begins with 1, as milliseconds since 1970 do. */
const CARD =
  /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[0689]\d{12}|35\d{14}|6\d{15,18})$/
const IBAN = /(?<![\p{L}\p{N}])[A-Z]{2}\d{2}(?:[\s-]?[A-Z0-9]){11,30}/giu
const LAYERS = 3
/** Base64 whose first and fourth byte may be printable ASCII. Most words are no such run, and need not be decoded. */
const BASE64 = /(?<![A-Za-z0-9+/_-])(?:[I-Za-f][A-Za-z0-9+/_-]{3}){2}[A-Za-z0-9+/_-]*={0,2}/g
/** How much of a text is searched. Far less is kept of it; beyond this, only addresses are looked for. */
const LOOKED_AT = 512

/** No form below is shorter than this. */
const SHORTEST = 8

/** Whether a value has a personal form, even encoded: an address, a phone, card or account number, a token, a key. */
export function isPersonalValue(text: string): boolean {
  if (ADDRESS.test(text)) return true
  // Too short for anything below, as most values are.
  if (text.length < SHORTEST && !/[^\x20-\x7e]/.test(text)) return false
  let layer = text.slice(0, LOOKED_AT)
  for (let depth = 0; depth <= LAYERS; depth += 1) {
    if (isPersonalShape(layer) || decodedBase64(layer).some(isPersonalShape)) return true
    const next = decoded(layer)
    if (next === layer) return false
    layer = next
  }
  return false
}

export function isPersonalNumber(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1e12 && isCard(String(value))
}

function isPersonalShape(text: string): boolean {
  const plain = ASCII.test(text)
    ? text
    : text.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '')
  if (ADDRESS.test(plain) || (/[([{<]/.test(plain) && SPELLED_ADDRESS.test(plain)) || KEY.test(plain))
    return true
  return (
    // Most values have next to none, and the expressions for numbers are slow.
    MANY_DIGITS.test(plain) &&
    (isPhone(plain) ||
      NATIONAL_NUMBER.test(plain) ||
      (plain.match(DIGITS) ?? []).some(isCard) ||
      (plain.match(IBAN) ?? []).some(isIban))
  )
}

const ASCII = /^[\x20-\x7e]*$/
/** No phone or account number has fewer digits. */
const MANY_DIGITS = /^(?:\D*\d){7}/

/** Undoes one layer of percent-encoding, character references and escapes. */
function decoded(text: string): string {
  if (!/[%&\\]/.test(text)) return text
  return text
    .replace(/(?:%[0-9a-f]{2})+/gi, (codes) => attempt(() => decodeURIComponent(codes)) ?? codes)
    .replace(/&#(?:x([0-9a-f]{1,6})|(\d{1,7}));?/gi, (all, hex, decimal) => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(String(hex), 16)
      return attempt(() => String.fromCodePoint(code)) ?? String(all)
    })
    .replace(/&commat;/gi, '@')
    .replace(/&amp;/gi, '&')
    .replace(/\\(?:u00|x)([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(String(hex), 16)))
}

/** The contents of base64 runs that are printable ASCII. An id of random bytes is left out, because it seldom is. */
function decodedBase64(text: string): string[] {
  return (text.match(BASE64) ?? []).flatMap((run) => {
    const bare = trimEnd(run, '=').replace(/-/g, '+').replace(/_/g, '/')
    // A last character beyond whole bytes is not base64, and `atob` would throw for each such word.
    const inner = atob(bare.length % 4 === 1 ? bare.slice(0, -1) : bare)
    return ASCII.test(inner) ? [inner, decoded(inner)] : []
  })
}

/** Whether a text has a phone number. Zeros and ones alone are a string of bits. */
const isPhone = (text: string) => /[2-9]/.test(PHONE.exec(text)?.[0] ?? '')

/** The check digit of cards (ISO/IEC 7812-1, Luhn). */
function isCard(run: string): boolean {
  const digits = run.replace(/\D/g, '')
  if (!CARD.test(digits)) return false
  let sum = 0
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 1 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** The check digits of account numbers (ISO 13616, modulo 97); the text behind one is not part of it. */
function isIban(run: string): boolean {
  const compact = run.replace(/[\s-]/g, '').toUpperCase()
  for (let length = compact.length; length >= 15; length -= 1) {
    let rest = 0
    for (const character of compact.slice(4, length) + compact.slice(0, 4))
      rest = Number(`${rest}${Number.parseInt(character, 36)}`) % 97
    if (rest === 1) return true
  }
  return false
}
