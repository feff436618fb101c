import { guarded, type Pool, type ResultRow } from './connection.ts'

/** Rows that one step of a deletion takes: each step holds its rows only briefly. */
export const ROWS_A_STEP = 500

type Values = readonly unknown[]

/**
 * Runs single statements on a pool. Each function returns the part of the result that its caller needs, or
 * rejects with `store_unavailable`.
 */
export function statements(pool: Pool) {
  return {
    /** Each row, as `read` reads it. */
    all: <Row extends ResultRow, One>(read: (row: Row) => One, text: string, values?: Values) =>
      guarded(async () => (await pool.query<Row>(text, values)).rows.map((row) => read(row))),
    /** The first row, as `read` reads it; undefined without one. */
    first: <Row extends ResultRow, One>(read: (row: Row) => One, text: string, values?: Values) =>
      guarded(async () => {
        const [row] = (await pool.query<Row>(text, values)).rows
        return row && read(row)
      }),
    /** Runs a statement and returns nothing. */
    run: (text: string, values?: Values) => guarded(async () => void (await pool.query(text, values))),
    /** True if the statement found or changed exactly one row. */
    hits: (text: string, values?: Values) =>
      guarded(async () => (await pool.query(text, values)).rowCount === 1),
    /** Repeats a deletion of at most `ROWS_A_STEP` rows until it finds fewer. */
    async inSteps(text: string, values: Values) {
      const step = () => guarded(() => pool.query(text, values))
      while ((await step()).rowCount === ROWS_A_STEP);
    },
  }
}
