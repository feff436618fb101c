import type { AnalyticsStore } from '../../core/analytics/store.ts'
import { DAY_MS } from '../../core/durations.ts'
import type { Configure, Context } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { envFileOption, formatOption, wholeNumber } from '../options.ts'
import { sizeText } from '../output/text.ts'
import { printJson } from '../print.ts'
import { loadPaint, type Paint } from '../terminal.ts'

interface Options {
  readonly days: number
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

export const configure: Configure = (command, context, settle) => {
  command
    .description('Show aggregate figures of the visitors’ events that ingest has stored.')
    .addHelpText('after', '\nExamples:\n  platformctl analytics summary --days 7')
  command
    .command('summary')
    .summary('counts per kind and day')
    .description(
      'Counts per kind and day of what ingest has stored: a table of kinds, and a bar for each day. Reads the table that ANALYTICS_DATASTORE_TABLE names in the store of STORE_URL; days are in UTC.',
    )
    .option('--days <days>', 'how many days back, today included', wholeNumber(1, 400), 30)
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 written, 2 nothing is stored here, or the file cannot be read, 3 the server of STORE_URL was not reached or refused.

Examples:
  platformctl analytics summary --env-file .env
  platformctl analytics summary --days 7
  platformctl analytics summary --format json | jq '.kinds'`,
    )
    .action(async (options: Options) =>
      settle(await withStore(context, options, (store) => summary(context, store, options))),
    )
}

async function withStore(
  context: Context,
  { envFile }: Options,
  work: (store: AnalyticsStore) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { findAnalytics } = await import('../local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const found = await findAnalytics(context, env)
  if (found.kind === 'off') {
    throw wrongUsage(
      'events are not stored: set ANALYTICS_DATASTORE_TABLE and STORE_URL, or pass the env file that sets them with --env-file.',
    )
  }
  if (found.kind === 'empty') {
    throw wrongUsage(
      `nothing is stored at ${found.location} yet: the daemon makes it; check STORE_URL if it should be there.`,
    )
  }
  try {
    return await work(found.store)
  } finally {
    await found.store.close()
  }
}

async function summary(context: Context, store: AnalyticsStore, options: Options): Promise<ExitCode> {
  const { days } = options
  const now = context.clock.now()
  const { batches, events, bytes } = await store.status()
  const counts = await store.counts(dayName(now - (days - 1) * 86_400_000))
  const found = summariseEvents(counts, { batches, events, bytes }, now, days)
  if (options.format === 'json') {
    printJson(context, 'analytics summary', found)
  } else {
    const paint = await loadPaint(context.colour.stdout)
    context.stdout.write(summaryText(found, { paint, columns: Math.min(context.stdout.columns ?? 80, 120) }))
  }
  return EXIT.passed
}

/** The operator's aggregate view. Days are in UTC, oldest first, without gaps; the most frequent kind first. */
type AnalyticsSummary = DocumentOf<'analytics summary'>

export function summariseEvents(
  counts: readonly { readonly day: string; readonly kind: string; readonly count: number }[],
  stored: AnalyticsSummary['stored'],
  now: number,
  days: number,
): AnalyticsSummary {
  const names = Array.from({ length: days }, (_, index) => dayName(now - (days - 1 - index) * DAY_MS))
  const byDay = new Map(names.map((day) => [day, new Map<string, number>()]))
  const byKind = new Map<string, number>()
  for (const { day, kind, count } of counts) {
    const kinds = byDay.get(day)
    if (kinds === undefined) continue
    kinds.set(kind, count)
    byKind.set(kind, (byKind.get(kind) ?? 0) + count)
  }
  const sum = (kinds: ReadonlyMap<string, number>) => [...kinds.values()].reduce((a, b) => a + b, 0)
  return {
    version: 1,
    from: names[0] ?? '',
    to: names.at(-1) ?? '',
    total: sum(byKind),
    kinds: [...byKind].map(([kind, count]) => ({ kind, count })).sort((a, b) => b.count - a.count),
    days: [...byDay].map(([day, kinds]) => ({ day, count: sum(kinds), kinds: Object.fromEntries(kinds) })),
    stored,
  }
}

export function dayName(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

/** A bar for each kind and for each day, with its number, so that nothing is shown by length alone. */
export function summaryText(
  summary: AnalyticsSummary,
  { paint, columns }: { readonly paint: Paint; readonly columns: number },
): string {
  const { from, to, total, kinds, days, stored } = summary
  const size = stored.bytes === undefined ? '' : `, ${sizeText(stored.bytes)}`
  const lines = [
    `${paint.bold(`${number(total)} ${total === 1 ? 'event' : 'events'}`)} from ${from} to ${to} (UTC)`,
    paint.dim(
      `${number(stored.events)} stored in all, in ${number(stored.batches)} ${stored.batches === 1 ? 'batch' : 'batches'}${size}`,
    ),
  ]
  if (total > 0) {
    const rows = kinds.map(({ kind, count }) => ({ name: kind, count, share: percent(count, total) }))
    lines.push('', paint.bold('by kind'), ...bars(rows, columns, paint))
    // Quiet days before the first event say nothing.
    const first = days.findIndex(({ count }) => count > 0)
    lines.push('', paint.bold('by day'))
    lines.push(
      ...bars(
        days.slice(first).map(({ day, count }) => ({ name: day, count, share: '' })),
        columns,
        paint,
      ),
    )
  }
  return `${lines.join('\n')}\n`
}

interface Row {
  readonly name: string
  readonly count: number
  readonly share: string
}

function bars(rows: readonly Row[], columns: number, paint: Paint): string[] {
  const most = Math.max(...rows.map(({ count }) => count))
  const nameWidth = Math.max(...rows.map(({ name }) => name.length))
  const countWidth = number(most).length
  const shareWidth = Math.max(...rows.map(({ share }) => share.length))
  const room = Math.max(4, Math.min(48, columns - nameWidth - countWidth - shareWidth - 8))
  return rows.map(({ name, count, share }) => {
    const bar = paint.cyan(barOf(count / most, room))
    return `  ${name.padEnd(nameWidth)}  ${number(count).padStart(countWidth)}  ${share.padStart(shareWidth)}${share && '  '}${bar}`.trimEnd()
  })
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** In eighths of a character, and at least one for anything that is there. */
function barOf(share: number, room: number): string {
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * room * 8))
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function percent(count: number, total: number): string {
  return `${((count / total) * 100).toFixed(1)} %`
}
