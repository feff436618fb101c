import type { AuditEntry } from '../../core/audit.ts'
import type { Environment } from '../../core/env/environment.ts'
import type { StoreAddress } from '../../core/env/settings.ts'
import type { AnalyticsMaintenance, StoreMaintenance } from '../../core/store/maintenance.ts'
import { type Context, listColumns } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import { agoText, beside, sizeText } from '../output/text.ts'
import { printJson, printText, table } from '../print.ts'

/** Command-line options of `db`. */
export interface DbOptions {
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
  readonly plan?: true
  readonly force?: true
  readonly to?: string
  readonly resume?: true
  readonly verify?: true
  readonly analytics?: boolean
  readonly recipient: readonly string[]
  readonly identity?: string
  readonly journal?: string
  readonly withoutJournal?: true
  readonly sentFrom?: string
  readonly from?: string
  readonly limit: number
}

/** One sub-command at work. */
export interface Job {
  readonly context: Context
  readonly options: DbOptions
  readonly env: Environment
  readonly address: StoreAddress
  /** Opens the store without migrating it; closed when the command ends. */
  readonly maintenance: () => Promise<StoreMaintenance>
  /** The same for the file of analytics; undefined when there is none. */
  readonly analyticsMaintenance: () => Promise<AnalyticsMaintenance | undefined>
}

/** `subscription 3, confirmation 2`: tables with rows, the fullest first. */
export function rowsText(counts: Readonly<Record<string, number>>): string {
  const filled = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
  return filled.map(([table, count]) => `${table} ${count}`).join(', ') || 'none'
}

function writeLines(context: Context, lines: readonly (readonly [string, string])[]): void {
  const columns = listColumns(context.stdout)
  context.stdout.write(
    `${lines.map(([name, value]) => beside(name.padEnd(10), value, columns)).join('\n')}\n`,
  )
}

export async function status({ context, options, env, maintenance }: Job): Promise<ExitCode> {
  const found = await (await maintenance()).status()
  const analytics = await analyticsStatus(context, env)
  if (options.format === 'json')
    return printJson(context, 'db status', { store: found, ...(analytics && { analytics }) })
  const { version, latest, readable, walBytes, verifiedAt } = found
  const schema =
    version === latest
      ? 'up to date'
      : version < latest
        ? `this build brings ${latest}: platformctl db migrate`
        : readable
          ? `newer than this build’s ${latest}, which can run on it`
          : `newer than this build’s ${latest}, which cannot run on it: run the version that wrote it`
  writeLines(context, [
    ['store', `${found.kind} ${found.location}`],
    ['schema', `${version} (${schema})`],
    [
      'size',
      `${sizeText(found.bytes)}${walBytes === undefined ? '' : `, write-ahead log ${sizeText(walBytes)}`}`,
    ],
    ['rows', rowsText(found.counts)],
    [
      'verified',
      verifiedAt === undefined
        ? 'never: platformctl db verify'
        : `${agoText(verifiedAt, context.clock.now())} (${new Date(verifiedAt).toISOString()})`,
    ],
    ...(analytics ? [['analytics', analyticsText(analytics)] as const] : []),
  ])
  return EXIT.passed
}

type AnalyticsPart = NonNullable<DocumentOf<'db status'>['analytics']>

/** The events that ingest has stored beside the store; undefined if no table is configured. */
async function analyticsStatus(context: Context, env: Environment): Promise<AnalyticsPart | undefined> {
  const { findAnalytics } = await import('../local.ts')
  const found = await findAnalytics(context, env)
  if (found.kind === 'off') return undefined
  const { location } = found
  if (found.kind === 'empty') return { table: undefined, location, batches: 0, events: 0, bytes: undefined }
  try {
    const { table, batches, events, bytes } = await found.store.status()
    return { table, location, batches, events, bytes }
  } finally {
    await found.store.close()
  }
}

function analyticsText({ table, location, batches, events, bytes }: AnalyticsPart): string {
  if (table === undefined) return `nothing stored yet (${location})`
  const size = bytes === undefined ? '' : `, ${sizeText(bytes)}`
  const counted = `${events.toLocaleString('en')} ${events === 1 ? 'event' : 'events'} in ${batches.toLocaleString('en')} ${batches === 1 ? 'batch' : 'batches'}`
  return `${counted}${size} (${table} in ${location})`
}

export async function migrate(job: Job): Promise<ExitCode> {
  const { context, options } = job
  if (options.plan) return plan(job)
  const result = await (await job.maintenance()).migrate()
  if (options.format === 'json') return printJson(context, 'db migrate', { result })
  return printText(
    context,
    result.from === result.to
      ? `nothing to do: schema ${result.to}\n`
      : `migrated from schema ${result.from} to ${result.to}\n`,
  )
}

/** Shows the steps; a store that does not exist yet is not made for it. */
async function plan({ context, options, address, maintenance }: Job): Promise<ExitCode> {
  const { assertExists } = await import('../local.ts')
  await assertExists(context, address)
  const steps = await (await maintenance()).pending()
  if (options.format === 'json') return printJson(context, 'db migrate', { steps })
  for (const { version, statements } of steps) {
    context.stdout.write(`schema ${version}\n${statements.map((statement) => `  ${statement}\n`).join('')}`)
  }
  const count = steps.length === 1 ? '1 step' : `${steps.length} steps`
  return printText(context, steps.length === 0 ? 'nothing to do\n' : `${count}; nothing was changed\n`)
}

export async function verify(job: Job): Promise<ExitCode> {
  const { context, options, address } = job
  const result = await (await job.maintenance()).verify(context.clock.now())
  const analytics = await (await job.analyticsMaintenance())?.verify(context.clock.now())
  const code = result.ok && analytics?.ok !== false ? EXIT.passed : EXIT.failed
  if (options.format === 'json') {
    printJson(context, 'db verify', { result, ...(analytics && { analytics }) })
    return code
  }
  for (const fault of result.faults) context.stdout.write(`✖ ${fault}\n`)
  if (result.moreFaults > 0) context.stdout.write(`… and ${result.moreFaults} more\n`)
  const subscriptions = result.checked === 1 ? '1 subscription is' : `${result.checked} subscriptions are`
  // A server watches over its own files; what it holds was looked at, not how it lies on the disk.
  const sound = address.kind === 'postgres' ? '' : 'the file is sound, and '
  context.stdout.write(
    result.ok ? `✓ ${sound}${subscriptions} consistent\n` : `✖ failed; ${failure(address, result.damaged)}\n`,
  )
  if (analytics === undefined) return code
  for (const fault of analytics.faults) context.stdout.write(`✖ analytics: ${fault}\n`)
  context.stdout.write(
    analytics.ok
      ? '✓ the file of analytics is sound\n'
      : '✖ failed; the file of analytics is damaged: restore a backup (platformctl db restore), or move it away\n',
  )
  return code
}

function failure(address: StoreAddress, damaged: boolean): string {
  if (damaged) return 'the file is damaged: restore a backup (platformctl db restore)'
  return address.kind === 'postgres' ? 'some rows are inconsistent' : 'the file itself is sound'
}

export async function audit({ context, options, maintenance }: Job): Promise<ExitCode> {
  const entries = await (await maintenance()).audit(options.limit)
  if (options.format === 'json') {
    const dated = entries.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() }))
    return printJson(context, 'db audit', { entries: dated })
  }
  return printText(
    context,
    entries.length === 0 ? 'no operator has changed anything yet\n' : auditText(entries),
  )
}

function auditText(entries: readonly AuditEntry[]): string {
  return table([
    ['when', 'who', 'from', 'action', 'what', 'details'],
    ...entries.map(({ at, who, place, action, subject = '', details = '' }) => [
      new Date(at).toISOString(),
      who,
      place,
      action,
      subject,
      details,
    ]),
  ])
}
