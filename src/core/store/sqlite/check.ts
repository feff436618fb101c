import Database from 'better-sqlite3'
import { refusal } from '../errors.ts'
import { checkRows, type StoreContent, verifyResult } from '../maintenance.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { createTables } from './analytics.ts'
import { type SqliteDatabase, schemaVersion } from './connection.ts'
import { performer } from './sql.ts'

/** SQLite's own integrity check, foreign keys, and (`holds`) the invariants of the course. Changes nothing. */
export function verifyDatabase(database: SqliteDatabase, holds: StoreContent, now: number) {
  const faults: string[] = []
  let checked = 0
  let damaged = false
  // A pragma's columns are SQLite's.
  const ask = <Column extends string>(pragma: string) => database.pragma(pragma) as Record<Column, string>[]
  try {
    for (const { integrity_check: said } of ask<'integrity_check'>('integrity_check(100)'))
      if (said !== 'ok') faults.push(`integrity: ${said}`)
    damaged = faults.length > 0
    for (const { table, parent } of ask<'table' | 'parent'>('foreign_key_check'))
      faults.push(`${table}: a row refers to a ${parent} that does not exist`)
    if (!damaged && holds === 'course') {
      const found = performer(database)(checkRows(now))
      faults.push(...found.faults)
      checked = found.checked
    }
  } catch (error) {
    // A page that cannot be read ends the check; that is its result.
    damaged = true
    faults.push(`integrity: ${error instanceof Error ? error.message : 'it cannot be read'}`)
  }
  return verifyResult({ checked, faults }, damaged)
}

type SchemaObject = Readonly<Record<'type' | 'name' | 'tbl_name', string>> & { readonly sql: string | null }

/**
 * The first object of a database that no build of ours makes, as `the view subscription`. Reads the list of objects and
 * nothing else: a foreign view or constraint can take for ever, and a foreign trigger would go on working in the store.
 */
export function foreignObject(database: SqliteDatabase, holds: StoreContent): string | undefined {
  database.pragma('trusted_schema = OFF')
  const found = objects(database)
  const ours = expectedObjects(database, holds, found)
  const foreign = lacking(ours, found)
  if (foreign) return `the ${foreign.type} ${foreign.name}`
  const missing = holds === 'course' ? lacking(found, ours) : undefined
  return missing && `no ${missing.type} ${missing.name}`
}

/** The first of some objects that the others lack. Comments and line breaks may change between builds. */
function lacking(others: readonly SchemaObject[], some: readonly SchemaObject[]): SchemaObject | undefined {
  const said = ({ sql, ...one }: SchemaObject) =>
    JSON.stringify({ ...one, sql: sql?.replace(/--[^\n]*/g, '').replace(/\s+/g, ' ') })
  const known = new Set(others.map(said))
  return some.find((one) => !known.has(said(one)))
}

/** Refuses a file that a build of ours did not make as it is. `done` says what is not done with it. */
export function assertMadeHere(
  database: SqliteDatabase,
  { file, holds, done }: { readonly file: string; readonly holds: StoreContent; readonly done: string },
): void {
  const version = schemaVersion(database)
  // Before a row is read: a newer schema cannot be distinguished from another program's.
  if (holds === 'course' && version > SQLITE_STEPS.length)
    throw refusal`${file} was written by a newer platformctl (schema ${version}, this build knows ${SQLITE_STEPS.length}): use that version.`
  const foreign = foreignObject(database, holds)
  if (foreign !== undefined)
    throw refusal`${file} was not ${done}: it has ${foreign}${foreign.startsWith('no ') ? '' : ', which no platformctl made'}. Take a file that you trust, or correct that in a copy of it first.`
}

/** At most more than any schema of ours has. */
const objects = (database: SqliteDatabase): readonly SchemaObject[] =>
  database.prepare<[], SchemaObject>('SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 10000').all()

/** What the store has in each version that was asked for. */
const ofVersion = new Map<number, readonly SchemaObject[]>()

function expectedObjects(database: SqliteDatabase, holds: StoreContent, found: readonly SchemaObject[]) {
  const version = schemaVersion(database)
  const known = holds === 'course' && ofVersion.get(version)
  if (known) return known
  const reference = new Database(':memory:')
  try {
    if (holds === 'analytics') for (const table of analyticsTables(found)) createTables(reference, table)
    else reference.exec(SQLITE_STEPS.slice(0, version).join(';\n'))
    if (holds === 'course') ofVersion.set(version, objects(reference))
    return objects(reference)
  } finally {
    reference.close()
  }
}

/** The names that operators gave the tables of events, from the list of objects; the form of a name is the contract's. */
function analyticsTables(found: readonly SchemaObject[]): readonly string[] {
  const names = found.flatMap(({ type, name }) =>
    type === 'table' && /^[a-z_]\w{0,62}$/i.test(name) && !/^sqlite_/i.test(name) ? [name] : [],
  )
  return names.filter((name) => !(name.endsWith('_bytes') && names.includes(name.slice(0, -'_bytes'.length))))
}
