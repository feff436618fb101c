import { perObject } from '../calls.ts'
import { brandColors } from '../colour.ts'

/** The place of a slot, which decides how its value is escaped. */
export type SlotContext = 'html' | 'url' | 'plain'

/** Static text, or a slot: what a template is after compiling. Filling it is joining strings. */
export type Part = string | { readonly slot: string; readonly as: SlotContext }

export interface Slot {
  readonly type: 'text' | 'url'
  /** Shown in the preview and in tests. */
  readonly sample: string
}

/** One mail, compiled: `body` is the lesson alone, for its page on the web. */
export interface CompiledMail {
  readonly slots: Readonly<Record<string, Slot>>
  readonly subject: readonly Part[]
  readonly html: readonly Part[]
  readonly text: readonly Part[]
  readonly body: readonly Part[]
}

/** A value for each slot of a mail: the one given, else its sample. */
export function withSamples({ slots }: CompiledMail, given: Readonly<Record<string, string>> = {}) {
  return Object.fromEntries(Object.entries(slots).map(([name, { sample }]) => [name, given[name] ?? sample]))
}

/** By name; translations by language and name, as `de/welcome`. */
export type CompiledMails = Readonly<Record<string, CompiledMail>>

/** A mail in a language, else in its base language (`de` for `de-AT`), else in the platform's language. */
export function mailIn<M = CompiledMail>(
  compiled: Readonly<Record<string, M>>,
  name: string,
  language: string | undefined,
): M | undefined {
  const keyIn = (tag: string) => (tag === '' ? name : `${tag}/${name}`)
  const found = inLanguage((tag) => Object.hasOwn(compiled, keyIn(tag)), language)
  return found === undefined ? undefined : compiled[keyIn(found)]
}

/** The first of the language, its base language and '' (the platform's language) that something is in. */
export function inLanguage(has: (tag: string) => boolean, language: string | undefined): string | undefined {
  const tag = language?.toLowerCase() ?? ''
  return [tag, tag.split('-')[0] ?? '', ''].find(has)
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
export function renderMail(mail: CompiledMail, slots: Readonly<Record<string, string>>) {
  checkSlots(mail, slots)
  return { subject: fill(mail.subject, slots), html: fill(mail.html, slots), text: fill(mail.text, slots) }
}

const entriesOf = perObject(({ slots }: CompiledMail) => Object.entries(slots))

/** Throws a SlotError unless there is a value of the right kind for every slot, and no other. */
export function checkSlots(mail: CompiledMail, slots: Readonly<Record<string, string>>): void {
  const entries = entriesOf(mail)
  for (const [name, { type }] of entries) {
    const value: unknown = slots[name]
    if (value === undefined) throw new SlotError(`the slot ${name} has no value`)
    if (typeof value !== 'string' || !isOfType(type, value))
      throw new SlotError(
        `the value of the slot ${name} is not ${type === 'url' ? 'an absolute http or https address' : 'a text'}`,
      )
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

export const isOfType = (type: Slot['type'], value: string): boolean =>
  type === 'url' ? isSafeUrl(value) : isSafeText(value)

/** Whether an http or https URL is safe in an attribute, in plain text and in a header field. */
export const isSafeUrl = (value: string): boolean =>
  value.length <= LONGEST_URL && URL_CHARACTERS.test(value) && URL.canParse(value)

/** No line ends, no control characters, nor those that turn the direction, and no half of a character: a text slot may be part of a header. */
function isSafeText(value: string): boolean {
  if (value.length > LONGEST_TEXT) return false
  let pairs = false
  // A loop, because a regular expression takes three times as long for a value of a few words.
  for (let index = 0; index < value.length; index += 1) {
    const code = value.charCodeAt(index)
    if (code < 32 || (code >= 127 && code < 160)) return false
    if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return false
    if (code >= 0xd800 && code < 0xe000) pairs = true
  }
  return !pairs || value.isWellFormed()
}

const SPECIAL = /["&'<>]/g
const ENTITIES: Readonly<Record<string, string>> = {
  '"': '&quot;',
  '&': '&amp;',
  "'": '&#39;',
  '<': '&lt;',
  '>': '&gt;',
}

/** Text for HTML content and for quoted attribute values. */
export function escapeHtml(text: string): string {
  let escaped = ''
  let from = 0
  // A loop, because calling `replace` with a function takes twice as long.
  for (let found = SPECIAL.exec(text); found !== null; found = SPECIAL.exec(text)) {
    escaped += text.slice(from, found.index) + ENTITIES[found[0]]
    from = SPECIAL.lastIndex
  }
  return from === 0 ? text : escaped + text.slice(from)
}

const BRAND_SLOTS = ['platformName', 'accent', 'onAccent', 'accentInDark'] as const

/** Values that a layout takes from the platform: filled in once, not for each mail. */
export type MailBrand = Readonly<Record<(typeof BRAND_SLOTS)[number], string>>

export const isBrandSlot = (name: string): name is keyof MailBrand =>
  BRAND_SLOTS.some((slot) => slot === name)

export function mailBrand(name: string, color: string | undefined): MailBrand {
  const { accent, onAccent, accentInDark } = brandColors(color)
  return { platformName: name, accent, onAccent, accentInDark }
}

export function withBrand(mail: CompiledMail, brand: MailBrand): CompiledMail {
  const named = (part: Part): Part =>
    typeof part !== 'string' && isBrandSlot(part.slot) ? escapeHtml(brand[part.slot]) : part
  return { ...mail, html: mail.html.map(named) }
}

export const allWithBrand = (compiled: CompiledMails, brand: MailBrand): CompiledMails =>
  Object.fromEntries(Object.entries(compiled).map(([name, mail]) => [name, withBrand(mail, brand)]))
