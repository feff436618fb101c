import { NOTICES } from '../course/definition.ts'
import { type StoredSubscription, violations } from '../course/invariants.ts'
import type { RecordedStore } from '../daemon-record.ts'
import type { JournalEntry } from './journal.ts'
import { listPlans, listTexts, planFaults } from './plans.ts'
import { assertReadable, hasTable, readSchema, type Schema, schemaVersion } from './schema.ts'
import { all, getTime, listAudit, quoted, ROWS_A_STEP, type Sql, type Steps, scalar } from './sql.ts'
import { COURSES_FROM } from './subscriptions.ts'

/** The names in `meta` of the times of the last backup, and of the last check that passed. */
export const BACKUP_AT = 'backup_at'
export const VERIFIED_AT = 'verified_at'

/** Content of a file: the course and all that belongs to it, or the visitors' events. */
export type StoreContent = 'course' | 'analytics'

interface Place extends RecordedStore {
  readonly bytes: number
  /** Bytes in the write-ahead log that are not in the file yet; undefined for a store without such a log. */
  readonly walBytes: number | undefined
}

export type BackupResult = { file: string; bytes: number; version: number; counts: Record<string, number> }

/** An operator's maintenance of a store: its state, migrations, checks and backups. */
export interface StoreMaintenance extends ReturnType<typeof upkeep> {
  /** The adapter's own integrity check, and the invariants of the course; records the time when all hold. */
  verify(now: number): Promise<ReturnType<typeof verifyResult>>
  /** A consistent copy, also under write load, whole or not there at all; encrypted for these public keys of age, if any. */
  backup(file: string, now: number, options?: { recipients: readonly string[] }): Promise<BackupResult>
  /** Who left the store, to be kept apart from it: a restore of an older state needs this. */
  journal(now: number): Promise<readonly JournalEntry[]>
  close(): Promise<void>
}

export type AnalyticsMaintenance = Pick<StoreMaintenance, 'verify' | 'backup' | 'close'>

/** The statements of a step; one within a trigger ends in the middle of a line. */
export const statementsOf = (sql: string): readonly string[] =>
  sql.split(/;[^\S\n]*(?:\n|$)/).flatMap((statement) => statement.trim() || [])

const MOST_FAULTS = 100

export const TEXTS = {
  // Who is subscribed to incidents waits for no lesson, whatever an older build planned.
  page: `SELECT id, state, enrolment, confirmed_at, unsubscribed_at, CAST(sent_days AS text) AS sent_days,
      CASE WHEN course = '${NOTICES}' THEN {length sent_days} ELSE lessons END AS lessons, due_at, last_sent_at, next_attempt_at, problem_kind AS problem,
      EXISTS (SELECT 1 FROM subscription_event e WHERE e.subscription = s.id AND e.enrolment = s.enrolment
        AND e.kind = 'confirmed' AND e.source = 'import') AS is_imported
    FROM subscription s WHERE id > @after ORDER BY id LIMIT ${ROWS_A_STEP}`,
}

type Checked = { readonly checked: number; readonly faults: readonly string[] }

/** The invariants of the course, a page of rows at a time: one long read would keep the write-ahead log from shrinking. */
export function* checkRows(now: number): Steps<Checked> {
  const faults: string[] = []
  let checked = 0
  // What an earlier build made is looked at once it is migrated, and what has no schema has no rows.
  if ((yield* schemaVersion()) < COURSES_FROM) return { checked, faults }
  for (let after: string | undefined = ''; after !== undefined; ) {
    const rows: readonly StoredSubscription[] = yield* all<StoredSubscription>(TEXTS.page, { after })
    for (const row of rows)
      faults.push(...violations(row, now).map((found) => `subscription ${row.id}: ${found}`))
    checked += rows.length
    after = rows.length < ROWS_A_STEP ? undefined : rows.at(-1)?.id
  }
  // A store of an earlier build has no texts to check.
  if (yield* hasTable('course_text')) faults.push(...planFaults(yield* listPlans(), yield* listTexts()))
  return { checked, faults }
}

export function* countRows(): Steps<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name } of yield* all<{ name: string }>('{tables}'))
    counts[name] = (yield* scalar<number>(`SELECT count(*) FROM {schema}.${quoted(name)}`)) ?? 0
  return counts
}

type Parts = { readonly place: () => Promise<Place>; readonly migrate: () => Promise<void> }

/** What an operator does alike with both stores. The steps of `sql` say what is wrong with the store. */
export const upkeep = ({ read }: Sql, schema: Schema, { place, migrate }: Parts) => ({
  status: async () => ({
    ...(await read(function* () {
      return {
        ...(yield* readSchema(schema.steps.length)),
        counts: yield* countRows(),
        /** When `verify` last passed, in UTC milliseconds. */
        verifiedAt: (yield* hasTable('meta')) ? yield* getTime(VERIFIED_AT) : undefined,
      }
    })),
    ...(await place()),
  }),
  /** The steps that `migrate` would run, with the beginnings of their statements (`CREATE TABLE subscription`). */
  async pending() {
    const from = await read(() => assertReadable(schema))
    return schema.steps.slice(from).map((step, index) => ({
      version: from + index + 1,
      statements: statementsOf(step).map((statement) => statement.split(/\s*[\n(]/)[0] ?? ''),
    }))
  },
  /** Runs them, each whole or absent. Refused while another migration holds the lock. */
  async migrate() {
    const from = await read(schemaVersion)
    await migrate()
    return { from, to: await read(schemaVersion) }
  },
  /** Operators' changes, newest first; none from a store that is older than the log. */
  audit: (limit: number) =>
    read(function* () {
      return (yield* hasTable('audit')) ? yield* listAudit(limit) : []
    }),
})

/** What a check found. `damaged`: the file itself is corrupt, and not at most some rows, perhaps edited by hand. */
export const verifyResult = ({ checked, faults }: Checked, damaged: boolean) => ({
  ok: faults.length === 0,
  damaged,
  checked,
  /** Each names the row at fault. */
  faults: faults.slice(0, MOST_FAULTS),
  moreFaults: Math.max(0, faults.length - MOST_FAULTS),
})
