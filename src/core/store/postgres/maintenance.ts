import type { AuditEntry } from '../../audit.ts'
import { postgresLocation } from '../../env/values.ts'
import { codeOf } from '../../error-code.ts'
import type { Secret } from '../../secret.ts'
import { addAudit } from '../audit.ts'
import { anchorOf, departures, departuresOf, storeKey } from '../departures.ts'
import { StoreMaintenanceError, StoreOpenError } from '../errors.ts'
import { ANCHOR, assertRead, covers, type JournalEntry, readNamedJournal, uncovered } from '../journal.ts'
import { checkRows, type StoreMaintenance, upkeep, VERIFIED_AT, verifyResult } from '../maintenance.ts'
import { getMeta, OWNER, setMeta } from '../meta.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { type Replayed, replay } from '../replay.ts'
import { assertReadable, metaIn, readSchema, schemaVersion } from '../schema.ts'
import { all, first, type Sql } from '../sql.ts'
import type { StoreSchema } from '../store.ts'
import { takeTold, toldBy } from '../told.ts'
import { createPool, UNLIMITED } from './connection.ts'
import { assertUnused } from './copy.ts'
import { explained, PLACE, ReadOnlyServerError } from './faults.ts'
import { bytesOf, migrate, plainSql } from './sql.ts'

/** An operator waits longer than a request does: rows are counted one by one. */
const LONGEST_LOOK_MS = 10 * 60_000
/** Maintenance of a store on a PostgreSQL server. Opening it migrates nothing. */
export function maintenanceOfPostgres(url: Secret): StoreMaintenance {
  const pool = createPool({ url, size: 1, limitMs: LONGEST_LOOK_MS })
  const sql = plainSql(pool)
  const schema = { steps: POSTGRES_STEPS, place: PLACE }
  const alike = upkeep(sql, schema, () => migrate(pool))
  return {
    ...alike,
    status: async () => ({
      ...(await alike.status()),
      kind: 'postgres',
      location: postgresLocation(url.reveal()),
      bytes: await sql.one(bytesOf()),
      walBytes: undefined,
    }),
    verify: (now) =>
      sql.read(function* () {
        if ((yield* assertReadable(schema)) === 0) return verifyResult({ checked: 0, faults: [] }, false)
        // That pages and references are sound is the server's own to watch.
        const result = verifyResult(yield* checkRows(now), false)
        if (result.ok) yield* setMeta(VERIFIED_AT, String(now))
        return result
      }),
    backup: async () => {
      throw new StoreMaintenanceError(
        'a PostgreSQL store is backed up by its own tools: pg_dump --format=custom --schema=platformctl, and pg_restore.',
      )
    },
    journal: (at) =>
      sql.write(function* () {
        const id = yield* anchorOf()
        return [...(yield* departures()), { what: 'anchor' as const, at, id }]
      }),
    close: () => pool.end(),
  }
}

/** The schema of the store on a server, read and never changed; undefined when there is nothing of ours yet. */
export async function postgresSchema(url: Secret): Promise<StoreSchema | undefined> {
  const pool = createPool({ url, size: 1 })
  const { read } = plainSql(pool)
  return read(function* () {
    const { version, latest } = yield* readSchema(POSTGRES_STEPS.length)
    const server = yield* first<{ transactionReadOnly: string }>('SHOW transaction_read_only')
    if (server?.transactionReadOnly !== 'off') throw new ReadOnlyServerError('the server can only be read')
    return version === 0 ? undefined : { version, latest, owner: yield* metaIn(OWNER) }
  }).finally(() => pool.end())
}

/** Tells tables apart, from wherever they are reached; no row if there is none of this name. */
const PLACE_OF = `SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), current_database(), CAST(to_regclass(@table) AS oid)) AS place
    WHERE to_regclass(@table) IS NOT NULL`
const UNDEFINED = ['42P01', '42703']
const RUNS = `SELECT id FROM audit WHERE action = 'restore' AND details = @details`
const LAST_CHANGE = `SELECT greatest((SELECT max(created_at) FROM platformctl.subscription), (SELECT max(confirmed_at) FROM platformctl.subscription),
    (SELECT max(unsubscribed_at) FROM platformctl.subscription), (SELECT max(at) FROM platformctl.subscription_event),
    (SELECT max(at) FROM platformctl.audit), 0) AS at`

export interface AfterRestoreOptions {
  /** The replaced store: the address of its database, or the name of its schema in the restored one. */
  readonly from?: Secret | { readonly schema: string } | undefined
  /** A journal of the replaced store, as `db journal` wrote it. */
  readonly journal?: string | undefined
  readonly withoutJournal?: boolean | undefined
  readonly now: number
  readonly audit?: AuditEntry | undefined
}

export interface AfterRestoreResult {
  readonly replayed: Replayed
  /** The last change that the restored database has, in UTC milliseconds. */
  readonly restoredTo: number
  /** Up to when the journal has every change; undefined without one. */
  readonly coveredTo: number | undefined
}

/** Does again in a database that was restored to an older state what people and operators ended since. */
export async function afterPostgresRestore(
  url: Secret,
  { from, journal, withoutJournal = false, now, audit }: AfterRestoreOptions,
): Promise<AfterRestoreResult> {
  const pool = open(url)
  const other = from !== undefined && 'reveal' in from ? open(from) : undefined
  const sql = plainSql(pool)
  try {
    if ((await sql.read(schemaVersion)) === 0)
      throw new StoreMaintenanceError('the database holds no store: restore the dump into it first.')
    await assertUnused(pool, 'nothing was changed')
    await migrate(pool)
    const schema = from !== undefined && 'schema' in from ? from.schema : 'platformctl'
    const read = () => entriesOfReplaced(sql, plainSql(other ?? pool), schema)
    const replaced = from === undefined ? [] : await ofReplaced(read)
    const named = readNamedJournal(journal)
    const restoredTo = (await sql.one(first<{ at: number }>(LAST_CHANGE)))?.at ?? 0
    const anchor = await sql.one(getMeta(ANCHOR))
    const isCovered = from !== undefined || covers(named, anchor)
    const state = `the restored database ends at ${new Date(restoredTo).toISOString()}`
    if (!isCovered && !withoutJournal)
      throw uncovered(
        state,
        journal === undefined
          ? 'neither --from nor --journal was given'
          : `${journal} is not the journal of this store`,
        'Name the replaced database or schema with --from, or a journal with --journal',
      )
    if (from === undefined && !withoutJournal) assertRead(named ?? [], anchor, state)
    const entries = [...(named ?? []), ...replaced]
    const known = new Set(replaced.map((entry) => ('entry' in entry ? entry.entry.id : undefined)))
    const runs = await sql.one(all<{ id: string }>(RUNS, { details: audit?.details }))
    // Once: what happened since an earlier run is newer.
    if (from !== undefined && runs.every(({ id }) => known.has(id)))
      await ofReplaced(async () => {
        const told = await plainSql(other ?? pool).read(() => toldBy(`${schema}.`))
        await sql.write(() => takeTold(told))
      }).catch((error: unknown) => {
        // A build that has other tables, or other columns, made the replaced store.
        if (!(error instanceof Error && UNDEFINED.includes(codeOf(error.cause)))) throw error
      })
    const replayed = await replay(sql, entries)
    await sql.write(() => addAudit(audit))
    const coveredTo = entries.reduce(
      (last, { at }) => Math.max(last, at),
      Math.max(restoredTo, ...(from ? [now] : [])),
    )
    return { replayed, restoredTo, coveredTo: isCovered ? coveredTo : undefined }
  } finally {
    await other?.end()
    await pool.end()
  }
}

const open = (url: Secret) => createPool({ url, size: 1, limitMs: UNLIMITED })

/** A fault of the server named by --from is not one of STORE_URL. */
const ofReplaced = <T>(work: () => Promise<T>): Promise<T> =>
  explained(work).catch((error: unknown) => {
    throw error instanceof StoreOpenError
      ? new StoreOpenError(error.message.replaceAll('STORE_URL', '--from'), { cause: error.cause })
      : error
  })

/** What the rows of the replaced store say, once it is known to be the same store. */
async function entriesOfReplaced(
  restored: Sql,
  other: Sql,
  schema: string,
): Promise<readonly JournalEntry[]> {
  if (!/^[a-z_]\w{0,62}$/.test(schema))
    throw new StoreMaintenanceError(
      `${schema} is neither the address of a database nor the name of a schema: --from postgres://… or --from platformctl_before.`,
    )
  const placeIn = async (sql: Sql, name: string) =>
    (await sql.one(first<{ place: string }>(PLACE_OF, { table: `${name}.subscription_event` })))?.place
  const place = await placeIn(other, schema)
  if (place === undefined)
    throw new StoreMaintenanceError(
      `the replaced store was not found in the schema ${schema}, or an older build made it: check --from, or run platformctl db migrate on it.`,
    )
  if (place === (await placeIn(restored, 'platformctl')))
    throw new StoreMaintenanceError(
      '--from names the restored store itself, which knows nothing of what happened since: name the one that it replaced.',
    )
  const key = await restored.one(storeKey())
  const found = await other.read(() => departuresOf(key, `${schema}.`))
  if (found === undefined)
    throw new StoreMaintenanceError('--from names another store, not the one that this dump was made of.')
  return found
}
