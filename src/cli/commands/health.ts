import { readSettings } from '../../core/env/settings.ts'
import { probeRemote } from '../../core/health/prober.ts'
import { dependenciesOf, type Verdict, verdictOf } from '../../core/health/verdict.ts'
import { prerequisitesOf } from '../../core/incidents/prerequisites.ts'
import { CAUSES, type CauseCode, isCauseCode } from '../../core/network/causes.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { WEB } from '../../core/service.ts'
import { command, type Define } from '../command.ts'
import type { Context, ExitCode } from '../context.ts'
import { EXIT, failure, listColumns, loadPaint, terminalColumns, wrongUsage } from '../context.ts'
import { readToken, targetsOf } from '../health/targets.ts'
import type { Ask } from '../health/watch.ts'
import {
  duration,
  ENV_FILE,
  format,
  repeatable,
  serviceInput,
  TOKEN,
  unknownName,
  type Values,
  value,
  wholeNumber,
} from '../inputs.ts'
import { beside, compact, jsonText, sentence } from '../output/text.ts'

function inputsOf({ services, contract }: ResolvedPlatform) {
  const [, second] = services
  const example = second === undefined ? '' : ` ${second.name}=…`
  return {
    '--deep': 'live checks of what the web service depends on',
    '--url <service=url...>': repeatable(
      `addresses, as web=https://www.example.com${example}; else those of the env files, else this machine. Any other name checks a third-party health URL: plain ok, health+json, Spring or ASP.NET`,
    ),
    ...serviceInput(contract.services),
    ...ENV_FILE,
    ...TOKEN,
    '--timeout <duration>': value('how long one service may take', duration, 5000, '5s'),
    '--wait <duration>': value('keep asking until all pass, at most this long (60s, 2m)', duration),
    '--consecutive <n>': value('how many passes in a row --wait needs (default: 1)', wholeNumber(1, 100)),
    '--expect-build <stamp>': 'fail unless every service runs this build',
    '--watch': 'keep asking and show it live; off a terminal, a line for each change',
    '--interval <duration>': value('how often --watch asks (default: 5s)', duration),
    '--strict': 'fail on degraded, different builds and a certificate that ends within 14 days too',
    '--quiet': 'print nothing; exit code 0 or 1',
    ...format('text', 'json', 'junit', 'prom'),
  } as const
}

type Options = Values<ReturnType<typeof inputsOf>>

export const define: Define = ({ platform }) =>
  command({
    description:
      'Ask the running services for their health. With --wait and --expect-build it is the smoke test of a deployment, with --watch a live view.',
    exits: `0 passed (degraded allowed), 1 failing, 2 wrong usage, 3 not reached or refused.
With --quiet, a service that is not reached is exit code 1 too, as a container's HEALTHCHECK expects.`,
    examples: [
      '',
      '--deep --url web=https://www.example.com --token-file /run/secrets/health',
      '--wait 60s --consecutive 3 --expect-build "$BUILD_STAMP" --env-file .env.production',
      '--watch --interval 2s',
      'platformctl health --format prom > /var/lib/node_exporter/health.new; mv /var/lib/node_exporter/health.new /var/lib/node_exporter/health.prom',
      '--service web --quiet',
      'explain tls_expired',
    ],
    inputs: inputsOf(platform),
    run: runHealth,
    commands: {
      explain: command({
        summary: 'explain a cause code and how to fix it',
        description: 'Explain a cause code and how to fix it. Without a code, all are explained.',
        examples: ['', 'dns_not_found'],
        inputs: { '[code]': 'a cause code, such as tls_expired' },
        run: async (context, { code }) => explainCause(context, code),
      }),
    },
  })

/** The only service that is asked deeply. */
const isWeb = ({ service }: { readonly service: string }) => service === WEB
const WAIT_PAUSE_MS = 1000
/** Don't start a round with less time than this: a healthy service would look silent. */
const LEAST_MS = 250

async function runHealth(context: Context, options: Options): Promise<ExitCode> {
  assertTogether(options)
  const fileEnv = options.envFile.length === 0 ? undefined : await environmentOf(context, options.envFile)
  const targets = targetsOf(context.platform.services, options, fileEnv, context.daemon?.urls)
  const token = options.deep
    ? await readToken(context, options, fileEnv ?? (await processEnv(context)), targets.filter(isWeb))
    : undefined
  const { clock, signal, platform } = context
  const { strict, expectBuild, deep } = options
  const asks = dependenciesOf(platform.probes, platform.services)
  const prerequisites = prerequisitesOf(platform, readSettings(platform, fileEnv ?? context.env))
  const ask: Ask = async (timeoutMs) => {
    const asked = { deep: deep === true, token, timeoutMs, clock, signal }
    const results = await Promise.all(targets.map((target) => probeRemote({ ...target, ...asked })))
    return verdictOf(results, { strict: strict === true, expectBuild, asks, prerequisites })
  }
  if (options.watch) {
    const { watch } = await import('../health/watch.ts')
    const last = await watch(context, ask, options)
    return last ? exitCode(last) : EXIT.passed
  }
  const { verdict, enough } =
    options.wait === undefined
      ? { verdict: await ask(options.timeout), enough: true }
      : await waitFor(context, ask, options, options.wait)
  // An interrupted check says nothing about the services.
  if (context.signal.aborted && !options.quiet) throw failure('interrupted before all services had answered.')
  const passed = verdict.outcome === 'passed' && enough && !context.signal.aborted
  if (options.quiet) return passed ? EXIT.passed : EXIT.failed
  context.stdout.write(await document(context, options.format, verdict, passed))
  return verdict.outcome === 'passed' && !enough ? EXIT.failed : exitCode(verdict)
}

/** That of the shell, and the files of the daemon that is used, which may hold the token. */
async function processEnv(context: Context): Promise<Context['env']> {
  const isWhole = context.env.HEALTH_DEEP_TOKEN_FILE === undefined && !context.daemon?.envFiles.length
  return isWhole ? context.env : environmentOf(context, [])
}

/** Loaded when needed: a container's HEALTHCHECK starts often. */
const environmentOf = async (context: Context, files: readonly string[]): Promise<Context['env']> =>
  (await (await import('../environment.ts')).loadEnvironment(context, files)).env

function assertTogether({ watch, wait, quiet, format, consecutive, interval }: Options): void {
  const [fault] = compact(
    watch && wait !== undefined && '--watch goes on for ever and --wait ends: use one of the two.',
    watch && quiet && '--watch shows what it sees and --quiet shows nothing: use one of the two.',
    watch && (format === 'junit' || format === 'prom') && `--watch writes text or json, and not ${format}.`,
    consecutive !== undefined && wait === undefined && '--consecutive needs --wait: how long may it take?',
    interval !== undefined && !watch && '--interval is for --watch.',
  )
  if (fault) throw wrongUsage(fault)
}

/** Asks until it passed as often in a row as wanted, or the time is over. */
async function waitFor(context: Context, ask: Ask, options: Options, waitMs: number) {
  const { clock, signal, stderr } = context
  const { timeout, consecutive = 1, quiet } = options
  const until = clock.monotonic() + waitMs
  let said = ''
  for (let passes = 0; ; ) {
    const verdict = await ask(Math.min(timeout, until - clock.monotonic()))
    passes = verdict.outcome === 'passed' ? passes + 1 : 0
    const left = until - clock.monotonic()
    const enough = passes >= consecutive
    if (enough || left < WAIT_PAUSE_MS + LEAST_MS || signal.aborted) return { verdict, enough }
    const counted = verdict.outcome === 'passed' && consecutive > 1
    const progress = counted ? `passed ${passes} of ${consecutive} in a row` : verdict.sentence
    // Print a sentence only when it changes.
    if (!quiet && progress !== said) stderr.write(`waiting, ${Math.ceil(left / 1000)} s left: ${progress}\n`)
    said = progress
    await clock.sleep(WAIT_PAUSE_MS, signal).catch(() => {})
  }
}

const exitCode = ({ outcome }: Verdict): ExitCode =>
  outcome === 'passed' ? EXIT.passed : outcome === 'failed' ? EXIT.failed : EXIT.remote

async function document(context: Context, format: Options['format'], verdict: Verdict, passed: boolean) {
  if (format === 'junit') return (await import('../output/junit.ts')).healthJunit(verdict, passed)
  const { healthJson, healthProm, healthText } = await import('../output/health.ts')
  if (format === 'json') return jsonText(healthJson(verdict, passed, context.clock.now()))
  if (format === 'prom') return healthProm(verdict, passed)
  const paint = await loadPaint(context.colour.stdout)
  return healthText(verdict, passed, paint, terminalColumns(context.stdout))
}

function explainCause(context: Context, code: string | undefined): string {
  if (code !== undefined && !isCauseCode(code))
    throw unknownName({
      kind: 'cause code',
      name: code,
      known: Object.keys(CAUSES),
      otherwise: 'Run platformctl health explain to list them.',
    })
  const codes = code === undefined ? (Object.keys(CAUSES) as CauseCode[]) : [code]
  // Off a terminal a sentence stays on one line, so that it can be searched.
  const columns = listColumns(context.stdout)
  const texts = codes.map((name) => {
    const sentences = [sentence(CAUSES[name].meaning), CAUSES[name].fix]
    return `${[name, ...sentences.map((one) => beside('  ', one, columns))].join('\n')}\n`
  })
  return texts.join('\n')
}
