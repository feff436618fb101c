import type { JournalEntry } from './journal.ts'

/**
 * An operation of the store is written once, as a function that yields statements. SQLite runs it in one turn
 * of the event loop, so it is atomic without a lock; PostgreSQL awaits each statement.
 *
 * In a text, tables have their bare names, parameters are named (`@now`), `FOR UPDATE` locks rows where a store
 * has row locks, and what the stores spell differently is a word in braces (`dialect.ts`). `@leaseNow` is the time by the
 * clock of leases in milliseconds, which the store gives itself.
 */
export type Steps<T> = Generator<Step, T, Answer>

export type Step = Statement | Script | Lock | Journaled

interface Statement {
  readonly text: string
  /** By the names of the text's parameters (`boundValue`); others are ignored. */
  readonly values: object
  /** Its rows come as the driver reads them, with null for undefined: for what is read for every lesson. */
  readonly raw?: boolean
}

/** Several statements at once, without parameters: a step of the schema. */
interface Script {
  readonly script: string
}

/** Only one transaction at a time holds a name within a space; SQLite has one writer, so it needs no lock. */
interface Lock {
  readonly space: number
  /** Undefined: the space itself is what is held. */
  readonly name: string | undefined
}

/** Lines for the journal beside a file; a store on a server has none, because its rows say the same. */
interface Journaled {
  readonly journal: readonly JournalEntry[]
  /** Takes out every line that names this identity. */
  readonly forget?: string
}

export interface Answer {
  /** Named as the program names things (`first_attempt_at` is `firstAttemptAt`), with undefined for null. */
  readonly rows: readonly unknown[]
  /** Rows inserted, updated or deleted, or found; 0 if lines of the journal could not be taken out yet. */
  readonly changes: number
}

/** Rows that one step of a deletion takes: each step holds the writer for a few milliseconds at most. */
export const ROWS_A_STEP = 500

/** Runs steps on one store. Every function rejects with `store_unavailable` while the store cannot be used. */
export interface Sql {
  /** Runs a single statement, which is committed alone. */
  one<T>(statement: Steps<T>): Promise<T>
  /** Runs the steps one after the other, with no transaction around them. */
  read<T>(work: () => Steps<T>): Promise<T>
  /** Runs the steps in one transaction: all of them, or none. */
  write<T>(work: () => Steps<T>): Promise<T>
  /** Adds to the journal after a commit, where there is one. */
  journal(...entries: readonly JournalEntry[]): Promise<void>
  /** Takes erased texts out of the store's file; false: it may still hold a byte of them. */
  scrub(texts: readonly string[]): Promise<boolean>
}

/** Runs a statement; gives the number of rows that it changed. */
export function* run(text: string, values: object = {}): Steps<number> {
  return (yield { text, values }).changes
}

/**
 * Every row of a query. `Row` is believed: the tables have types, and a test prepares each text against both
 * schemas.
 */
export function* all<Row>(text: string, values: object = {}, raw = false): Steps<readonly Row[]> {
  return (yield { text, values, raw }).rows as readonly Row[]
}

/** The first row of a query; undefined if it has none. */
export function* first<Row>(text: string, values: object = {}): Steps<Row | undefined> {
  return (yield* all<Row>(text, values))[0]
}

/** Runs statements without parameters, in the store's own words. */
export function* script(text: string): Steps<void> {
  yield { script: text }
}

/** Waits until no other transaction holds the name within the space; held until this one ends. */
export function* lock(space: number, name?: string): Steps<void> {
  yield { space, name }
}

/**
 * Journals changes before they are committed: a spare line does no harm, but a change that is missing from the journal
 * would be lost in a restore.
 */
export function* journal(...entries: readonly JournalEntry[]): Steps<void> {
  if (entries.length > 0) yield { journal: entries }
}

/** `a, b` as `a = r.a, b = r.b`, for what an `UPDATE` sets from another row. */
export const assigned = (columns: string, from = 'r') => columns.replace(/\w+/g, `$& = ${from}.$&`)

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Repeats a deletion of at most `ROWS_A_STEP` rows, each committed alone, until it finds fewer. */
export async function deleteInSteps({ one }: Sql, text: string, values: object): Promise<void> {
  while ((await one(run(text, values))) === ROWS_A_STEP) await new Promise(setImmediate)
}

/** Reads rows of one statement: the names of its columns are changed once, not for each row. */
export function rowReader(): (row: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>> {
  let names: readonly (readonly [column: string, name: string])[] | undefined
  return (row) => {
    names ??= Object.keys(row).map((column) => [column, camelCase(column)])
    const read: Record<string, unknown> = {}
    for (const [column, name] of names) read[name] = row[column] ?? undefined
    return read
  }
}

export function camelCase(column: string): string {
  return column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * The value of a parameter as both stores can keep it, so that it comes back the same from each: undefined is null, and
 * a list is JSON, whose rows have the names of columns.
 */
export function boundValue(values: object, name: string): unknown {
  const value: unknown = values[name as keyof typeof values]
  if (typeof value === 'string') return storableText(value)
  if (!Array.isArray(value)) return value ?? null
  return JSON.stringify(value.map(namedByColumns), (_, one) =>
    typeof one === 'string' ? storableText(one) : one,
  )
}

function namedByColumns(row: unknown): unknown {
  if (typeof row !== 'object' || row === null) return row
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [snakeCase(name), value]))
}

/** The text as every store can keep it: without NUL and halves of surrogate pairs, which PostgreSQL refuses. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
