import { existsSync } from 'node:fs'
import path from 'node:path'
import type { StoreAddress } from '../../core/env/settings.ts'
import { readSettings } from '../../core/env/settings.ts'
import type { TableDifference } from '../../core/store/copy.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { printJson } from '../print.ts'
import { type Job, rowsText } from './store.ts'

export async function copy({ context, options, address }: Job): Promise<ExitCode> {
  const to = targetOf(context, options, address)
  const { analyticsFile, compareStores, copyStore, openMaintenance } = await import(
    '../../core/store/open.ts'
  )
  const { storeFaultError } = await import('../local.ts')
  const isMissing = to.kind === 'sqlite' && !existsSync(to.file)
  if (options.verify || (options.resume && !isMissing)) {
    const differences = await compareStores(address, to).catch((error: unknown) => {
      throw named(storeFaultError(to, error))
    })
    const isEmpty = differences.length > 0 && differences.every((one) => one.to === 0)
    if (options.verify || !isEmpty) return compared(context, options, differences)
  }
  const { counts } = await copyStore(address, to).catch((error: unknown) => {
    throw named(storeFaultError(to, error))
  })
  const maintenance = await openMaintenance(to)
  const verified = await maintenance.verify(context.clock.now()).finally(() => maintenance.close())
  const events = address.kind === 'sqlite' ? analyticsFile(address.file) : undefined
  if (events !== undefined && existsSync(events))
    context.stderr.write(`not copied: the events of visitors, which stay in ${events}\n`)
  if (options.format === 'json') printJson(context, 'db copy', { counts, verified })
  else {
    context.stdout.write(`copied: ${rowsText(counts)}\n`)
    for (const fault of verified.faults) context.stdout.write(`✖ ${fault}\n`)
    context.stdout.write(
      verified.ok
        ? 'verified; now set STORE_URL to the new address and start the daemon\n'
        : '✖ everything was copied, but some rows of the original are inconsistent\n',
    )
  }
  return verified.ok ? EXIT.passed : EXIT.failed
}

/** The other store: a database for a file, and a file for a database. */
function targetOf(context: Job['context'], options: Job['options'], { kind }: Job['address']): StoreAddress {
  const to = readSettings(context.platform, { STORE_URL: options.to }).store.address
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

async function compared(
  context: Job['context'],
  { format }: Job['options'],
  differences: readonly TableDifference[],
): Promise<ExitCode> {
  const same = differences.length === 0
  if (format === 'json') printJson(context, 'db copy', { same, differences })
  else if (same)
    context.stdout.write(
      'every row of this store is in the other one, unchanged; now set STORE_URL to the new address and start the daemon\n',
    )
  else
    for (const { table, from, to } of differences)
      context.stdout.write(
        `✖ ${table}: ${from} rows here, ${to} there${from === to ? ', and they differ' : ''}\n`,
      )
  if (same) return EXIT.passed
  throw new CommandError(
    EXIT.failed,
    'the stores differ, and nothing was changed: a daemon that already runs on the new store explains it; otherwise empty the new database and copy again.',
  )
}
