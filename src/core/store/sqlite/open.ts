import { statSync } from 'node:fs'
import { codeError } from '../../error-code.ts'
import { PlatformError } from '../../errors.ts'
import { storeFault } from '../../store-fault.ts'
import { BACKUP_AT } from '../maintenance.ts'
import { getTime, ping } from '../meta.ts'
import { SQLITE_STEPS } from '../migrations.ts'
import { operations } from '../operations.ts'
import { readSchema } from '../schema.ts'
import type { OnLost, Store } from '../store.ts'
import { closeFile, guard, IN_MEMORY, UNAVAILABLE } from './connection.ts'
import { rowByRow } from './dispatch.ts'
import { isDiskFull } from './files.ts'
import { openJournal } from './journal.ts'
import { createPageCheck } from './page-check.ts'
import { openDatabase, sqliteSql } from './sql.ts'

/**
 * Milliseconds since the machine started: all processes that can share a file share this clock, and nobody can set it.
 * After a reboot it is behind every lease in the file, which is how those are known to be over.
 */
const sinceBoot = () => Number(process.hrtime.bigint() / 1_000_000n)

/** The store in an SQLite file, or (`file` undefined) in memory: the same code, but nothing outlives the process. */
export async function openSqlite(
  file: string | undefined,
  onLost?: OnLost,
  leaseClock: () => number = sinceBoot,
): Promise<Store> {
  const database = await openDatabase(file ?? IN_MEMORY, 'FULL', SQLITE_STEPS)
  // Damage met in daily work. Remembered, so that a later ping that happens to succeed cannot hide it.
  let damaged: unknown
  let full = false
  const guarded = guard(database, onLost, (error) => {
    const fault = storeFault(error)
    if (fault === 'damaged') damaged ??= error
    if (fault === 'disk_full') full = true
  })
  const journal = file === undefined ? undefined : openJournal(database, file)
  const pages = file === undefined ? undefined : createPageCheck(file)
  const steps = sqliteSql({ database, guarded, leaseClock, journal, file })
  const kind = file === undefined ? 'memory' : 'sqlite'
  return {
    kind,
    persistent: file !== undefined,
    ...operations(steps, rowByRow(database)),
    async ping({ pages: everyPage = false } = {}) {
      if (damaged !== undefined) throw unavailable(damaged)
      if (file !== undefined && isDiskFull(file)) throw unavailable(codeError('ENOSPC'))
      // After a full disk, call the store healthy only once there is room for more than a row that exists already.
      if (full) await steps.read(() => ping(GROWTH_BYTES))
      await steps.read(() => ping())
      full = false
      const catchUp = database.transaction(() => journal?.catchUp())
      try {
        catchUp.immediate()
      } catch (error) {
        // Not an error of the store itself, which goes on.
        throw unavailable(error)
      }
      if (everyPage && (await pages?.check()) === false) {
        damaged = codeError('SQLITE_CORRUPT')
        throw unavailable(damaged)
      }
    },
    status: () =>
      steps.read(function* () {
        const { version, latest } = yield* readSchema(SQLITE_STEPS.length)
        const bytes = file === undefined ? undefined : statSync(file).size
        return { kind, version, latest, bytes, backupAt: yield* getTime(BACKUP_AT) }
      }),
    async close() {
      await pages?.close()
      closeFile(database)
    },
  }
}

/** What must go into a full file before it counts as one with room. */
const GROWTH_BYTES = 64 * 1024

function unavailable(cause: unknown): PlatformError {
  return new PlatformError('store_unavailable', UNAVAILABLE, { cause })
}
