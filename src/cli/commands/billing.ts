import type { SmokeCheck } from '../../core/payments/smoke.ts'
import { trimEnd } from '../../core/trim-end.ts'
import type { Configure, Context } from '../context.ts'
import { EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { envFileOption, formatOption } from '../options.ts'
import { printJson } from '../print.ts'
import { loadPaint } from '../terminal.ts'

interface Options {
  readonly url?: string
  readonly webhook: boolean
  readonly live?: true
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

export const configure: Configure = (command, context, settle) => {
  command
    .description('Try payments end to end without moving money.')
    .addHelpText('after', '\nExamples:\n  platformctl billing smoke --env-file .env')
  command
    .command('smoke')
    .summary('keys, prices, a checkout that is expired at once, and a signed webhook')
    .description(
      'Try payments end to end without moving money: the mode of the keys, each price (exists, active, recurring, one currency), a checkout session that is opened and expired, and a signed webhook to the running web service.',
    )
    .option(
      '--url <url>',
      'address of the web service (default: NEXT_PUBLIC_SITE_URL, else http://localhost:3000)',
    )
    .option('--no-webhook', 'leave the web service out')
    .option('--live', 'use live keys; a session is opened and expired there too')
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 passed, 1 a check failed, 2 not configured or a live key without --live, 3 not reached or key refused.

Examples:
  platformctl billing smoke --env-file .env
  platformctl billing smoke --env-file .env --no-webhook
  platformctl billing smoke --env-file .env.production --live --url https://www.example.com`,
    )
    .action(async (options: Options) => settle(await smokeTest(context, options)))
}

async function smokeTest(context: Context, options: Options): Promise<ExitCode> {
  const { loadEnvironment } = await import('../environment.ts')
  const { readSettings } = await import('../../core/env/settings.ts')
  const { keyModeOf, smoke } = await import('../../core/payments/smoke.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const { payments, site } = readSettings(context.platform, env)
  if (payments === undefined)
    throw wrongUsage(
      'payments are not configured, or only partly: run platformctl preflight to see what is missing.',
    )
  const mode = keyModeOf(payments)
  if (mode === 'live' && !options.live)
    throw wrongUsage(
      'PAYMENTS_SECRET_KEY is a live key, so nothing was tried: use a test key, or add --live.',
    )
  const checks: SmokeCheck[] = []
  const paint = await loadPaint(context.colour.stdout)
  for await (const check of smoke({
    payments,
    webUrl: options.webhook ? webUrl(options.url ?? site.siteUrl) : undefined,
    siteUrl: site.siteUrl,
    mode,
    clock: context.clock,
    random: context.random,
    signal: context.signal,
  })) {
    checks.push(check)
    if (options.format === 'text') {
      const mark = {
        passed: paint.green('✓'),
        failed: paint.red('✖'),
        unreached: paint.red('✖'),
        skipped: paint.dim('○'),
      }
      context.stdout.write(`${mark[check.state]} ${check.name.padEnd(20)}${check.finding}\n`)
    }
  }
  const code = codeOf(checks)
  if (options.format === 'json')
    printJson(context, 'billing smoke', { ok: code === EXIT.passed, mode, checks })
  return code
}

function codeOf(checks: readonly SmokeCheck[]): ExitCode {
  if (checks.some(({ state }) => state === 'failed')) return EXIT.failed
  return checks.some(({ state }) => state === 'unreached') ? EXIT.remote : EXIT.passed
}

function webUrl(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw wrongUsage('the address of the web service is not an http:// or https:// address.')
  return trimEnd(url, '/')
}
