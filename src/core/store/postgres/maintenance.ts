import { setTimeout as sleep } from 'node:timers/promises'
import { postgresLocation } from '../../env/values.ts'
import { codeError, codeOf } from '../../errors.ts'
import type { Secret } from '../../secret.ts'
import { type CopiedRow, type CopySource, compareRows, copyRows, PAGE } from '../copy.ts'
import { departures, departuresOf, exportAnchor, storeKey } from '../departures.ts'
import { cannotOpen, refusal, StoreMaintenanceError } from '../errors.ts'
import { assertRead, readNamedJournal, type SinceOptions, uncovered } from '../journal.ts'
import { checkRows, type StoreMaintenance, upkeep, VERIFIED_AT, verifyResult } from '../maintenance.ts'
import { POSTGRES_STEPS, TABLES } from '../migrations.ts'
import { departed, replay, takeTold, toldBy } from '../replay.ts'
import { assertReadable, metaIn, readSchema, schemaVersion } from '../schema.ts'
import { addAudit, first, OWNER, rowReader, type Sql, scalar, setMeta } from '../sql.ts'
import { createPool, type Queryable, STATEMENT_MS, transaction, withPool } from './connection.ts'
import { faultOf, MARK, NEXT_NUMBER, OF_ANOTHER, tellsAll } from './exports.ts'
import { explained, LOCK_NOT_AVAILABLE, PLACE, READ_ONLY } from './faults.ts'
import { assertThere, migrate, performer, plainSql, SIZE } from './sql.ts'

/** An operator waits longer than a request does: rows are counted one by one. */
const LONGEST_LOOK_MS = 10 * 60_000

export function maintenanceOfPostgres(url: Secret): StoreMaintenance {
  const pool = createPool({ url, size: 1, limitMs: LONGEST_LOOK_MS })
  const sql = plainSql(pool)
  const schema = { steps: POSTGRES_STEPS, place: PLACE }
  const place = async () => {
    const bytes = (await sql.one(scalar<number>(SIZE))) ?? 0
    return { kind: 'postgres', location: postgresLocation(url.reveal()), bytes, walBytes: undefined } as const
  }
  return {
    ...upkeep(sql, schema, { place, migrate: () => migrate(pool) }),
    verify: (now) =>
      sql.read(function* () {
        yield* assertReadable(schema)
        yield* assertThere()
        // That pages and references are sound is the server's own to watch.
        const result = verifyResult(yield* checkRows(now), false)
        if (result.ok) yield* setMeta(VERIFIED_AT, String(now))
        return result
      }),
    backup: async () => {
      throw refusal`a PostgreSQL store is backed up by its own tools: pg_dump --format=custom --schema=platformctl, and pg_restore.`
    },
    async journal(at) {
      await sql.read(assertThere)
      // Committed before the rest is read: a dump without it is older than what is read.
      const number = await sql.one(scalar<number>(NEXT_NUMBER))
      const id = await sql.write(exportAnchor)
      return [...(await sql.read(departures)), { what: 'anchor' as const, at, id, number }]
    },
    close: () => pool.end(),
  }
}

export const postgresSchema = (url: Secret) =>
  withPool(url, (pool) => plainSql(pool).read(writableSchema), STATEMENT_MS)

function* writableSchema() {
  const { version, latest } = yield* readSchema(POSTGRES_STEPS.length)
  if ((yield* scalar('SHOW transaction_read_only')) !== 'off') throw codeError(READ_ONLY)
  return version === 0 ? undefined : { version, latest, owner: yield* metaIn(OWNER) }
}

/** Tells tables apart, from wherever they are reached; no row if there is none of this name. */
const PLACE_OF = `SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), current_database(), CAST(to_regclass(@table) AS oid)) AS place
    WHERE to_regclass(@table) IS NOT NULL`
const UNDEFINED = ['42P01', '42703']
const RUNS = `SELECT id FROM audit WHERE action = 'restore' AND details = @details`
const LAST_CHANGE = `SELECT greatest((SELECT greatest(max(created_at), max(coalesce(consent_at, confirmed_at)), max(unsubscribed_at)) FROM subscription),
    (SELECT max(at) FROM subscription_event), (SELECT max(at) FROM audit WHERE action <> 'restore'), 0)`

export interface AfterRestoreOptions extends SinceOptions {
  /** The replaced store: the address of its database, or the name of its schema in the restored one. */
  readonly from?: Secret | { readonly schema: string } | undefined
}

/** Does again in a restored database what people and operators ended since; gives up to when it, and all, is known. */
export const afterPostgresRestore = (url: Secret, options: AfterRestoreOptions) =>
  withPool(url, async (pool) => {
    const sql = plainSql(pool)
    if ((await sql.read(schemaVersion)) === 0)
      throw cannotOpen`The database holds no store: restore the dump into it first.`
    await assertUnused(pool, 'nothing was changed')
    await migrate(pool)
    if (options.from === undefined || 'schema' in options.from) return catchUp(sql, sql, options)
    return withPool(options.from, (other) => catchUp(sql, plainSql(other), options))
  })

async function catchUp(sql: Sql, other: Sql, options: AfterRestoreOptions) {
  const { from, journal, withoutJournal, now, audit } = options
  const schema = from && 'schema' in from ? from.schema : 'platformctl'
  const replaced = from && (await explained(() => entriesOfReplaced(sql, other, schema), '--from'))
  const named = readNamedJournal(journal) ?? []
  const restoredTo = (await sql.one(scalar<number>(LAST_CHANGE))) ?? 0
  const fault = await sql.read(() => faultOf(named, restoredTo, now))
  const isCovered = replaced ? !journal || fault !== OF_ANOTHER : fault === undefined
  const state = `the restored database ends at ${new Date(restoredTo).toISOString()}`
  if (!isCovered && !withoutJournal) {
    const given = journal && `${journal} ${fault}`
    const fix = 'Name the replaced database or schema with --from, or a journal with --journal'
    throw uncovered(state, given ?? 'neither --from nor --journal was given', fix)
  }
  if (replaced === undefined && !withoutJournal) assertRead(named, undefined, state)
  // Once: what happened since an earlier run is newer.
  if (replaced && (await sql.read(() => tellsAll(replaced, RUNS, audit))))
    await explained(async () => {
      const told = await other.read(() => toldBy(restoredTo, `${schema}.`))
      await sql.write(() => takeTold(told))
    }, '--from').catch((error: unknown) => {
      // A build that has other tables, or other columns, made the replaced store.
      if (!(error instanceof Error && UNDEFINED.includes(codeOf(error.cause)))) throw error
    })
  const entries = [...named, ...(replaced ?? [])]
  const replayed = await replay(sql, entries, await sql.one(departed()))
  await sql.one(scalar(MARK))
  await sql.write(() => addAudit(audit))
  const repeats = replaced && (await explained(() => countRepeats(sql, other, schema), '--from'))
  const coveredTo = entries.reduce((last, { at }) => Math.max(last, at), Math.max(restoredTo, from ? now : 0))
  return { replayed, restoredTo, repeats, coveredTo: isCovered ? coveredTo : undefined }
}

/** Lessons that the replaced store sent and the restored one will send again. */
async function countRepeats(restored: Sql, replaced: Sql, schema: string): Promise<number> {
  let repeats = 0
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: ProgressPage | undefined = await restored.one(first<ProgressPage>(PROGRESS, { after }))
    repeats += (await replaced.one(scalar<number>(repeatsIn(schema), { rows: page?.rows ?? '[]' }))) ?? 0
    after = page?.last
  }
  return repeats
}

type ProgressPage = { readonly last: string | undefined; readonly rows: string | undefined }
const PROGRESS = `SELECT max(id) AS last, CAST(json_agg(one) AS text) AS rows FROM (
    SELECT id, enrolment, confirmed_at, sent_days FROM subscription
    WHERE state = 'confirmed' AND id > @after ORDER BY id LIMIT ${PAGE}) AS one`
const repeatsIn = (schema: string) => `SELECT count(*) AS repeats
  FROM jsonb_to_recordset(CAST(@rows AS jsonb)) AS s (id text, enrolment bigint, confirmed_at bigint, sent_days jsonb)
    JOIN ${schema}.subscription r USING (id, enrolment, confirmed_at), jsonb_array_elements(r.sent_days) AS lesson
  WHERE NOT s.sent_days @> lesson`

/** What the rows of the replaced store say, once it is known to be the same store. */
async function entriesOfReplaced(restored: Sql, other: Sql, schema: string) {
  if (!/^[a-z_]\w{0,62}$/.test(schema))
    throw refusal`--from names neither the address of a database nor a schema: --from postgres://… or --from platformctl_before.`
  const placeIn = ({ one }: Sql, name: string) =>
    one(scalar<string>(PLACE_OF, { table: `${name}.subscription_event` }))
  const place = await placeIn(other, schema)
  if (place === undefined)
    throw refusal`the replaced store was not found in the schema ${schema}, or an older build made it: check --from, or run platformctl db migrate on it.`
  if (place === (await placeIn(restored, 'platformctl')))
    throw refusal`--from names the restored store itself, which knows nothing of what happened since: name the one that it replaced.`
  await assertOurs(other.one, schema, 'nothing was taken from the replaced store')
  const key = await restored.one(storeKey())
  const found = await other.read(() => departuresOf(key, `${schema}.`))
  if (found === undefined) throw refusal`--from names another store, not the one that this dump was made of.`
  return found
}

/** A connection that was closed on this side is still listed by the server for a moment. */
const LOOKS = 10
const LOOK_EVERY_MS = 200
const inUse = (otherwise: string) =>
  `the database is in use by another process: stop the daemon and everything else that has it open; ${otherwise}.`
/** STORE_URL may name its connections, and so those of this command. */
const OTHERS = `SELECT count(*) AS others FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
    AND (application_name IN ('platformctl', current_setting('application_name')) OR pg_backend_pid() = ANY (pg_blocking_pids(pid)))`
/** What reads as a table and is none, or has rows that depend on who reads it. */
const FOREIGN = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = @schema AND c.relname IN (SELECT value FROM {each @tables})
    AND (c.relkind <> 'r' OR c.relhasrules OR c.relrowsecurity) LIMIT 1`

async function assertOurs(one: Sql['one'], schema: string, otherwise: string): Promise<void> {
  const foreign = await one(scalar<string>(FOREIGN, { schema, tables: TABLES }))
  if (foreign === undefined) return
  throw refusal`${otherwise}: ${schema}.${foreign} is not the table that platformctl made.`
}

/** Fills an empty store on a server from another one, in one transaction: all of it is there afterwards, or nothing. */
export const copyIntoPostgres = (source: CopySource, url: Secret) =>
  withPool(url, async (pool) => {
    const run = performer()
    const copy = (on: Queryable) => copyRows(source, (steps) => run(on, steps))
    return explained(() => migrate(pool).then(() => transaction(pool, copy)), '--to')
  })

/** `name`: what the operator named the server with. */
export const compareWithPostgres = (source: CopySource, url: Secret, name: string) =>
  withPool(url, (pool) => {
    const { one } = plainSql(pool)
    return compareRows(source, (steps) => explained(() => one(steps), name), POSTGRES_STEPS.length)
  })

/** Lends a PostgreSQL store to copy from: brought up to date, and held against writers. */
export const withPostgresSource = <T>(url: Secret, work: (source: CopySource) => Promise<T>): Promise<T> =>
  withPool(url, async (pool) => {
    const { one, read } = plainSql(pool)
    await read(assertThere)
    await assertOurs(one, 'platformctl', 'the database was not copied')
    await migrate(pool)
    await assertUnused(pool, 'nothing was copied')
    return transaction(pool, async (on) => {
      await explained(() =>
        on.query(LOCK_ALL).catch((cause: unknown) => {
          if (codeOf(cause) !== LOCK_NOT_AVAILABLE) throw cause
          throw new StoreMaintenanceError(inUse('nothing was copied'), { cause })
        }),
      )
      const source = sourceOn(on)
      const result = await work(source)
      await source.assertUnchanged()
      return result
    })
  })

const LOCK_ALL = `LOCK TABLE ${TABLES.map((table) => `platformctl.${table}`).join(', ')} IN SHARE MODE NOWAIT`

/** Faults are explained here: the caller would report them as faults of the other store. */
function sourceOn(on: Queryable): CopySource {
  const query = (text: string) => explained(() => on.query<CopiedRow>(text))
  return {
    async *rows(table) {
      const read = rowReader()
      await query(`DECLARE copied NO SCROLL CURSOR FOR SELECT * FROM platformctl.${table}`)
      for (let full = true; full; ) {
        const { rows } = await query(`FETCH ${PAGE} FROM copied`)
        if (rows.length > 0) yield rows.map(read)
        full = rows.length === PAGE
      }
      await query('CLOSE copied')
    },
    assertUnchanged: () => assertUnused(on, 'then copy again to an empty store'),
  }
}

/** Fails if a daemon uses the store, or a process waits for its locks; others behind a connection pooler cannot be seen. */
async function assertUnused(on: Queryable, otherwise: string): Promise<void> {
  const others = () => explained(() => performer()(on, scalar<number>(OTHERS)))
  for (let look = 1; ((await others()) ?? 0) > 0; look += 1) {
    if (look === LOOKS) throw new StoreMaintenanceError(inUse(otherwise))
    await sleep(LOOK_EVERY_MS)
    // A transaction goes on seeing the sessions of its first look.
    await on.query('SELECT pg_stat_clear_snapshot()')
  }
}
