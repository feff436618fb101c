import { InvalidArgumentError } from 'commander'
import type { RemoteHealth } from '../../core/health/prober.ts'
import { isService, SERVICES, type Service } from '../../core/service.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { collect, envFileOption, formatOption, serviceOption, wholeNumber } from '../options.ts'
import { loadPaint } from '../paint.ts'
import type { Configure } from '../program.ts'

interface Options {
  readonly deep?: true
  readonly url: readonly string[]
  readonly service?: readonly Service[]
  readonly tokenEnv: string
  readonly envFile: readonly string[]
  readonly timeout: number
  readonly wait?: number
  readonly consecutive: number
  readonly expectBuild?: string
  readonly strict?: true
  readonly quiet?: true
  readonly format: 'text' | 'json'
}

const PAUSE_MS = 1000

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Ask the running services for their health. With --wait and --expect-build it is the smoke test of a deployment.',
    )
    .option('--deep', 'live checks of what the web service depends on')
    .option(
      '--url <service=url...>',
      'addresses, as web=https://www.example.com api=…; else from the environment, else localhost',
      collect,
      [],
    )
    .addOption(serviceOption())
    .addOption(envFileOption())
    .option('--token-env <name>', 'the variable that holds the token for deep checks', 'HEALTH_DEEP_TOKEN')
    .option('--timeout <duration>', 'how long one service may take', duration, 5000)
    .option('--wait <duration>', 'keep asking until all pass, at most this long (60s, 2m)', duration)
    .option('--consecutive <n>', 'how many passes in a row --wait wants', wholeNumber(1, 100), 1)
    .option('--expect-build <stamp>', 'fail unless every service runs this build')
    .option('--strict', 'fail on degraded too')
    .option('--quiet', 'print nothing; the exit code says it')
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 passed (degraded allowed), 1 failing, 2 wrong usage, 3 not reached or refused.

Examples:
  platformctl health
  platformctl health --deep --url web=https://www.example.com --token-env HEALTH_DEEP_TOKEN
  platformctl health --wait 60s --consecutive 3 --expect-build "$BUILD_STAMP"
  platformctl health --service web --quiet                      as a container's HEALTHCHECK`,
    )
    .action(async (options: Options) => settle(await health(context, options)))
}

async function health(context: Context, options: Options): Promise<ExitCode> {
  const env =
    options.envFile.length === 0
      ? context.env
      : (await (await import('../environment.ts')).loadEnvironment(context, options.envFile)).env
  const targets = targetsOf(options, env)
  const token = options.deep ? env[options.tokenEnv]?.trim() || undefined : undefined
  const { probeRemote } = await import('../../core/health/prober.ts')
  const ask = () =>
    Promise.all(
      targets.map(([service, url]) =>
        probeRemote({
          service,
          url,
          deep: options.deep === true,
          token,
          timeoutMs: options.timeout,
          monotonic: context.clock.monotonic,
        }),
      ),
    )

  const until = context.clock.monotonic() + (options.wait ?? 0)
  let results = await ask()
  let passes = codeOf(results, options) === EXIT.passed ? 1 : 0
  while (
    options.wait !== undefined &&
    passes < options.consecutive &&
    context.clock.monotonic() < until &&
    !context.signal.aborted
  ) {
    if (!options.quiet && context.stderr.isTTY)
      context.stderr.write(`waiting: ${sentence(results, options)}\n`)
    await context.clock.sleep(PAUSE_MS, context.signal).catch(() => {})
    results = await ask()
    passes = codeOf(results, options) === EXIT.passed ? passes + 1 : 0
  }
  const code = codeOf(results, options)
  const enough = options.wait === undefined || passes >= options.consecutive
  if (!options.quiet) await write(context, options, results, code === EXIT.passed && enough)
  return code === EXIT.passed && !enough ? EXIT.failed : code
}

async function write(
  context: Context,
  options: Options,
  results: readonly RemoteHealth[],
  passed: boolean,
): Promise<void> {
  if (options.format === 'json') {
    const { jsonText } = await import('../output/json.ts')
    context.stdout.write(jsonText({ version: 1, passed, services: results }))
    return
  }
  const { healthText } = await import('../output/health-text.ts')
  const paint = await loadPaint(context.colour.stdout)
  context.stdout.write(healthText(results, { passed, sentence: sentence(results, options) }, paint))
}

function codeOf(results: readonly RemoteHealth[], options: Options): ExitCode {
  if (results.some((result) => !result.reached)) return EXIT.remote
  const bad = results.some(
    (result) =>
      result.reached &&
      (result.report.state === 'failing' ||
        (options.strict && result.report.state === 'degraded') ||
        (options.expectBuild !== undefined && result.report.build !== options.expectBuild)),
  )
  return bad ? EXIT.failed : EXIT.passed
}

function sentence(results: readonly RemoteHealth[], options: Options): string {
  const named = (matches: (result: RemoteHealth) => boolean) =>
    results.filter(matches).map(({ service }) => service)
  const unreached = named((result) => !result.reached)
  const failing = named((result) => result.reached && result.report.state === 'failing')
  const degraded = named((result) => result.reached && result.report.state === 'degraded')
  const builds = new Set(
    results.flatMap((result) => (result.reached ? (result.report.build ?? 'unstamped') : [])),
  )
  const parts = [
    unreached.length > 0 && `not reached: ${unreached.join(', ')}`,
    failing.length > 0 && `failing: ${failing.join(', ')}`,
    degraded.length > 0 && `degraded: ${degraded.join(', ')}`,
    builds.size > 1 && `different builds run: ${[...builds].join(', ')}`,
    options.expectBuild !== undefined &&
      [...builds].some((build) => build !== options.expectBuild) &&
      `expected build ${options.expectBuild}`,
  ].filter((part) => part !== false)
  return parts.length === 0
    ? `all ${results.length === 1 ? `of ${results[0]?.service}` : `${results.length} services`} ok`
    : parts.join('; ')
}

/** 127.0.0.1 and not localhost: some systems try ::1 first, where nothing listens. */
const DEFAULTS: Readonly<Record<Service, { readonly names: readonly string[]; readonly url: string }>> = {
  web: { names: ['NEXT_PUBLIC_SITE_URL'], url: 'http://127.0.0.1:3000' },
  api: { names: ['API_URL', 'NEXT_PUBLIC_API_URL'], url: 'http://127.0.0.1:8000' },
  agent: { names: ['AGENT_URL', 'NEXT_PUBLIC_AGENT_URL'], url: 'http://127.0.0.1:8100' },
}

function targetsOf(options: Options, env: Context['env']): (readonly [Service, string])[] {
  const given = new Map<Service, string>()
  for (const word of options.url) {
    const [service = '', url = ''] = [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
    if (!isService(service))
      throw new CommandError(EXIT.usage, `--url takes web=…, api=… or agent=…, and not ${word}.`)
    if (!/^https?:\/\//.test(url) || !URL.canParse(url))
      throw new CommandError(EXIT.usage, `--url ${service}=… needs an http:// or https:// address.`)
    given.set(service, url)
  }
  // Named addresses name the services too: the others may not run at all.
  const services =
    options.service ?? (given.size > 0 ? SERVICES.filter((service) => given.has(service)) : SERVICES)
  return services.map((service) => {
    const fromEnv = DEFAULTS[service].names
      .map((name) => env[name]?.trim())
      .find((value) => value !== undefined && URL.canParse(value))
    return [service, given.get(service) ?? fromEnv ?? DEFAULTS[service].url] as const
  })
}

/** `500ms`, `5s`, `2m`; a bare number is seconds. In milliseconds. */
function duration(text: string): number {
  const match = /^(\d{1,6}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text)
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[match?.[2] ?? 's'] ?? 1000
  const ms = Number(match?.[1]) * unit
  if (match === null || !(ms > 0 && ms <= 86_400_000))
    throw new InvalidArgumentError('A duration such as 500ms, 60s or 2m is needed.')
  return ms
}
