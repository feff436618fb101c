import type { CompiledMail, Part, Slot } from './template.ts'

export interface Rendered {
  readonly subject: string
  readonly html: string
  readonly text: string
}

/** A slot without a value, with a value of the wrong kind, or a value for no slot: a fault of the caller. */
class SlotError extends Error {
  override readonly name = 'SlotError'
}

const LONGEST_TEXT = 500
const LONGEST_URL = 2000
/** Characters of a URI (RFC 3986 §2): none of them ends an attribute, a header's angle brackets or a line. */
const URL_CHARACTERS = /^https?:\/\/[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/

/** Fills a compiled mail. Values are checked once by kind, then escaped for each place. Throws a SlotError. */
export function renderMail(mail: CompiledMail, slots: Readonly<Record<string, string>>): Rendered {
  checkSlots(mail, slots)
  return { subject: fill(mail.subject, slots), html: fill(mail.html, slots), text: fill(mail.text, slots) }
}

const entriesOf = new WeakMap<CompiledMail, readonly (readonly [string, Slot])[]>()

/** Throws a SlotError unless there is a value of the right kind for every slot, and no other. */
export function checkSlots(mail: CompiledMail, slots: Readonly<Record<string, string>>): void {
  let entries = entriesOf.get(mail)
  if (entries === undefined) {
    entries = Object.entries(mail.slots)
    entriesOf.set(mail, entries)
  }
  for (const [name, { type }] of entries) {
    const value: unknown = slots[name]
    if (value === undefined) throw new SlotError(`the slot ${name} has no value`)
    if (typeof value !== 'string' || !(type === 'url' ? isSafeUrl(value) : isSafeText(value)))
      throw new SlotError(`the value of the slot ${name} is not a ${type}`)
  }
  if (Object.keys(slots).length === entries.length) return
  const unknown = Object.keys(slots).find((name) => !Object.hasOwn(mail.slots, name))
  throw new SlotError(`the template has no slot ${unknown}`)
}

export function fill(parts: readonly Part[], slots: Readonly<Record<string, string>>): string {
  let filled = ''
  for (const part of parts) {
    if (typeof part === 'string') filled += part
    else filled += part.as === 'plain' ? slots[part.slot] : escapeHtml(slots[part.slot] ?? '')
  }
  return filled
}

/** Whether an http or https URL is safe in an attribute, in plain text and in a header field. */
export function isSafeUrl(value: string): boolean {
  return value.length <= LONGEST_URL && URL_CHARACTERS.test(value) && URL.canParse(value)
}

/** No line ends, no control characters and no half of a character: a text slot may be part of a header. */
function isSafeText(value: string): boolean {
  if (value.length > LONGEST_TEXT) return false
  let pairs = false
  // A loop, because a regular expression takes three times as long for a value of a few words.
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029) return false
    if (code >= 0xd800 && code < 0xe000) pairs = true
  }
  return !pairs || value.isWellFormed()
}

/** Text for HTML content and for quoted attribute values. */
export function escapeHtml(text: string): string {
  let escaped = ''
  let from = 0
  for (let index = 0; index < text.length; index += 1) {
    const entity = entityOf(text.charCodeAt(index))
    if (entity === undefined) continue
    escaped += text.slice(from, index) + entity
    from = index + 1
  }
  return from === 0 ? text : escaped + text.slice(from)
}

function entityOf(code: number): string | undefined {
  switch (code) {
    case 34:
      return '&quot;'
    case 38:
      return '&amp;'
    case 39:
      return '&#39;'
    case 60:
      return '&lt;'
    case 62:
      return '&gt;'
    default:
      return undefined
  }
}
