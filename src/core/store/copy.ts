import { codeOf } from '../errors.ts'
import { refusal, refusalFor } from './errors.ts'
import { TABLES } from './migrations.ts'
import { schemaVersion } from './schema.ts'
import { all, CONFIGURATIONS, run, type Steps, scalar, snakeCase } from './sql.ts'
import { parsed, subscriptions } from './subscriptions.ts'

/** Entries of `meta` that describe one store itself: neither copied nor compared. */
const OWN_META = ['readable_from', 'verified_at', 'backup_at', 'ping', 'journal_owed', CONFIGURATIONS]
export const PAGE = 500
/** In characters: a parameter of PostgreSQL holds 256 MB of JSON, and a queued mail is up to a megabyte. */
const LARGEST_PAGE = 16_000_000

export type CopiedRow = Readonly<Record<string, unknown>>

/** A store that is held against writers: the rows of a table, as steps give them, `PAGE` at a time. */
export interface CopySource {
  readonly rows: (table: string) => Iterable<readonly CopiedRow[]> | AsyncIterable<readonly CopiedRow[]>
  /** Throws if another process may have written since, or waits to write: its change would be missing in the copy. */
  readonly assertUnchanged: () => Promise<void>
}

type Perform = <T>(steps: Steps<T>) => Promise<T>

/** A table that is not the same in two stores, and how many rows each side has. */
export type TableDifference = { readonly table: string; readonly from: number; readonly to: number }

export async function copyRows(source: CopySource, perform: Perform) {
  const counts: Record<string, number> = {}
  for (const table of TABLES) {
    if ((await perform(countOf(table))) > 0)
      throw refusal`the store to copy to is not empty (${table} has rows) and was left as it is: name an empty database.`
    const known = (await perform(all<{ name: string }>('{columns}', { table }))).map(({ name }) => name)
    counts[table] = 0
    for await (const { rows, columns, selected } of pagesOf(source, table)) {
      const lost = columns.filter((column) => !known.includes(column))
      if (lost.length > 0)
        throw refusal`the two stores differ in ${table} (${lost.join(', ')}): use one build for both.`
      const insert = `INSERT INTO ${table} (${columns.join(', ')}) ${selected}`
      const copied = await perform(run(insert, { rows })).catch(refusing(table))
      if (copied !== rows.length) throw refusal`not every row of ${table} could be copied.`
      counts[table] += copied
    }
  }
  await perform(subscriptions.sayAll())
  // While all of it can still be taken back.
  await source.assertUnchanged()
  return counts
}

export async function compareRows(source: CopySource, perform: Perform, latest: number) {
  const isEmpty = (await perform(schemaVersion())) < latest
  const differences: TableDifference[] = []
  for (const table of TABLES) {
    let from = 0
    let alike = 0
    for await (const { rows, columns, selected } of pagesOf(source, table)) {
      const both = `SELECT count(*) AS count FROM (${selected} INTERSECT SELECT ${columns.join(', ')} FROM ${table}) AS both_sides`
      from += rows.length
      // The store casts the rows to its own types.
      if (!isEmpty && alike + rows.length === from)
        alike += (await perform(scalar<number>(both, { rows }))) ?? 0
    }
    const to = isEmpty ? 0 : await perform(countOf(table))
    if (alike !== from || from !== to) differences.push({ table, from, to })
  }
  return differences
}

function* countOf(table: string): Steps<number> {
  const except = table === 'meta' ? ` WHERE name NOT IN (SELECT value FROM {each @own})` : ''
  const text = `SELECT count(*) AS count FROM ${table}${except}`
  return (yield* scalar<number>(text, { own: OWN_META })) ?? 0
}

/** The rows of a table that belong into another store, a page at a time, with a query that reads them from `@rows`. */
async function* pagesOf(source: CopySource, table: string) {
  for await (const page of source.rows(table))
    for (const rows of partsOf(page.flatMap((row) => copiedOf(table, row)))) {
      const columns = Object.keys(rows[0] ?? {}).map(snakeCase)
      const selected = `SELECT ${columns.join(', ')} FROM {rows ${table}: ${columns.join(', ')}} AS r`
      yield { rows, columns, selected }
    }
}

export function* partsOf(page: readonly CopiedRow[]) {
  let from = 0
  let size = 0
  for (const [at, row] of page.entries()) {
    for (const value of Object.values(row)) size += typeof value === 'string' ? value.length : 0
    if (size < LARGEST_PAGE && at < page.length - 1) continue
    yield page.slice(from, at + 1)
    from = at + 1
    size = 0
  }
}

function copiedOf(table: string, row: CopiedRow): readonly CopiedRow[] {
  if (table === 'meta') return OWN_META.includes(String(row.name)) ? [] : [row]
  if (table !== 'subscription') return [row]
  // A list that is not one, which somebody damaged, is copied as it is.
  return [{ ...row, sentDays: listOr(row.sentDays ?? 'null'), sentLessons: listOr(row.sentLessons) }]
}

/** A flat list, which SQLite keeps in a text; any other value stays what it is. */
function listOr(value: unknown): unknown {
  const list = parsed(value)
  return Array.isArray(list) && list.every((one) => typeof one !== 'object') ? list : value
}

/** A row that the other store does not take, such as one that breaks a constraint, is no fault of that store. */
const refusing = (table: string) => (error: unknown) => {
  const code = codeOf(error instanceof Error && error.cause ? error.cause : error)
  const isRow = /^(?:22|23|54)|^SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG)/.test(code)
  if (!isRow && !(error instanceof RangeError)) throw error
  const refuse = refusalFor(error)
  throw refuse`a row of ${table} does not fit the other store (${code || 'it is too large'}): platformctl db verify names rows that are wrong; nothing was copied.`
}
