import { nearestOf } from '../../core/nearest.ts'

export interface Fault {
  /** Where in the definition: `groups.kiln.rules[0].allOrNone[1]`; empty for the whole of it. */
  readonly path: string
  readonly cause: string
  readonly fix: string
}

/** A place in a definition: knows its path and takes the faults found there. */
export interface Place {
  readonly path: string
  readonly key: string
  readonly at: (key: string | number) => Place
  /** Records a fault here, or at a key in it; always undefined, so that a reader can return it. */
  readonly fault: (cause: string, fix: string, key?: string | number) => undefined
}

export type Fields = Readonly<Record<string, unknown>>

/** The root of a definition whose faults go into `faults`. */
export function placeIn(faults: Fault[], path = '', key = ''): Place {
  return {
    path,
    key,
    at: (next) => placeIn(faults, path + step(next, path === ''), String(next)),
    fault(cause, fix, next) {
      faults.push({ path: next === undefined ? path : path + step(next, path === ''), cause, fix })
      return undefined
    },
  }
}

function step(key: string | number, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `[${JSON.stringify(key)}]`
  return first ? key : `.${key}`
}

/** `Did you mean web?`, or undefined. */
export function suggestion(name: string, known: readonly string[]): string | undefined {
  const near = nearestOf(name, known)
  return near === undefined ? undefined : `Did you mean ${near}?`
}

export function options(known: readonly string[]): string {
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
  const words: Record<string, string> = {
    object: 'an object',
    number: 'a number',
    boolean: 'true or false',
    function: 'a function',
  }
  return words[typeof value] ?? typeof value
}
