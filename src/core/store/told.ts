import { type CopiedRow, PAGE } from './copy.ts'
import { all, run, type Steps, snakeCase } from './sql.ts'

/** What was told and what waits to leave: in an older state it would be said twice, or its end never. */
const TABLES = [
  'incident',
  'alert_message',
  'status_update',
  'announcement',
  'silence',
  'notice',
  'heartbeat',
  'message',
] as const

type Told = Readonly<Record<(typeof TABLES)[number], readonly CopiedRow[]>>

/** `schema`: with a dot, where it is another than the store's. */
export function* toldBy(schema = ''): Steps<Told> {
  const told: Partial<Record<keyof Told, readonly CopiedRow[]>> = {}
  for (const table of TABLES) told[table] = yield* all<CopiedRow>(`SELECT * FROM ${schema}${table}`)
  // Each table was read.
  return told as Told
}

/** Puts what a replaced store told, and what waits there, in the place of the restored store's. */
export function* takeTold(told: Told): Steps<void> {
  const isConfirmation = ({ stream }: CopiedRow) => stream === 'confirmation'
  // A link works only in the store that has its hash: of confirmations those go that have left since.
  const ids = told.message.filter(isConfirmation).map(({ id }) => id)
  yield* run(
    `DELETE FROM message WHERE stream <> 'confirmation' OR id NOT IN (SELECT value FROM {each @ids})`,
    { ids },
  )
  for (const table of TABLES) {
    const rows = table === 'message' ? told.message.filter((row) => !isConfirmation(row)) : told[table]
    if (table !== 'message') yield* run(`DELETE FROM ${table}`)
    const columns = Object.keys(rows[0] ?? {})
      .map(snakeCase)
      .join(', ')
    const known =
      table === 'message'
        ? ' WHERE r.subscription IS NULL OR r.subscription IN (SELECT id FROM subscription)'
        : ''
    for (let start = 0; start < rows.length; start += PAGE)
      yield* run(
        `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM {rows ${table}: ${columns}} AS r${known}`,
        { rows: rows.slice(start, start + PAGE) },
      )
  }
}
