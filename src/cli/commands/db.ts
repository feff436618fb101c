import type { Environment } from '../../core/env/environment.ts'
import type { Answer, Define } from '../command.ts'
import { type Context, listColumns } from '../context.ts'
import { afterRestore, backup, journal, restore, rowsText } from '../db/backup.ts'
import { copy } from '../db/copy.ts'
import { EXIT } from '../exit.ts'
import { value, wholeNumber } from '../inputs.ts'
import { onPlace, onStore } from '../opened.ts'
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
  if (found.kind === 'off') return undefined
  const { location } = found
  if (found.kind === 'empty') return { table: undefined, location, batches: 0, events: 0, bytes: undefined }
  const { table, batches, events, bytes } = await found.store.status().finally(() => found.store.close())
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
    const result = await (await maintenance()).migrate()
    const { from, to } = result
    const text = from === to ? `nothing to do: schema ${to}\n` : `migrated from schema ${from} to ${to}\n`
    return { json: { result }, text }
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
    const entries = (await (await maintenance()).audit(limit)).map((entry) => ({
      ...entry,
      at: iso(entry.at),
    }))
    const head = ['when', 'who', 'from', 'action', 'what', 'details']
    const rows = entries.map(({ at, who, place, action, subject = '', details = '' }) => [
      ...[at, who, place, action, subject, details],
    ])
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
