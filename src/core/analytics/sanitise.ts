import { isRecord } from '../is-record.ts'
import {
  type AnalyticsEvent,
  type EventDefinition,
  LONGEST_KEY,
  LONGEST_STRING,
  MOST_PROPERTIES,
  type PropertyValue,
} from './events.ts'
import { isPersonalKey } from './personal.ts'
import { isPersonalNumber, isPersonalValue } from './personal-value.ts'

/** Why an event, or a property of one, is left out. The first four cost the event, the others a property. */
export const DROP_REASONS = [
  ...(['malformed', 'unknown_kind', 'time_out_of_range', 'opted_out'] as const),
  ...(['property_name', 'property_personal', 'property_type', 'property_limit', 'property_unknown'] as const),
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
  return text.toWellFormed()
}
