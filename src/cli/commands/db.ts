import { existsSync } from 'node:fs'
import path from 'node:path'
import { type Environment, readSettings, type StoreAddress } from '../../core/env/settings.ts'
import type { TableDifference } from '../../core/store/copy.ts'
import { type Answer, type Define, onPlace, onStore } from '../command.ts'
import { type Context, EXIT, listColumns, wrongUsage } from '../context.ts'
import { afterRestore, backup, journal, restore, rowsText } from '../db/backup.ts'
import { required, value, wholeNumber } from '../inputs.ts'
import { agoText, compact, iso, labelled, plural, sizeText, table } from '../output/text.ts'

const status = onStore({
  summary: 'show the schema version, size, write-ahead log, rows, and when it was last verified',
  examples: ['', '--format json'],
  document: 'db status',
  async run(context, _, { env, maintenance }) {
    const store = await (await maintenance()).status()
    const analytics = await analyticsStatus(context, env)
    const { version, latest, readable, bytes, walBytes, verifiedAt } = store
    const newer = readable ? 'can run on it' : 'cannot run on it: run the version that wrote it'
    const schema =
      version < latest
        ? `this build brings ${latest}: platformctl db migrate`
        : version > latest
          ? `newer than this build’s ${latest}, which ${newer}`
          : 'up to date'
    const log = walBytes === undefined ? '' : `, write-ahead log ${sizeText(walBytes)}`
    const rows = [
      ['store', `${store.kind} ${store.location}`],
      ['schema', `${version} (${schema})`],
      ['size', `${sizeText(bytes)}${log}`],
      ['rows', rowsText(store.counts)],
      [
        'verified',
        verifiedAt === undefined
          ? 'never: platformctl db verify'
          : `${agoText(verifiedAt, context.clock.now())} (${iso(verifiedAt)})`,
      ],
      ...(analytics ? [['analytics', analyticsText(analytics)] as const] : []),
    ] as const
    return { json: { store, analytics }, text: labelled(rows, 10, listColumns(context.stdout)) }
  },
})

type AnalyticsPart = NonNullable<Answer<'db status'>['json']['analytics']>

/** The events that ingest has stored beside the store; undefined if no table is configured. */
async function analyticsStatus(context: Context, env: Environment): Promise<AnalyticsPart | undefined> {
  const { findAnalytics } = await import('../local.ts')
  const found = await findAnalytics(context, env)
  if (found === undefined) return undefined
  const { location, store } = found
  if (store === undefined) return { location, batches: 0, events: 0 }
  const { table, batches, events, bytes } = await store.status().finally(() => store.close())
  return { table, location, batches, events, bytes }
}

function analyticsText({ table, location, batches, events, bytes }: AnalyticsPart): string {
  if (table === undefined) return `nothing stored yet (${location})`
  const size = bytes === undefined ? '' : `, ${sizeText(bytes)}`
  return `${plural(events, 'event')} in ${plural(batches, 'batch', 'batches')}${size} (${table} in ${location})`
}

const migrate = onPlace({
  summary: 'bring the schema up to date; each step is applied completely or not at all',
  examples: ['--plan    what would be done; changes nothing', ''],
  document: 'db migrate',
  inputs: { '--plan': 'show the steps and change nothing' },
  async run(context, { plan }, { address, maintenance }) {
    if (plan) {
      // A store that does not exist yet is not made to show the steps.
      const { assertExists } = await import('../local.ts')
      await assertExists(context, address)
      const steps = await (await maintenance()).pending()
      const lines = steps.map(
        ({ version, statements }) => `schema ${version}\n${statements.map((one) => `  ${one}\n`).join('')}`,
      )
      const end =
        steps.length === 0 ? 'nothing to do' : `${plural(steps.length, 'step')}; nothing was changed`
      return { json: { steps }, text: `${lines.join('')}${end}\n` }
    }
    const { from, to } = await (await maintenance()).migrate()
    const text = from === to ? `nothing to do: schema ${to}\n` : `migrated from schema ${from} to ${to}\n`
    return { json: { result: { from, to } }, text }
  },
})

const verify = onStore({
  summary:
    'check the integrity of the file and of every subscription: lessons in order, none sent before it was due',
  examples: ['', '--format json'],
  document: 'db verify',
  async run({ clock }, _, { address, maintenance, analyticsMaintenance }) {
    const result = await (await maintenance()).verify(clock.now())
    const analytics = await (await analyticsMaintenance())?.verify(clock.now())
    // A server watches over its own files; what it holds was looked at, not how it lies on the disk.
    const onServer = address.kind === 'postgres'
    const sound = onServer ? '' : 'the file is sound, and '
    const failure = result.damaged
      ? 'the file is damaged: restore a backup (platformctl db restore)'
      : onServer
        ? 'some rows are inconsistent'
        : 'the file itself is sound'
    const lines = compact(
      ...result.faults.map((fault) => `✖ ${fault}`),
      result.moreFaults > 0 && `… and ${result.moreFaults} more`,
      result.ok
        ? `✔ ${sound}${plural(result.checked, 'subscription is', 'subscriptions are')} consistent`
        : `✖ failed; ${failure}`,
      ...(analytics?.faults.map((fault) => `✖ analytics: ${fault}`) ?? []),
      analytics?.ok === true && '✔ the file of analytics is sound',
      analytics?.ok === false &&
        '✖ failed; the file of analytics is damaged: restore a backup (platformctl db restore), or move it away',
    )
    return {
      json: { result, analytics },
      text: `${lines.join('\n')}\n`,
      exit: result.ok && analytics?.ok !== false ? EXIT.passed : EXIT.failed,
    }
  },
})

const audit = onStore({
  summary:
    'list what operators did (erasures, decisions about deliveries, restores): who, when and from where. Entries are never changed or deleted, and hold no address',
  examples: ['--data /var/lib/platformctl', '--limit 1000 --format json'],
  document: 'db audit',
  inputs: {
    '--limit <n>': value('show at most this many, newest first (1 to 100,000)', wholeNumber(1, 100_000), 50),
  },
  async run(_, { limit }, { maintenance }) {
    const entries = (await (await maintenance()).audit(limit)).map((one) => ({ ...one, at: iso(one.at) }))
    const head = ['when', 'who', 'from', 'action', 'what', 'details']
    const rows = entries.map((it) => [it.at, it.who, it.place, it.action, it.subject ?? '', it.details ?? ''])
    const none = 'no operator has changed anything yet\n'
    return { json: { entries }, text: rows.length === 0 ? none : table([head, ...rows]) }
  },
})

export const define: Define = () => ({
  description: 'Maintain the store: the SQLite file in the data folder, or the database in STORE_URL.',
  exits:
    '0 done, 1 refused or a check failed (nothing was changed), 2 wrong usage, no such store or backup, 3 the server of STORE_URL was not reached or refused.',
  examples: [
    'status --data /var/lib/platformctl',
    'migrate --plan',
    'backup /var/backups/platform-2026-11-21.sqlite.zst',
    'restore /var/backups/platform-2026-11-21.sqlite.zst --force',
  ],
  commands: {
    status,
    migrate,
    backup,
    restore,
    'after-restore': afterRestore,
    journal,
    copy,
    verify,
    audit,
  },
})

const copy = onStore({
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
    const { analyticsFile, compareStores, copyStore } = await import('../../core/store/open.ts')
    const { storeFaultError } = await import('../local.ts')
    // Of two stores one is on a server, and the fault is its.
    const fail = (error: unknown): never => {
      throw storeFaultError(to.kind === 'sqlite' ? address : to, error)
    }
    if (verify || (resume && (to.kind === 'postgres' || existsSync(to.file)))) {
      const differences = await compareStores(address, to).catch(fail)
      const isEmpty = differences.length > 0 && differences.every((one) => one.to === 0)
      if (verify || !isEmpty) return compared(differences)
    }
    const { counts, verified } = await copyStore(address, to, context.clock.now()).catch(fail)
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
  if (kind === 'sqlite' && to?.kind === 'postgres') return to
  if (kind === 'postgres' && to?.kind === 'sqlite') return { ...to, file: path.resolve(context.cwd, to.file) }
  throw wrongUsage(
    kind === 'sqlite'
      ? '--to is not the address of a PostgreSQL database (postgres://user:password@host/database); for another SQLite file: db backup and db restore.'
      : '--to is not the address of a file (sqlite:/var/lib/platformctl/platform.sqlite), and the store is in PostgreSQL; for another database: its own tools.',
  )
}

function compared(differences: readonly TableDifference[]): Answer<'db copy'> {
  const same = differences.length === 0
  if (same) return { json: { same, differences }, text: SAME }
  const lines = differences.map(({ table, from, to }) => {
    const differ = from === to ? ', and they differ' : ''
    return `✖ ${table}: ${from} rows here, ${to} there${differ}\n`
  })
  return { json: { same, differences }, text: lines.join(''), fault: DIFFERENT }
}

const SAME =
  'every row of this store is in the other one, unchanged; now set STORE_URL to the new address and start the daemon\n'
const DIFFERENT =
  'the stores differ, and nothing was changed: either a daemon already runs on the new store, or a process wrote to this one after the copy: then stop that process, empty the new store, and copy again.'
