import { codeOf } from '../error-code.ts'
import { StoreMaintenanceError } from './errors.ts'
import { CONFIGURATIONS } from './meta.ts'
import { TABLES } from './migrations.ts'
import { all, type Dialect, first, run, type Steps } from './sql.ts'
import { subscriptionSteps } from './subscriptions.ts'

/**
 * Entries of `meta` that describe one store itself. They are neither copied nor compared, because each store keeps its
 * own.
 */
const OWN_META = ['readable_from', 'verified_at', 'backup_at', 'ping', 'journal_owed', CONFIGURATIONS]
/** Rows that are read, and written, in one step. */
export const PAGE = 500

export type CopiedRow = Readonly<Record<string, unknown>>

/** A store to copy from, which nobody writes to meanwhile. */
export interface CopySource {
  readonly columns: (table: string) => Promise<readonly string[]>
  /** The rows of a table as steps give them, `PAGE` at a time. */
  readonly pages: (table: string) => Iterable<readonly CopiedRow[]> | AsyncIterable<readonly CopiedRow[]>
}

/** The other store; to fill it, in one transaction. */
export interface CopyTarget {
  readonly dialect: Dialect
  readonly perform: <T>(steps: Steps<T>) => Promise<T>
}

export interface CopyResult {
  readonly counts: Readonly<Record<string, number>>
}

/** A table that is not the same in two stores. */
export interface TableDifference {
  readonly table: string
  readonly from: number
  readonly to: number
}

/** Fills an empty store with every row of another. */
export async function copyRows(source: CopySource, { dialect, perform }: CopyTarget): Promise<CopyResult> {
  const counts: Record<string, number> = {}
  for (const table of TABLES) {
    const columns = await source.columns(table)
    await perform(assertFits(dialect, table, columns))
    const insert = `INSERT INTO ${table} (${columns.join(', ')}) ${selected(dialect, table, columns)}`
    counts[table] = 0
    for await (const rows of pagesOf(source, table)) {
      const copied = await perform(run(insert, { rows })).catch((error: unknown) => {
        throw refused(table, error)
      })
      if (copied !== rows.length)
        throw new StoreMaintenanceError(`not every row of ${table} could be copied.`)
      counts[table] += copied
    }
  }
  await perform(subscriptionSteps(dialect).sayAll())
  return { counts }
}

/** The tables of a source that the other store does not have alike, and how many rows each side has. */
export async function compareRows(
  source: CopySource,
  { dialect, perform }: CopyTarget,
  latest: number,
): Promise<readonly TableDifference[]> {
  const isEmpty = (await perform(dialect.version())) < latest
  const differences: TableDifference[] = []
  for (const table of TABLES) {
    const columns = (await source.columns(table)).join(', ')
    const both = `SELECT count(*) AS count FROM (${selected(dialect, table, columns.split(', '))} INTERSECT SELECT ${columns} FROM ${table}) AS both_sides`
    let [from, alike] = [0, 0]
    for await (const rows of pagesOf(source, table)) {
      from += rows.length
      // The store casts the rows to its own types.
      if (!isEmpty && alike + rows.length === from)
        alike += (await perform(first<{ count: number }>(both, { rows })))?.count ?? 0
    }
    const to = isEmpty ? 0 : await perform(countOf(dialect, table))
    if (alike !== from || from !== to) differences.push({ table, from, to })
  }
  return differences
}

const selected = ({ rows }: Dialect, table: string, columns: readonly string[]) =>
  `SELECT ${columns.join(', ')} FROM ${rows(table, columns)} AS r`

function* countOf({ each }: Dialect, table: string): Steps<number> {
  const except = table === 'meta' ? ` WHERE name NOT IN (SELECT value FROM ${each('@own')})` : ''
  const text = `SELECT count(*) AS count FROM ${table}${except}`
  return (yield* first<{ count: number }>(text, { own: OWN_META }))?.count ?? 0
}

export function* columnsOf({ columns }: Dialect, table: string): Steps<readonly string[]> {
  return (yield* all<{ name: string }>(columns, { table })).map(({ name }) => name)
}

function* assertFits(dialect: Dialect, table: string, columns: readonly string[]): Steps<void> {
  if ((yield* countOf(dialect, table)) > 0)
    throw new StoreMaintenanceError(
      `the store to copy to is not empty (${table} has rows) and was left as it is: name an empty database.`,
    )
  const known = yield* columnsOf(dialect, table)
  const lost = columns.filter((column) => !known.includes(column))
  if (lost.length > 0)
    throw new StoreMaintenanceError(
      `the two stores differ in ${table} (${lost.join(', ')}): use one build for both.`,
    )
}

async function* pagesOf(source: CopySource, table: string): AsyncGenerator<readonly CopiedRow[]> {
  for await (const page of source.pages(table)) {
    if (table === 'meta') yield page.filter(({ name }) => !OWN_META.includes(String(name)))
    else if (table !== 'subscription') yield page
    else
      yield page.map(({ sentDays, sentLessons, ...row }) => ({
        ...row,
        // A list that is not one, which somebody damaged, is copied as it is.
        sentDays: listOr(sentDays ?? 'null'),
        sentLessons: listOr(sentLessons),
      }))
  }
}

/** A flat list, which SQLite keeps in a text; any other value stays what it is. */
function listOr(value: unknown): unknown {
  try {
    const list: unknown = typeof value === 'string' ? JSON.parse(value) : value
    return Array.isArray(list) && list.every((one) => typeof one !== 'object') ? list : value
  } catch {
    return value
  }
}

/** A row that the other store does not take, such as one that breaks a constraint, is no fault of that store. */
function refused(table: string, error: unknown): unknown {
  const code = codeOf(error instanceof Error && error.cause ? error.cause : error)
  const isRow =
    /^(?:22|23|54)|^SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG)/.test(code) || error instanceof RangeError
  return isRow
    ? new StoreMaintenanceError(
        `a row of ${table} does not fit the other store (${code || 'it is too large'}): platformctl db verify names rows that are wrong; nothing was copied.`,
        { cause: error },
      )
    : error
}
