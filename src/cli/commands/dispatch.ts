import type { DispatchResult } from '../../core/course/course.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { envFileOption, formatOption, wholeNumber } from '../options.ts'
import type { Configure } from '../program.ts'

export interface DispatchOptions {
  readonly limit?: number
  readonly drain?: true
  readonly dryRun?: true
  readonly url?: string
  readonly local?: true
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Send the lessons that are due: through the dispatch endpoint (secret from EMAIL_DISPATCH_SECRET), or with --local from this machine’s store.',
    )
    .option('--limit <n>', 'how many lessons one call sends at most (1 to 10000)', wholeNumber(1, 10_000))
    .option('--drain', 'repeat until nothing is due')
    .option('--dry-run', 'show what is due and send nothing (needs --local)')
    .option('--url <url>', 'address of the web service (default: NEXT_PUBLIC_SITE_URL)')
    .option('--local', 'dispatch from this machine’s store')
    .option(
      '--data <folder>',
      'with --local: the data folder, when STORE_URL is not set (default: .platformctl)',
    )
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 sent what was due, 1 some lessons were not sent, 2 wrong usage, 3 not reached or refused.

Examples:
  platformctl dispatch --limit 100 --url https://www.example.com
  platformctl dispatch --local --dry-run
  platformctl dispatch --local --drain --env-file .env`,
    )
    .action(async (options: DispatchOptions) => settle(await dispatch(context, options)))
}

async function dispatch(context: Context, options: DispatchOptions): Promise<ExitCode> {
  if (options.local && options.url !== undefined)
    throw new CommandError(EXIT.usage, 'choose one of --local and --url.')
  if (options.dryRun && !options.local)
    throw new CommandError(EXIT.usage, '--dry-run looks into the store, so it needs --local.')
  const { loadEnvironment } = await import('../environment.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const source = options.local
    ? await (await import('../dispatch/local.ts')).localSource(context, env, options)
    : (await import('../dispatch/remote.ts')).remoteSource(context, env, options)
  try {
    if (options.dryRun) return await (await import('../dispatch/dry-run.ts')).dryRun(context, source, options)
    const total = await run(context, source.call, options)
    await write(context, total, options)
    return total.failed + total.unknown > 0 || total.reason !== undefined ? EXIT.failed : EXIT.passed
  } finally {
    await source.close()
  }
}

export interface Source {
  readonly call: () => Promise<DispatchResult>
  readonly due?: (limit: number) => Promise<
    readonly {
      readonly id: string
      readonly day: number | undefined
      readonly nextAttemptAt: number | undefined
    }[]
  >
  readonly close: () => Promise<void>
}

/** One call, or with --drain calls until nothing more is sent; the totals of all. */
async function run(
  context: Context,
  call: Source['call'],
  options: DispatchOptions,
): Promise<DispatchResult> {
  let total = await call()
  const began = context.clock.monotonic()
  let last = total
  while (options.drain && last.processed > 0 && last.reason === undefined && !context.signal.aborted) {
    const seconds = (context.clock.monotonic() - began) / 1000
    const rate = seconds > 0 ? total.processed / seconds : 0
    const left = rate > 0 ? `, about ${Math.ceil(total.remaining / rate)} s` : ''
    context.stderr.write(
      `sent ${total.sent}, failed ${total.failed}, left ${total.remaining}${rate > 0 ? `, ${rate.toFixed(0)}/s${left}` : ''}\n`,
    )
    if (last.remaining === 0) break
    last = await call()
    total = {
      ...last,
      processed: total.processed + last.processed,
      sent: total.sent + last.sent,
      failed: total.failed + last.failed,
      unknown: total.unknown + last.unknown,
      results: [...total.results, ...last.results].slice(-1000),
    }
  }
  return total
}

async function write(context: Context, total: DispatchResult, options: DispatchOptions): Promise<void> {
  if (options.format === 'json') {
    context.stdout.write((await import('../output/json.ts')).jsonText({ version: 1, ...total }))
    return
  }
  for (const result of total.results) {
    if (!result.sent)
      context.stdout.write(
        `not sent: day ${result.day} of ${result.subscription}: ${result.reason ?? 'no reason given'}\n`,
      )
  }
  const failed = total.failed > 0 ? `, ${total.failed} failed` : ''
  const unknown = total.unknown > 0 ? `, ${total.unknown} unknown (platformctl course status shows them)` : ''
  const reason = total.reason === undefined ? '' : `: ${total.reason}`
  context.stdout.write(`${total.sent} sent${failed}${unknown}, ${total.remaining} still due${reason}\n`)
}
