import type { AuditEntry } from '../../audit.ts'
import type { Secret } from '../../secret.ts'
import { ANCHOR, covers, type JournalEntry, readJournal } from '../journal.ts'
import { StoreMaintenanceError } from '../maintenance.ts'
import { POSTGRES_STEPS } from '../migrations.ts'
import { type Replayed, replay } from '../replay.ts'
import { restored } from '../restored.ts'
import { StoreOpenError } from '../store.ts'
import { createPool, type Pool, UNLIMITED } from './connection.ts'
import { sentence } from './faults.ts'
import { journalFromRows, metaOf } from './journal.ts'
import { migrate, schemaVersion } from './migrate.ts'
import { assertUnused } from './source.ts'
import { postgresSql } from './sql.ts'

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
  try {
    if ((await schemaVersion(pool)) === 0)
      throw new StoreMaintenanceError('the database holds no store: restore the dump into it first.')
    await assertUnused(pool, 'nothing was changed')
    await migrate(pool, POSTGRES_STEPS)
    const replaced =
      from === undefined
        ? []
        : await entriesOfReplaced(pool, {
            other: other ?? pool,
            schema: 'schema' in from ? from.schema : 'platformctl',
            now,
          })
    const named = journal === undefined ? undefined : readJournal(journal)
    if (journal !== undefined && named === undefined)
      throw new StoreMaintenanceError(`there is no file ${journal}: name a journal of the replaced store.`)
    const restoredTo = await lastChange(pool)
    const isCovered = from !== undefined || covers(named, await metaOf(pool, 'platformctl', ANCHOR))
    if (!isCovered && !withoutJournal) throw uncovered(restoredTo, journal)
    const entries = [...(named ?? []), ...replaced]
    // Nothing is claimed during a restore, so no lease is measured.
    const store = restored(postgresSql(pool, () => 0))
    const replayed = await replay(store, entries)
    if (audit) await store.audit.record(audit)
    return {
      replayed,
      restoredTo,
      coveredTo: isCovered ? entries.reduce((last, { at }) => Math.max(last, at), restoredTo) : undefined,
    }
  } catch (error) {
    if (error instanceof StoreMaintenanceError || error instanceof StoreOpenError) throw error
    throw new StoreOpenError(sentence(error), { cause: error })
  } finally {
    await other?.end()
    await pool.end()
  }
}

const open = (url: Secret) => createPool({ url, size: 1, limitMs: UNLIMITED, onIdleFault: () => {} })

/** What the rows of the replaced store say, once it is known to be the same store. */
async function entriesOfReplaced(
  restored: Pool,
  { other, schema, now }: { readonly other: Pool; readonly schema: string; readonly now: number },
): Promise<readonly JournalEntry[]> {
  if (!/^[a-z_]\w{0,62}$/.test(schema))
    throw new StoreMaintenanceError(
      `${schema} is neither the address of a database nor the name of a schema: --from postgres://… or --from platformctl_before.`,
    )
  const { rows } = await other.query<{ name: string | null }>('SELECT to_regclass($1)::text AS name', [
    `${schema}.subscription_event`,
  ])
  if (rows[0]?.name == null)
    throw new StoreMaintenanceError(
      `the replaced store was not found in the schema ${schema}, or an older build made it: check --from, or run platformctl db migrate on it.`,
    )
  // Each store makes this key once, and its dumps keep it.
  const [mine, its] = [
    await metaOf(restored, 'platformctl', 'address_key'),
    await metaOf(other, schema, 'address_key'),
  ]
  if (mine !== its)
    throw new StoreMaintenanceError('--from names another store, not the one that this dump was made of.')
  return journalFromRows(other, schema, now)
}

async function lastChange(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ at: number | null }>(
    `SELECT greatest((SELECT max(created_at) FROM platformctl.subscription), (SELECT max(confirmed_at) FROM platformctl.subscription),
       (SELECT max(unsubscribed_at) FROM platformctl.subscription), (SELECT max(at) FROM platformctl.subscription_event),
       (SELECT max(at) FROM platformctl.audit)) AS at`,
  )
  return rows[0]?.at ?? 0
}

function uncovered(restoredTo: number, journal: string | undefined): StoreMaintenanceError {
  const why =
    journal === undefined
      ? 'neither --from nor --journal was given'
      : `${journal} is not the journal of this store`
  return new StoreMaintenanceError(
    `the restored database ends at ${new Date(restoredTo).toISOString()}, and ${why}: people who unsubscribed, bounced or were erased since then would be mailed again. Name the replaced database or schema with --from, or a journal with --journal, or accept that with --without-journal; nothing was changed.`,
  )
}
