import { attempt, isRecord, percentDecoded } from '../is-record.ts'
import { trimEnd } from '../trim-end.ts'
import {
  type AnalyticsEvent,
  type EventDefinition,
  LONGEST_KEY,
  LONGEST_STRING,
  MOST_PROPERTIES,
  type PropertyValue,
} from './events.ts'
import { isPersonalKey } from './personal.ts'

/** Why an event, or a property of one, is left out. The first four cost the event, the others a property. */
// biome-ignore format: a list of names is read as a text
export const DROP_REASONS = [
  'malformed', 'unknown_kind', 'time_out_of_range', 'opted_out',
  'property_name', 'property_personal', 'property_type', 'property_limit', 'property_unknown',
] as const
export type DropReason = (typeof DROP_REASONS)[number]

/** The last millisecond of a Date (ECMA-262 §21.4.1.1). */
const LAST_TIME = 8.64e15
/** The decision about each name, made once. Bounded, so that no flood of names fills the memory. */
const VERDICTS = new Map<string, DropReason | ''>()
const MOST_VERDICTS = 1000
/** Texts that are kept as they are: a language, a device, a topic comes with every event, and judging one is most of the work. */
const HARMLESS = new Set<string>()
const MOST_HARMLESS = 2000

/** Empty prototype of kept properties: V8 keeps objects whose prototype is `null` as hash tables, half as fast to write as JSON. */
const NOTHING: object = Object.create(null)
const copyOf = (properties: object): Record<string, unknown> =>
  Object.assign(Object.create(NOTHING), properties)

/**
 * The one sanitiser (CONTRACT §6), in the browser and again at ingest. Gives the event with what may be kept of its
 * properties, or undefined; `drop` is called for the rest. Never throws on JSON; sanitising twice changes nothing.
 */
export type Sanitise = (value: unknown, drop: (reason: DropReason) => void) => AnalyticsEvent | undefined

export function createSanitiser(events: readonly EventDefinition[]): Sanitise {
  const kinds = new Map<unknown, EventDefinition>(events.map((event) => [event.name, event]))
  return (value, drop) => {
    if (!isRecord(value)) return void drop('malformed')
    const { kind, properties = {} } = value
    const definition = kinds.get(kind)
    if (definition === undefined) return void drop('unknown_kind')
    if (!isRecord(properties)) return void drop('malformed')
    const at = timeOf(value.at)
    if (at === undefined) return void drop('time_out_of_range')
    // Copied at once and then cleared of what must go: most events keep all, and a store by a name that varies is slow.
    const kept = copyOf(properties)
    const keys = Object.keys(kept)
    let count = 0
    for (const key of keys) {
      const one = kept[key]
      const limit = count === MOST_PROPERTIES ? 'property_limit' : undefined
      const fault = keyFault(key) ?? valueFault(one) ?? unlisted(definition, key, one) ?? limit
      if (fault) {
        drop(fault)
        delete kept[key]
      } else {
        count += 1
        if (typeof one === 'string' && !HARMLESS.has(one)) kept[key] = cut(one)
      }
    }
    // valueFault refuses all but strings, finite numbers and booleans. What was deleted from is a hash table.
    const clean = (count === keys.length ? kept : copyOf(kept)) as Record<string, PropertyValue>
    return { kind: definition.name, at, properties: clean }
  }
}

/** Why a kind that lists its properties does not keep this one. */
function unlisted({ properties }: EventDefinition, key: string, value: unknown): DropReason | undefined {
  if (properties === undefined) return undefined
  if (!Object.hasOwn(properties, key)) return 'property_unknown'
  return typeof value === properties[key] ? undefined : 'property_type'
}

/** UTC milliseconds, or an ISO 8601 time with its zone. */
function timeOf(at: unknown): number | undefined {
  const time =
    typeof at === 'string' && /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(at) ? Date.parse(at) : at
  return typeof time === 'number' && time >= 0 && time <= LAST_TIME ? Math.trunc(time) : undefined
}

function keyFault(key: string): DropReason | undefined {
  if (key.length > LONGEST_KEY) return 'property_name'
  const known = VERDICTS.get(key)
  if (known !== undefined) return known || undefined
  const fault = !isName(key) ? 'property_name' : isPersonalKey(key) ? 'property_personal' : undefined
  if (VERDICTS.size < MOST_VERDICTS) VERDICTS.set(key, fault ?? '')
  return fault
}

/** A name begins with a letter and is nothing that every object has, such as `constructor`. Data used as a key is none. */
const isName = (key: string) => /^\p{L}[\p{L}\p{M}\p{N} ._-]*$/u.test(key) && !(key in {})

function valueFault(value: unknown): DropReason | undefined {
  if (typeof value === 'string') {
    if (HARMLESS.has(value)) return undefined
    const kept = cut(value)
    // Judge what is kept as well: cutting can leave a number where there was none before.
    if (isPersonalValue(value) || (kept !== value && isPersonalValue(kept))) return 'property_personal'
    // Forgets all when there is no room: what comes often is soon back, and a flood of texts fills no memory.
    if (HARMLESS.size === MOST_HARMLESS) HARMLESS.clear()
    if (kept === value) HARMLESS.add(value)
    return undefined
  }
  if (typeof value === 'number' && isPersonalNumber(value)) return 'property_personal'
  return typeof value === 'boolean' || Number.isFinite(value) ? undefined : 'property_type'
}

/** Cuts a text to 64 code points, not UTF-16 units: a lone half of a pair would change again when stored. */
function cut(text: string): string {
  if (text.length > LONGEST_STRING) {
    let end = 0
    for (let count = 0; count < LONGEST_STRING && end < text.length; count += 1)
      end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
    text = text.slice(0, end)
  }
  // Firefox 115 and Safari before 16.4 do not have it; ingest does this again.
  return text.toWellFormed?.() ?? text
}

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
const IBAN = /(?:^|[^\p{L}\p{N}])[A-Z]{2}\d{2}(?:[\s-]?[A-Z0-9]){11,30}/giu
const LAYERS = 3
/** Base64 whose first and fourth byte may be printable ASCII. Most words are no such run, and need not be decoded. */
const BASE64 = /^(?:[I-Za-f][A-Za-z0-9+/_-]{3}){2}/
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
  return percentDecoded(text)
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
  return (text.match(/[A-Za-z0-9+/_-]{8,}={0,2}/g) ?? []).flatMap((run) => {
    if (!BASE64.test(run)) return []
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
  const compact = run.replace(/[^a-z\d]/gi, '').toUpperCase()
  for (let length = compact.length; length >= 15; length -= 1) {
    let rest = 0
    for (const character of compact.slice(4, length) + compact.slice(0, 4))
      rest = Number(`${rest}${Number.parseInt(character, 36)}`) % 97
    if (rest === 1) return true
  }
  return false
}
