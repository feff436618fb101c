import type { AnalyticsStatus, AnalyticsStore } from '../../core/analytics/store.ts'
import type { Configure } from '../configure.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { envFileOption, formatOption, wholeNumber } from '../options.ts'
import type { AnalyticsSummary } from '../output/analytics-text.ts'
import { loadPaint } from '../paint.ts'
import { printJson } from '../print.ts'

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
  const { findAnalytics } = await import('../analytics-store.ts')
  const { env } = await loadEnvironment(context, envFile)
  const found = await findAnalytics(context, env)
  if (found.kind === 'off') {
    throw new CommandError(
      EXIT.usage,
      'events are not stored: set ANALYTICS_DATASTORE_TABLE and STORE_URL, or pass the env file that sets them with --env-file.',
    )
  }
  if (found.kind === 'empty') {
    throw new CommandError(
      EXIT.usage,
      `nothing is stored at ${found.location} yet: the daemon makes it; check STORE_URL if it should be there.`,
    )
  }
  const opened = found.store
  try {
    return await work(opened)
  } finally {
    await opened.close()
  }
}

async function summary(context: Context, store: AnalyticsStore, options: Options): Promise<ExitCode> {
  const { dayName, summariseEvents, summaryText } = await import('../output/analytics-text.ts')
  const { days } = options
  const now = context.clock.now()
  const counts = await store.counts(dayName(now - (days - 1) * 86_400_000))
  const found = summariseEvents({ counts, stored: storedFacts(await store.status()), now, days })
  if (options.format === 'json') {
    printJson(context, 'analytics summary', found)
  } else {
    const paint = await loadPaint(context.colour.stdout)
    context.stdout.write(summaryText(found, { paint, columns: Math.min(context.stdout.columns ?? 80, 120) }))
  }
  return EXIT.passed
}

function storedFacts({ batches, events, bytes }: AnalyticsStatus): AnalyticsSummary['stored'] {
  return { batches, events, bytes }
}
