import type { JournalEntry } from './journal.ts'

/**
 * An operation of the store is written once, as a function that yields statements. SQLite runs it in one turn of the
 * event loop, so it is atomic without a lock; PostgreSQL awaits each statement. In a text, tables have their bare names,
 * parameters are named (`@now`), `FOR UPDATE` locks rows where there are row locks, and what the stores spell differently is a word in braces (`dialect.ts`). `@leaseNow` is
 * the time by the clock of leases in milliseconds, which the store gives itself.
 */
export type Steps<T> = Generator<Step, T, Answer>

export type Step = Statement | Script | Lock | Journaled
/** `values`: by the names of the text's parameters. `raw`: its rows come as the driver reads them, with null. */
export type Statement = { readonly text: string; readonly values: object; readonly raw?: boolean }
/** Several statements at once, without parameters, in the store's own words. */
type Script = { readonly script: string }
/** Waits until no other transaction holds the name, or the space itself; SQLite has one writer, so it needs no lock. */
type Lock = { readonly space: number; readonly name: string | undefined }
/** Lines for the journal beside a file, or every line that names an identity taken out; a server's rows say the same. */
type Journaled = { readonly journal: readonly JournalEntry[]; readonly forget?: string }

export interface Answer {
  /** Named as the program names things (`first_attempt_at` is `firstAttemptAt`), with undefined for null. */
  readonly rows: readonly unknown[]
  /** Rows inserted, updated or deleted, or found; 0 if lines of the journal could not be taken out yet. */
  readonly changes: number
}

export const NOTHING: Answer = { rows: [], changes: 0 }

/** Rows that one step of a deletion or a search takes: each holds the writer for a few milliseconds at most. */
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

/** Every row of a query. `Row` is believed: a test prepares each text against both schemas. */
export function* all<Row>(text: string, values: object = {}, raw = false): Steps<readonly Row[]> {
  return (yield { text, values, raw }).rows as readonly Row[]
}

/** The first row of a query; undefined if it has none. */
export function* first<Row>(text: string, values: object = {}): Steps<Row | undefined> {
  return (yield* all<Row>(text, values))[0]
}

/** The first value of a query's first row; undefined if it has none, or that is null. */
export function* scalar<Value>(text: string, values: object = {}): Steps<Value | undefined> {
  return Object.values((yield* first<Readonly<Record<string, Value>>>(text, values)) ?? {})[0]
}

export function* lock(space: number, name?: string): Steps<void> {
  yield { space, name }
}

/** Journals changes before they are committed: a spare line does no harm, a missing one would be lost in a restore. */
export function* journal(...entries: readonly JournalEntry[]): Steps<void> {
  if (entries.length > 0) yield { journal: entries }
}

/** `a, b` as `a = r.a, b = r.b`, for what an `UPDATE` sets from another row. */
export const assigned = (columns: string, from = 'r') => columns.replace(/\w+/g, `$& = ${from}.$&`)

/** Inserts `@rows` into a table; what follows says what happens to those that it has. */
export const insertRows = (table: string, columns: string, otherwise = '') =>
  `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM {rows ${table}: ${columns}} AS r WHERE true ${otherwise}`

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Repeats a deletion of at most `most` rows, each committed alone, until it finds fewer. */
export async function deleteInSteps({ one }: Sql, text: string, values: object, most = ROWS_A_STEP) {
  while ((await one(run(text, values))) === most) await new Promise(setImmediate)
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

export const camelCase = (column: string): string =>
  column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A parameter as both stores keep it alike: undefined is null, and a list is JSON, whose rows have the names of columns. */
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
