import { domainToASCII } from 'node:url'

/** A parsed address: handed to transports as an object, never as a string to be parsed again. */
export interface Mailbox {
  /** Display name, without CR, LF or NUL; undefined for a bare address. */
  readonly name: string | undefined
  /** `local@domain` as given, in composed letters (NFC); never case-folded for sending. */
  readonly address: string
}

export type ParsedAddress =
  | {
      readonly ok: true
      readonly mailbox: Mailbox
      /** Compares addresses: ASCII letters folded, domain in its ASCII form (UTS-46). Never sent to. */
      readonly identity: string
    }
  | { readonly ok: false; readonly reason: string }

/** RFC 5321 §4.5.3.1: octets of the local part, and of the whole path less its brackets. */
const LONGEST_LOCAL = 64
const LONGEST_ADDRESS = 254
/** Characters of an address with its display name. Nothing longer is looked at. */
const LONGEST_TEXT = 1024

/** atext (RFC 5322 §3.2.3) and, for internationalised mail, anything above ASCII (RFC 6531 §3.3). */
const DOT_ATOM =
  /^[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\u0080-\u{10ffff}]+(\.[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\u0080-\u{10ffff}]+)*$/u
/** Quoted local part (RFC 5321 §4.1.2): printable ASCII, quotes and backslashes escaped. */
const QUOTED = /^"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"$/
/** The characters of a domain. The URL parser below would stop at a `/`, `?`, `#` or `\\`, and decode a `%`. */
const DOMAIN = /^[A-Za-z0-9.\-\u0080-\u{10ffff}]+$/u
const HOST = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Parses one bare address (`local@domain`), as a visitor types it; surrounding spaces are dropped. */
export function parseAddress(text: string): ParsedAddress {
  if (text.length > LONGEST_TEXT) return refuse(TOO_LONG)
  const address = composed(text.trim())
  if (address === '') return refuse('an address is needed')
  if (hasControl(address) || !address.isWellFormed()) return refuse('an address holds no control characters')
  const at = address.lastIndexOf('@')
  if (at < 1) return refuse('an address has the form name@example.com')
  const [given, domain] = [address.slice(0, at), address.slice(at + 1)]
  if (Buffer.byteLength(given) > LONGEST_LOCAL || Buffer.byteLength(address) > LONGEST_ADDRESS)
    return refuse(TOO_LONG)
  if (!(DOT_ATOM.test(given) || QUOTED.test(given))) return refuse('the part before the @ is malformed')
  const bare = unquoted(given)
  // `"ada"@` and `ada@` are one mailbox (RFC 5321 §4.1.2), so quotes stay only around what needs them.
  const local = DOT_ATOM.test(bare) ? bare : `"${bare.replace(/["\\]/g, '\\$&')}"`
  const ascii = DOMAIN.test(domain) ? domainToASCII(domain) : ''
  if (!HOST.test(ascii) || /^[\d.]+$/.test(ascii)) return refuse('the part after the @ is not a domain name')
  return {
    ok: true,
    mailbox: { name: undefined, address: `${local}@${domain}` },
    // Only A to Z: beyond ASCII, letters would merge that mail servers tell apart (the Kelvin sign becomes k).
    identity: `${local.replace(/[A-Z]/g, (letter) => letter.toLowerCase())}@${ascii}`,
  }
}

const TOO_LONG = `an address has at most ${LONGEST_LOCAL} octets before the @ and ${LONGEST_ADDRESS} in all`

/** Parses an address with an optional display name (`Course <course@example.com>`), as configuration gives it. */
export function parseMailbox(text: string): ParsedAddress {
  if (text.length > LONGEST_TEXT)
    return refuse(`an address with its display name has at most ${LONGEST_TEXT} characters`)
  const whole = text.trim()
  const open = whole.lastIndexOf('<')
  const name = open === -1 || !whole.endsWith('>') ? undefined : displayName(whole.slice(0, open).trim())
  if (name === undefined) return parseAddress(whole)
  if (hasControl(name) || !name.isWellFormed()) return refuse('a display name holds no control characters')
  const parsed = parseAddress(whole.slice(open + 1, -1))
  return parsed.ok
    ? { ...parsed, mailbox: { ...parsed.mailbox, name: name === '' ? undefined : name } }
    : parsed
}

/** A display name as it is shown; undefined if the text is none: quotes hold anything, other names no `<`, `>`, `"` or `@`. */
function displayName(text: string): string | undefined {
  if (!text.startsWith('"')) return /[<>"@]/.test(text) ? undefined : text
  return /^"((?:[^"\\]|\\.)*)"$/.exec(text)?.[1]?.replace(/\\(.)/g, '$1').trim()
}

/** The address with its domain in ASCII (UTS-46), as SMTP and providers take it; the local part stays as it is. */
export function asciiAddress(address: string): string {
  if (/^[\x20-\x7e]*$/.test(address)) return address
  const at = address.lastIndexOf('@')
  return `${address.slice(0, at + 1)}${domainToASCII(address.slice(at + 1))}`
}

/** Composed letters (NFC), as mail servers expect them (RFC 6532 §3.1); not if one would become ASCII (Kelvin sign). */
const composed = (text: string) => (/[\u037e\u1fef\u212a]/.test(text) ? text : text.normalize('NFC'))

/** The forms in which a store may have an identity: earlier builds kept decomposed letters as they were typed. */
export function formsOf(identity: string): readonly string[] {
  const decomposed = identity.normalize('NFD')
  // A form that does not compose back to the same text is another address (the Kelvin sign becomes K).
  return decomposed !== identity && decomposed.normalize('NFC') === identity
    ? [identity, decomposed]
    : [identity]
}

/** One key for all spellings of what is most likely one mailbox, from an identity: for caps, never to send to. */
export function mailboxKey(identity: string): string {
  const at = identity.lastIndexOf('@')
  const local = identity.slice(0, at)
  const fold = (text: string) => text.normalize('NFKC').toLowerCase()
  // Twice, because folding can reveal characters that fold again.
  const folded = fold(fold(unquoted(local)).replace(/[\p{Default_Ignorable_Code_Point}\p{Cf}\s]/gu, ''))
  return `${folded === '' ? local : folded}${identity.slice(at)}`
}

const unquoted = (local: string) =>
  /^".*"$/s.test(local) ? local.slice(1, -1).replace(/\\(.)/gs, '$1') : local

/** The form with quotes around it, which earlier builds took for another mailbox. */
export const quotedForm = (identity: string) => identity.replace(/^([^"].*)@/, '"$1"@')

/** Control characters, and the line and paragraph separators, which some software treats as line ends. */
const hasControl = (text: string) => /[\p{Cc}\u2028\u2029]/u.test(text)

const refuse = (reason: string): ParsedAddress => ({ ok: false, reason })
