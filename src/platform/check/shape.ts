import { parseDuration } from '../../core/env/values.ts'
import { fieldsOf, type Names, textOf } from './names.ts'
import { type Fields, options, type Place, quoted, suggestion, typeName } from './place.ts'

/** Checks a value at its place, and gives it as a program uses it; undefined after a fault. */
export interface Check {
  (place: Place, value: unknown, names: Names): unknown
  /** It looks at a field that was left out, too. */
  readonly isNeeded?: true
}

/** A check for each field of a type: the compiler names those that are missing. */
export type Checks<Type> = { readonly [Name in keyof Required<Type>]: Check }
type Unchecked<Type> = { readonly [Name in keyof Type]?: unknown }

/** A field that has to be there: with a sentence of its own, or what the check says of a missing value. */
export const needed = (check: Check, cause?: string, fix = ''): Check =>
  Object.assign(
    (...[place, value, names]: Parameters<Check>) =>
      value === undefined && cause !== undefined ? place.fault(cause, fix) : check(place, value, names),
    { isNeeded: true as const },
  )

/** An object of these fields and no others; `also` checks them together. */
export function object<Type>(
  what: string,
  checks: Checks<Type>,
  also?: (place: Place, fields: Unchecked<Type>, names: Names, sound: Fields) => void,
) {
  const known = Object.keys(checks)
  const check: Check = (place, value, names) => {
    const fields = fieldsAt(place, value, what)
    if (fields === undefined) return undefined
    for (const key of Object.keys(fields))
      if (!known.includes(key))
        place.fault(
          `${key} is not a field of ${what}.`,
          suggestion(key, known) ?? `Its fields are ${known.join(', ')}.`,
          key,
        )
    const sound = Object.fromEntries(
      Object.entries<Check>(checks).map(([name, one]) => [
        name,
        fields[name] === undefined && !one.isNeeded ? undefined : one(place.at(name), fields[name], names),
      ]),
    )
    // The fields that it has are those of the type, each with any value.
    also?.(place, fields as Unchecked<Type>, names, sound)
    return sound
  }
  return Object.assign(check, { known })
}

function fieldsAt(place: Place, value: unknown, what: string): Fields | undefined {
  const fields = fieldsOf(value)
  if (typeof fields !== 'string') return fields
  return fields === 'unreadable'
    ? place.fault('Reading it throws an error.', 'Write values in place of the getters.')
    : place.fault(`${what} is ${typeName(value)}, not an object.`, 'Write it as { … }.')
}

/** An object whose keys are names that the definition gives; `name` checks their form. */
export const map =
  (what: string, name: Check | undefined, each: Check): Check =>
  (place, value, names) => {
    const fields = fieldsAt(place, value, what) ?? {}
    for (const [key, one] of Object.entries(fields)) {
      name?.(place.at(key), key, names)
      each(place.at(key), one, names)
    }
    return fields
  }

export const called =
  (form: RegExp, what: string, example: string): Check =>
  (place, name) =>
    form.test(textOf(name)) && !(textOf(name) in Object.prototype)
      ? name
      : place.fault(`${quoted(name)} cannot be the name of ${what}.`, `Name it like ${example}.`)

/** Text of one line that is not blank. */
export const text =
  (longest = 300): Check =>
  ({ fault }, value) => {
    if (typeof value !== 'string' || value.trim() === '')
      return fault(`This is ${typeName(value)}, not text.`, 'Write a text in quotes, or leave the field out.')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones looked for.
    if (/[\u0000-\u001f\u007f]/.test(value))
      return fault('The text holds control characters.', 'Write it on one line, without tabs.')
    if (value.length > longest) return fault(`The text is longer than ${longest} characters.`, 'Shorten it.')
    return value
  }

/** Text that is `what`. */
export const like =
  (is: RegExp | ((text: string) => boolean), what: string, fix: string): Check =>
  (...[place, value, names]) => {
    const found = text()(place, value, names)
    if (typeof found !== 'string') return undefined
    const fits = typeof is === 'function' ? is(found) : is.test(found)
    return fits ? found : place.fault(`${quoted(found)} is not ${what}.`, fix)
  }

/** Any value that is `what`. */
export const that =
  (is: (value: unknown) => boolean, what: string, fix: string): Check =>
  (place, value) =>
    is(value) ? value : place.fault(`This is ${typeName(value)}, not ${what}.`, fix)

export const flag = that(
  (value) => typeof value === 'boolean',
  'true or false',
  'Write true or false, without quotes.',
)

export const code = (fix: string) => that((value) => typeof value === 'function', 'a function', fix)

/** Names that a field may hold: always the same, or those of the definition at hand. */
type Known = readonly string[] | ((names: Names) => readonly string[])

/** One of these names, or a fault with the name that was probably meant. */
export const oneOf =
  (known: Known, what: string): Check =>
  (place, value, names) => {
    const list = typeof known === 'function' ? known(names) : known
    if (typeof value === 'string' && list.includes(value)) return value
    if (typeof value !== 'string')
      return place.fault(`This is ${typeName(value)}, not the name of ${what}.`, options(list))
    return place.fault(`${quoted(value)} is not ${what}.`, suggestion(value, list) ?? options(list))
  }

/** A list; `each` checks its entries, which may be no two of the same. */
export const list =
  (of: string, each: Check, atLeast = 0, isSet = false): Check =>
  (place, value, names) => {
    if (!Array.isArray(value))
      return place.fault(`This is ${typeName(value)}, not a list.`, `Write a list of ${of}: [ … ].`)
    const entries: readonly unknown[] = [...value]
    if (entries.length < atLeast)
      place.fault(
        entries.length === 0
          ? 'The list is empty.'
          : `The list holds ${entries.length} name, and ${atLeast} are needed.`,
        atLeast === 1 ? 'Name at least one.' : `Name at least ${atLeast}.`,
      )
    return entries.map((entry, index) => {
      return isSet && entries.indexOf(entry) < index
        ? place.fault(`${quoted(entry)} is in this list twice.`, 'Remove one of the two.', index)
        : each(place.at(index), entry, names)
    })
  }

export const someOf = (known: Known, what: string, atLeast = 0): Check =>
  list('names', oneOf(known, what), atLeast, true)

export const duration =
  (low: number, high: number, form: string, bounds: string): Check =>
  (place, value) => {
    const ms = typeof value === 'string' ? parseDuration(value) : undefined
    if (ms === undefined)
      return place.fault(
        `This is ${typeof value === 'string' ? quoted(value) : typeName(value)}, not a duration.`,
        `Write it with its unit, as ${form}.`,
      )
    return ms >= low && ms <= high
      ? ms
      : place.fault(`The duration ${quoted(value)} is out of bounds.`, `Choose one ${bounds}.`)
  }
