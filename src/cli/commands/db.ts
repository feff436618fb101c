import { Option } from 'commander'
import type { AnalyticsMaintenance, StoreMaintenance } from '../../core/store/maintenance.ts'
import type { Configure, Context } from '../context.ts'
import type { DbOptions, Job } from '../db/store.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { collect, formatOption, storeSubcommand, wholeNumber } from '../options.ts'

const store = () => import('../db/store.ts')
const backups = () => import('../db/backup.ts')

export const configure: Configure = (command, context, settle) => {
  command
    .description('Maintain the store: the SQLite file in the data folder, or the database in STORE_URL.')
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 refused or a check failed (nothing was changed), 2 wrong usage, no such store or backup, 3 the server of STORE_URL was not reached or refused.

Examples:
  platformctl db status --data /var/lib/platformctl
  platformctl db migrate --plan
  platformctl db backup /var/backups/platform-2026-11-21.sqlite.zst
  platformctl db restore /var/backups/platform-2026-11-21.sqlite.zst --force`,
    )
  const add = (name: string, summary: string, ...examples: string[]) =>
    storeSubcommand(command, { name, summary, examples }).addOption(formatOption(['text', 'json']))
  const run = (work: (job: Job) => Promise<ExitCode>, options: DbOptions, exists = true) =>
    act(context, options, exists, work).then(settle)

  add(
    'status',
    'show the schema version, size, write-ahead log, rows, and when it was last verified',
    '',
    ' --format json',
  ).action((options: DbOptions) => run(async (job) => (await store()).status(job), options))
  add(
    'migrate',
    'bring the schema up to date; each step is applied completely or not at all',
    ' --plan    what would be done; changes nothing',
    '',
  )
    .option('--plan', 'show the steps and change nothing')
    .action((options: DbOptions) => run(async (job) => (await store()).migrate(job), options, false))
  add(
    'backup',
    'write a consistent backup, also while the daemon runs. It is checked and read back before it gets its name. Visitors’ events, if they are stored, go into a second file beside it',
    ' platform.sqlite.zst    packed by zstd',
    ' platform.sqlite.gz     packed by gzip',
    ' copy.sqlite            as it is',
    ' platform.sqlite.zst.age --recipient recipients.txt',
  )
    .argument('<file>', 'a new file; its ending says how it is packed: .sqlite.zst, .sqlite.gz or .sqlite')
    .addOption(
      new Option(
        '--recipient <key>',
        'encrypt for this public key of age (age1…), or for those in a file; repeatable; the name then ends in .age',
      )
        .argParser(collect)
        .default([], 'none'),
    )
    .option('--no-analytics', 'leave out visitors’ events, which have a file of their own')
    .action((file: string, options: DbOptions) =>
      run(async (job) => (await backups()).backup(job, file), options),
    )
  add(
    'restore',
    'replace the store with a backup, which is verified first; the old store is kept beside it. Unsubscribes, suppressions, erasures and operators’ actions since the backup are replayed from the journal beside the store. For PostgreSQL, use its own tools and after-restore',
    ' platform.sqlite.zst --data /var/lib/platformctl',
    ' platform.sqlite.zst --force    also when there is a store; stop the daemon first',
    ' platform.sqlite.zst --data /srv/new --journal platform-journal.jsonl    elsewhere',
  )
    .argument(
      '<file>',
      'the backup; the backup of visitors’ events beside it is restored too, if there is one',
    )
    .option(
      '--identity <file>',
      'the file with the secret key of age (AGE-SECRET-KEY-1…) for an encrypted backup',
    )
    .option('--force', 'replace an existing store; it is kept beside the new one under another name')
    .option('--journal <file>', 'the journal from beside the replaced store, for a restore elsewhere')
    .option(
      '--without-journal',
      'restore although the journal is lost; people who left since the backup are mailed again',
    )
    .option(
      '--sent-from <file>',
      'the replaced store’s file; lessons that it sent since the backup are not sent again',
    )
    .action((file: string, options: DbOptions) =>
      run(async (job) => (await backups()).restore(job, file), options, false),
    )
  add(
    'after-restore',
    'after PostgreSQL was restored to an older state: apply what people and operators ended since, so that nobody who left is mailed. Stop the daemon first; running it twice changes nothing more',
    ' --from platformctl_before    the replaced schema, in the same database',
    ' --from postgres://platform@old.example.com/platform    the replaced database',
    ' --journal journal.jsonl    what db journal wrote',
  )
    .option('--from <store>', 'the replaced store: the URL of its database, or its schema’s name in this one')
    .option('--journal <file>', 'a journal of the replaced store')
    .option('--without-journal', 'go on although nobody knows who left since; they are mailed again')
    .action((options: DbOptions) => run(async (job) => (await backups()).afterRestore(job), options))
  add(
    'journal',
    'write into a new file who left the store, for a restore after both the store and its machine are lost. Keep it elsewhere, and write it more often than backups; it names suppressed addresses',
    ' /var/backups/journal-2026-11-23T14.jsonl',
  )
    .argument('<file>', 'a new file')
    .action((file: string, options: DbOptions) =>
      run(async (job) => (await backups()).journal(job, file), options),
    )
  add(
    'copy',
    'copy the store into an empty PostgreSQL database, or from there into a new SQLite file; either everything is copied or nothing. Stop the daemon first',
    ' --to postgres://platform@db.example.com/platform --data /var/lib/platformctl',
    ' --to postgres://platform@db.example.com/platform --verify    compare and change nothing',
    ' --to sqlite:/var/lib/platformctl/platform.sqlite --env-file /etc/platformctl/env    back into a file',
  )
    .requiredOption('--to <url>', 'the other store, as STORE_URL would name it')
    .option('--resume', 'finish an interrupted copy: passes if every row is there already, copies if none is')
    .option('--verify', 'compare the two stores row by row and change nothing')
    .action((options: DbOptions) => run(async (job) => (await import('../db/copy.ts')).copy(job), options))
  add(
    'verify',
    'check the integrity of the file, and that every row keeps the promises of the course: lessons in order, none before it was due',
    '',
    ' --format json',
  ).action((options: DbOptions) => run(async (job) => (await store()).verify(job), options))
  add(
    'audit',
    'list what operators did (erasures, decisions about deliveries, restores): who, when and from where. Entries are never changed or deleted, and hold no address',
    ' --data /var/lib/platformctl',
    ' --limit 1000 --format json',
  )
    .option('--limit <n>', 'show at most this many, newest first (1 to 100,000)', wholeNumber(1, 100_000), 50)
    .action((options: DbOptions) => run(async (job) => (await store()).audit(job), options))
}

async function act(
  context: Context,
  options: DbOptions,
  mustExist: boolean,
  work: (job: Job) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { assertExists, storeAddress, storeFaultError } = await import('../local.ts')
  const { openAnalyticsMaintenance, openMaintenance } = await import('../../core/store/open.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const address = storeAddress(context, env, options.data)
  if (mustExist) await assertExists(context, address)
  let opened: StoreMaintenance | undefined
  let openedAnalytics: AnalyticsMaintenance | undefined
  const maintenance = async () => {
    opened ??= await openMaintenance(address)
    return opened
  }
  const analyticsMaintenance = async () => {
    openedAnalytics ??= await openAnalyticsMaintenance(address)
    return openedAnalytics
  }
  try {
    return await work({ context, options, env, address, maintenance, analyticsMaintenance })
  } catch (error) {
    if (error instanceof Error && error.name === 'StoreMaintenanceError')
      throw new CommandError(EXIT.failed, error.message)
    throw storeFaultError(address, error)
  } finally {
    await opened?.close()
    await openedAnalytics?.close()
  }
}
