import { nearestOf } from '../../core/nearest.ts'

/** One thing that is wrong with a definition. */
export interface Fault {
  /** Where in the definition: `groups.kiln.rules[0].allOrNone[1]`; empty for the whole of it. */
  readonly path: string
  /** One sentence: what is wrong. */
  readonly cause: string
  /** One sentence: what to do about it. */
  readonly fix: string
}

/** A place in a definition: knows its path and takes the faults found there. */
export interface Place {
  readonly path: string
  readonly at: (key: string | number) => Place
  /** Records a fault here, or at a key in it; always undefined, so that a reader can return it. */
  readonly fault: (cause: string, fix: string, key?: string | number) => undefined
}

/** The root of a definition whose faults go into `faults`. */
export function placeIn(faults: Fault[], path = ''): Place {
  return {
    path,
    at: (key) => placeIn(faults, path + step(key, path === '')),
    fault(cause, fix, key) {
      faults.push({ path: key === undefined ? path : path + step(key, path === ''), cause, fix })
      return undefined
    },
  }
}

function step(key: string | number, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `[${JSON.stringify(key)}]`
  return first ? key : `.${key}`
}

export type Fields = Readonly<Record<string, unknown>>

/** An object of fields, or a fault. */
export function fieldsAt(place: Place, value: unknown, what: string): Fields | undefined {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    try {
      return { ...value }
    } catch {
      return place.fault('Reading it throws an error.', 'Write values in place of the getters.')
    }
  return place.fault(`${what} is ${typeName(value)}, not an object.`, 'Write it as { … }.')
}

/** The same, holding none but these fields. */
export function knownFieldsAt(
  place: Place,
  value: unknown,
  what: string,
  known: readonly string[],
): Fields | undefined {
  const fields = fieldsAt(place, value, what)
  for (const key of Object.keys(fields ?? {})) {
    if (known.includes(key)) continue
    place.fault(
      `${key} is not a field of ${what}.`,
      suggestion(key, known) ?? `Its fields are ${known.join(', ')}.`,
      key,
    )
  }
  return fields
}

/** Text that is not blank and holds no control characters; undefined when left out, or after a fault. */
export function textAt(place: Place, value: unknown, longest = 300): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value.trim() === '')
    return place.fault(
      `This is ${typeName(value)}, not text.`,
      'Write a text in quotes, or leave the field out.',
    )
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones looked for.
  if (/[\u0000-\u001f\u007f]/.test(value))
    return place.fault('The text holds control characters.', 'Write it on one line, without tabs.')
  if (value.length > longest)
    return place.fault(`The text is longer than ${longest} characters.`, 'Shorten it.')
  return value
}

export function booleanAt(place: Place, value: unknown): void {
  if (value !== undefined && typeof value !== 'boolean')
    place.fault(`This is ${typeName(value)}, not true or false.`, 'Write true or false, without quotes.')
}

/** A list, or a fault; undefined when left out. */
export function listAt(place: Place, value: unknown, of: string): readonly unknown[] | undefined {
  if (value === undefined) return undefined
  if (Array.isArray(value)) return value as readonly unknown[]
  return place.fault(`This is ${typeName(value)}, not a list.`, `Write a list of ${of}: [ … ].`)
}

/** One of these names, or a fault with the name that was probably meant. */
export function nameAt(
  place: Place,
  value: unknown,
  known: readonly string[],
  what: string,
): string | undefined {
  if (typeof value === 'string' && known.includes(value)) return value
  if (typeof value !== 'string')
    return place.fault(`This is ${typeName(value)}, not the name of ${what}.`, options(known))
  return place.fault(`${quoted(value)} is not ${what}.`, suggestion(value, known) ?? options(known))
}

/** A list of these names without duplicates, or a fault. */
export function namesAt(
  place: Place,
  value: unknown,
  of: { readonly known: readonly string[]; readonly what: string; readonly atLeast?: number },
): readonly string[] {
  const list = listAt(place, value, 'names') ?? []
  const { atLeast = 0 } = of
  if (value !== undefined && Array.isArray(value) && list.length < atLeast)
    place.fault(
      list.length === 0
        ? 'The list is empty.'
        : `The list holds ${list.length} name, and ${atLeast} are needed.`,
      atLeast === 1 ? 'Name at least one.' : `Name at least ${atLeast}.`,
    )
  return list.flatMap((entry, index) => {
    if (list.indexOf(entry) < index) {
      place.at(index).fault(`${quoted(entry)} is in this list twice.`, 'Remove one of the two.')
      return []
    }
    return nameAt(place.at(index), entry, of.known, of.what) ?? []
  })
}

/** A name that a definition gives: checked against its form. */
export function formAt(
  place: Place,
  name: string,
  form: { readonly pattern: RegExp; readonly what: string; readonly example: string },
): void {
  if (!form.pattern.test(name))
    place.fault(`${quoted(name)} cannot be the name of ${form.what}.`, `Name it like ${form.example}.`)
}

/** `Did you mean web?`, or undefined. */
function suggestion(name: string, known: readonly string[]): string | undefined {
  const near = nearestOf(name, known)
  return near === undefined ? undefined : `Did you mean ${near}?`
}

function options(known: readonly string[]): string {
  if (known.length === 0) return 'There is none to name yet: define it first.'
  const shown = known.slice(0, 12)
  return `Use one of ${shown.join(', ')}${known.length > shown.length ? ' …' : ''}.`
}

/** A name as it was written, cut where it is too long to be one. */
export function quoted(value: unknown): string {
  const text = typeof value === 'string' ? value : typeName(value)
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}

/** Describes the type of a value in words, never its content. */
export function typeName(value: unknown): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (value === '') return 'empty'
  if (typeof value === 'string') return value.trim() === '' ? 'blank' : 'text'
  if (typeof value === 'object') return 'an object'
  return (
    { number: 'a number', boolean: 'true or false', function: 'a function' }[typeof value as string] ??
    typeof value
  )
}
