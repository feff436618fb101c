import type { DispatchResult } from '../../core/course/course.ts'
import type { Configure, Context } from '../context.ts'
import type { DispatchOptions } from '../dispatch/drain.ts'
import { EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { envFileOption, formatOption, wholeNumber } from '../options.ts'
import { printJson } from '../print.ts'

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Send the lessons that are due: through the dispatch endpoint (secret from EMAIL_DISPATCH_SECRET), or with --local from this machine’s store.',
    )
    .option('--limit <n>', 'how many lessons one call sends at most (1 to 10000)', wholeNumber(1, 10_000))
    .option(
      '--drain',
      'send without a limit, at most one lesson to each subscription, with progress on standard error',
    )
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
Exit codes: 0 sent what was due, 1 stopped or some lessons were not sent (with --drain also those that wait for their next attempt), 2 wrong usage, 3 not reached or refused.

Examples:
  platformctl dispatch --limit 100 --url https://www.example.com
  platformctl dispatch --local --dry-run
  platformctl dispatch --local --drain --env-file .env`,
    )
    .action(async (options: DispatchOptions) => settle(await dispatch(context, options)))
}

async function dispatch(context: Context, options: DispatchOptions): Promise<ExitCode> {
  if (options.local && options.url !== undefined) throw wrongUsage('choose one of --local and --url.')
  if (options.dryRun && !options.local)
    throw wrongUsage('--dry-run looks into the store, so it needs --local.')
  const { loadEnvironment } = await import('../environment.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const source = options.local
    ? await (await import('../dispatch/local.ts')).localSource(context, env, options)
    : (await import('../dispatch/web-endpoint.ts')).remoteSource(context, env, options)
  try {
    if (options.dryRun) return await (await import('../dispatch/local.ts')).dryRun(context, source, options)
    const began = context.clock.monotonic()
    const total = await (await import('../dispatch/drain.ts')).drain(context, source, options)
    await write(context, total, options, context.clock.monotonic() - began)
    const undone = total.failed + total.unknown > 0 || total.reason !== undefined
    return undone || (options.drain && (total.waiting ?? 0) > 0) ? EXIT.failed : EXIT.passed
  } finally {
    await source.close()
  }
}

async function write(
  context: Context,
  total: DispatchResult,
  options: DispatchOptions,
  tookMs: number,
): Promise<void> {
  if (options.format === 'json') {
    // JSON knows no infinity: a run without a limit has none.
    const limit = Number.isFinite(total.limit) ? total.limit : null
    printJson(context, 'dispatch', { ...total, limit })
    return
  }
  for (const result of total.results) {
    if (!result.sent)
      context.stdout.write(
        `not sent: day ${result.day} of ${result.subscription}: ${result.reason ?? 'no reason given'}\n`,
      )
  }
  const failed = total.failed > 0 ? `, ${total.failed} failed` : ''
  const unknown = total.unknown > 0 ? `, ${total.unknown} unknown` : ''
  const reason = total.reason === undefined ? '' : `: ${total.reason}`
  const { elapsedText } = await import('../dispatch/drain.ts')
  const time = total.processed === 0 ? '' : ` in ${elapsedText(tookMs / 1000)}`
  context.stdout.write(
    `${total.sent} sent${time}${failed}${unknown}, ${total.remaining} still due${waitingText(total)}${reason}\n${nextStep(total, options)}`,
  )
}

/** Lessons in backoff are due, too: a drain that leaves them has not sent all. */
function waitingText({ waiting = 0, nextTryAt }: DispatchResult): string {
  return waiting === 0 ? '' : `, ${waiting} waiting after a failure (next try ${nextTryAt ?? 'unknown'})`
}

/** The command to type next, if this run leaves something to do. */
function nextStep(total: DispatchResult, { drain, local, url, data }: DispatchOptions): string {
  const where = [
    ...(local ? ['--local'] : []),
    ...(url === undefined ? [] : [`--url ${url}`]),
    ...(data === undefined ? [] : [`--data ${data}`]),
  ]
  if (total.failed + total.unknown > 0)
    return 'Next: platformctl course status, on the machine of the store, shows what waits for a decision.\n'
  if (total.reason === undefined && total.remaining > 0 && !drain)
    return `Next: ${['platformctl dispatch --drain', ...where].join(' ')} sends the rest.\n`
  return ''
}
