import { type StoredSubscription, violations } from '../course/invariants.ts'
import { listAudit } from './audit.ts'
import { stepsFrom, type VerifyResult } from './maintenance.ts'
import { getTime } from './meta.ts'
import { listPlans, listTexts, planFaults } from './plans.ts'
import { assertReadable, hasTable, readSchema, type Schema } from './schema.ts'
import { all, type Dialect, first, type Sql, type Steps } from './sql.ts'

const MOST_FAULTS = 100
/** Rows are read in pages, because one long read would keep the write-ahead log from shrinking. */
const PAGE = 500

export const TEXTS = {
  page: `SELECT id, state, enrolment, confirmed_at, unsubscribed_at, CAST(sent_days AS text) AS sent_days, lessons,
      due_at, last_sent_at, next_attempt_at, problem_kind AS problem
    FROM subscription WHERE id > @after ORDER BY id LIMIT ${PAGE}`,
}

interface Checked {
  readonly checked: number
  readonly faults: readonly string[]
}

/** The invariants of the course, row by row. */
export function* checkRows(dialect: Dialect, now: number): Steps<Checked> {
  const faults: string[] = []
  let checked = 0
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly StoredSubscription[] = yield* all<StoredSubscription>(TEXTS.page, { after })
    for (const row of rows)
      faults.push(...violations(row, now).map((found) => `subscription ${row.id}: ${found}`))
    checked += rows.length
    after = rows.length < PAGE ? undefined : rows.at(-1)?.id
  }
  // A store of an earlier build has no texts to check.
  if (yield* hasTable(dialect, 'course_text'))
    faults.push(...planFaults(yield* listPlans(), yield* listTexts()))
  return { checked, faults }
}

/** Rows of each table, by name. */
export function* countRows({ tables, named }: Dialect): Steps<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of yield* all<{ name: string }>(tables))
    counts[name] =
      (yield* first<{ count: number }>(`SELECT count(*) AS count FROM ${named(name)}`))?.count ?? 0
  return counts
}

/** What an operator does alike with both stores. The steps of `sql` say what is wrong with the store. */
export function upkeep({ dialect, read }: Sql, schema: Schema, migrate: () => Promise<void>) {
  const versionNow = () => read(() => dialect.version())
  return {
    status: () =>
      read(function* () {
        return {
          ...(yield* readSchema(dialect, schema.steps.length)),
          counts: yield* countRows(dialect),
          verifiedAt: (yield* hasTable(dialect, 'meta')) ? yield* getTime(VERIFIED_AT) : undefined,
        }
      }),
    pending: async () => stepsFrom(schema.steps, await read(() => assertReadable(dialect, schema))),
    async migrate() {
      const from = await versionNow()
      await migrate()
      return { from, to: await versionNow() }
    },
    // None from a store that is older than the log.
    audit: (limit: number) =>
      read(function* () {
        return (yield* hasTable(dialect, 'audit')) ? yield* listAudit(limit) : []
      }),
  }
}

/** The name in `meta` of the time when a check last passed. */
export const VERIFIED_AT = 'verified_at'

export const verifyResult = ({ checked, faults }: Checked, damaged: boolean): VerifyResult => ({
  ok: faults.length === 0,
  damaged,
  checked,
  faults: faults.slice(0, MOST_FAULTS),
  moreFaults: Math.max(0, faults.length - MOST_FAULTS),
})
