import { existsSync } from 'node:fs'
import path from 'node:path'
import { readSettings, type StoreAddress } from '../../core/env/settings.ts'
import type { TableDifference } from '../../core/store/copy.ts'
import type { Answer } from '../command.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, wrongUsage } from '../exit.ts'
import { required } from '../inputs.ts'
import { onStore } from '../opened.ts'
import { rowsText } from './backup.ts'

export const copy = onStore({
  summary:
    'copy the store into an empty PostgreSQL database, or from there into a new SQLite file; either everything is copied or nothing. Stop the daemon first',
  examples: [
    '--to postgres://platform@db.example.com/platform --data /var/lib/platformctl',
    '--to postgres://platform@db.example.com/platform --verify    compare and change nothing',
    '--to sqlite:/var/lib/platformctl/platform.sqlite --env-file /etc/platformctl/env    back into a file',
  ],
  document: 'db copy',
  inputs: {
    '--to <url>': required('the other store, as STORE_URL would name it'),
    '--resume': 'finish an interrupted copy: passes if every row is there already, copies if none is',
    '--verify': 'compare the two stores row by row and change nothing',
  },
  async run(context, { to: url, resume, verify }, { address }) {
    const to = targetOf(context, url, address)
    const { analyticsFile, compareStores, copyStore, openMaintenance } = await import(
      '../../core/store/open.ts'
    )
    const { storeFaultError } = await import('../local.ts')
    const toTarget = <T>(work: Promise<T>) =>
      work.catch((error: unknown) => {
        throw named(storeFaultError(to, error))
      })
    const isMissing = to.kind === 'sqlite' && !existsSync(to.file)
    if (verify || (resume && !isMissing)) {
      const differences = await toTarget(compareStores(address, to))
      const isEmpty = differences.length > 0 && differences.every((one) => one.to === 0)
      if (verify || !isEmpty) return compared(differences)
    }
    const { counts } = await toTarget(copyStore(address, to))
    const maintenance = await openMaintenance(to)
    const verified = await maintenance.verify(context.clock.now()).finally(() => maintenance.close())
    const events = address.kind === 'sqlite' ? analyticsFile(address.file) : undefined
    if (events !== undefined && existsSync(events))
      context.stderr.write(`not copied: the events of visitors, which stay in ${events}\n`)
    const lines = [
      `copied: ${rowsText(counts)}`,
      ...verified.faults.map((fault) => `✖ ${fault}`),
      verified.ok
        ? 'verified; now set STORE_URL to the new address and start the daemon'
        : '✖ everything was copied, but some rows of the original are inconsistent',
    ]
    return {
      json: { counts, verified },
      text: `${lines.join('\n')}\n`,
      exit: verified.ok ? EXIT.passed : EXIT.failed,
    }
  },
})

/** The other store: a database for a file, and a file for a database. */
function targetOf(context: Context, url: string, { kind }: StoreAddress): StoreAddress {
  const to = readSettings(context.platform, { STORE_URL: url }).store.address
  if (kind === 'sqlite' && to?.kind !== 'postgres')
    throw wrongUsage(
      '--to is not the address of a PostgreSQL database (postgres://user:password@host/database); for another SQLite file: db backup and db restore.',
    )
  if (kind === 'postgres' && to?.kind !== 'sqlite')
    throw wrongUsage(
      '--to is not the address of a file (sqlite:/var/lib/platformctl/platform.sqlite), and the store is in PostgreSQL; for another database: its own tools.',
    )
  if (to === undefined) throw new TypeError('an address was checked above')
  return to.kind === 'sqlite' ? { ...to, file: path.resolve(context.cwd, to.file) } : to
}

/** Replaces STORE_URL with --to in a message, because that is how the operator named the server. */
function named(error: unknown): unknown {
  return error instanceof CommandError
    ? new CommandError(error.exitCode, error.message.replaceAll('STORE_URL', '--to'), { cause: error })
    : error
}

function compared(differences: readonly TableDifference[]): Answer<'db copy'> {
  const same = differences.length === 0
  const lines = differences.map(
    ({ table, from, to }) =>
      `✖ ${table}: ${from} rows here, ${to} there${from === to ? ', and they differ' : ''}\n`,
  )
  return {
    json: { same, differences },
    text: same
      ? 'every row of this store is in the other one, unchanged; now set STORE_URL to the new address and start the daemon\n'
      : lines.join(''),
    fault: same
      ? undefined
      : 'the stores differ, and nothing was changed: a daemon that already runs on the new store explains it; otherwise empty the new database and copy again.',
  }
}
