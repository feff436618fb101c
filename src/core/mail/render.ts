import type { CompiledMail, Part } from './template.ts'

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

/** Fills a compiled mail. Values are checked once by kind, then escaped for each place they stand in. */
export function renderMail(mail: CompiledMail, slots: Readonly<Record<string, string>>): Rendered {
  for (const name of Object.keys(slots)) {
    if (!Object.hasOwn(mail.slots, name)) throw new SlotError(`the template has no slot ${name}`)
  }
  for (const [name, { type }] of Object.entries(mail.slots)) {
    const value = Object.hasOwn(slots, name) ? slots[name] : undefined
    if (value === undefined) throw new SlotError(`the slot ${name} has no value`)
    if (type === 'url' ? !isSafeUrl(value) : !isSafeText(value))
      throw new SlotError(`the value of the slot ${name} is not a ${type}`)
  }
  return { subject: fill(mail.subject, slots), html: fill(mail.html, slots), text: fill(mail.text, slots) }
}

export function fill(parts: readonly Part[], slots: Readonly<Record<string, string>>): string {
  let filled = ''
  for (const part of parts) {
    if (typeof part === 'string') filled += part
    else filled += part.as === 'plain' ? slots[part.slot] : escapeHtml(slots[part.slot] ?? '')
  }
  return filled
}

function isSafeUrl(value: string): boolean {
  return value.length <= LONGEST_URL && /^https?:\/\/[\x21-\x7e]+$/.test(value) && URL.canParse(value)
}

/** No line ends and no control characters: a text slot may stand in a header. */
function isSafeText(value: string): boolean {
  if (value.length > LONGEST_TEXT) return false
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code < 32 || (code >= 127 && code < 160) || code === 0x2028 || code === 0x2029) return false
  }
  return true
}

const UNSAFE = /[&<>"']/
const EACH_UNSAFE = /[&<>"']/g
const ENTITY: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for HTML content and for quoted attribute values. Most values need nothing, and are looked at once. */
export function escapeHtml(text: string): string {
  return UNSAFE.test(text) ? text.replace(EACH_UNSAFE, (character) => ENTITY[character] ?? character) : text
}
