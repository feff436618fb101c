import { probeRemote } from '../../core/health/prober.ts'
import { dependenciesOf, type Verdict, verdictOf } from '../../core/health/verdict.ts'
import { CAUSES, type CauseCode, isCauseCode } from '../../core/network/causes.ts'
import { isBearerToken, splitSecrets } from '../../core/secret.ts'
import type { Service } from '../../core/service.ts'
import { type Context, terminalColumns } from '../context.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { unknownName } from '../inputs.ts'
import { beside, complain } from '../output/text.ts'
import { printText } from '../print.ts'
import { loadPaint } from '../terminal.ts'
import { type HealthEndpoint, targetsOf } from './targets.ts'
import type { Ask } from './track.ts'

const DEFAULT_NAME = 'HEALTH_DEEP_TOKEN'

/**
 * The token for deep checks, from a file, the variable named, or HEALTH_DEEP_TOKEN. A source that was named must hold
 * one; without any the request goes without, because a platform may leave deep checks open.
 */
export async function readToken(
  context: Context,
  { tokenEnv, tokenFile }: Partial<Readonly<Record<'tokenEnv' | 'tokenFile', string | undefined>>>,
  env: Context['env'],
  targets: readonly HealthEndpoint[],
): Promise<string | undefined> {
  const token = tokenFile === undefined ? fromVariable(env, tokenEnv) : await fromFile(context, tokenFile)
  if (token !== undefined && !isBearerToken(token))
    throw wrongUsage(
      'the token has a character that is not allowed in an HTTP header: paste the whole token, and nothing else.',
    )
  const web = targets.find(({ service }) => service === 'web')
  if (token !== undefined && web !== undefined && isExposed(web.url))
    complain(context, 'the token travels unencrypted to web: use its https:// address.')
  return token
}

function fromVariable(env: Context['env'], name: string | undefined): string | undefined {
  const value = env[name ?? DEFAULT_NAME]?.trim() || undefined
  // While it is rotated the variable holds two: the first is the one to send.
  const token = name === undefined || name === DEFAULT_NAME ? splitSecrets(value ?? '')[0] : value
  if (token === undefined && name !== undefined)
    throw wrongUsage(`the variable ${name} that --token-env names is not set.`)
  return token
}

async function fromFile(context: Context, file: string): Promise<string> {
  const { readTextFile } = await import('../environment.ts')
  const token = (await readTextFile(context, file)).trim()
  if (token === '') throw wrongUsage(`${file} holds no token: it is empty.`)
  return token
}

function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

export interface HealthCommandOptions {
  readonly deep: true | undefined
  readonly url: readonly string[]
  readonly service: readonly Service[] | undefined
  readonly tokenEnv: string | undefined
  readonly tokenFile: string | undefined
  readonly envFile: readonly string[]
  readonly timeout: number
  readonly wait: number | undefined
  readonly consecutive: number | undefined
  readonly expectBuild: string | undefined
  readonly watch: true | undefined
  readonly interval: number | undefined
  readonly strict: true | undefined
  readonly quiet: true | undefined
  readonly format: 'text' | 'json' | 'junit' | 'prom'
}

const WAIT_PAUSE_MS = 1000
/** Don't start a round with less time than this: a healthy service would look silent. */
const LEAST_MS = 250

/** `platformctl health`: asks, waits or watches, writes the document, and gives the exit code. */
export async function runHealth(context: Context, options: HealthCommandOptions): Promise<ExitCode> {
  assertTogether(options)
  const fileEnv =
    options.envFile.length === 0
      ? undefined
      : (await (await import('../environment.ts')).loadEnvironment(context, options.envFile)).env
  const targets = targetsOf(context.platform.services, options, fileEnv, context.daemon?.urls)
  const token = options.deep
    ? await readToken(context, options, fileEnv ?? (await processEnv(context)), targets)
    : undefined
  const ask = asker(context, options, targets, token)
  if (options.watch) {
    const { watch } = await import('./watch.ts')
    const last = await watch(context, ask, options)
    return last ? exitCode(last) : EXIT.passed
  }
  const { verdict, enough } =
    options.wait === undefined
      ? { verdict: await ask(options.timeout), enough: true }
      : await waitFor(context, ask, options, options.wait)
  // An interrupted check says nothing about the services.
  if (context.signal.aborted && !options.quiet)
    throw new CommandError(EXIT.failed, 'interrupted before all services had answered.')
  const passed = verdict.outcome === 'passed' && enough && !context.signal.aborted
  if (options.quiet) return passed ? EXIT.passed : EXIT.failed
  context.stdout.write(await document(context, options.format, verdict, passed))
  return verdict.outcome === 'passed' && !enough ? EXIT.failed : exitCode(verdict)
}

/** The token may be in a file. */
async function processEnv(context: Context): Promise<Context['env']> {
  if (context.env.HEALTH_DEEP_TOKEN_FILE === undefined) return context.env
  return (await (await import('../environment.ts')).loadEnvironment(context, [])).env
}

function assertTogether({ watch, wait, quiet, format, consecutive, interval }: HealthCommandOptions): void {
  const fail = (sentence: string) => {
    throw wrongUsage(sentence)
  }
  if (watch && wait !== undefined) fail('--watch goes on for ever and --wait ends: use one of the two.')
  if (watch && quiet) fail('--watch shows what it sees and --quiet shows nothing: use one of the two.')
  if (watch && (format === 'junit' || format === 'prom'))
    fail(`--watch writes text or json, and not ${format}.`)
  if (consecutive !== undefined && wait === undefined)
    fail('--consecutive needs --wait: how long may it take?')
  if (interval !== undefined && !watch) fail('--interval is for --watch.')
}

function asker(
  context: Context,
  options: HealthCommandOptions,
  targets: readonly HealthEndpoint[],
  token: string | undefined,
): Ask {
  const asks = dependenciesOf(context.platform.probes, context.platform.services)
  return async (timeoutMs) =>
    verdictOf(
      await Promise.all(
        targets.map((target) =>
          probeRemote({
            ...target,
            deep: options.deep === true,
            token,
            timeoutMs,
            clock: context.clock,
            signal: context.signal,
          }),
        ),
      ),
      { strict: options.strict === true, expectBuild: options.expectBuild, asks },
    )
}

/** Asks until it passed as often in a row as wanted, or the time is over. */
async function waitFor(
  context: Context,
  ask: Ask,
  { timeout, consecutive = 1, quiet }: HealthCommandOptions,
  waitMs: number,
): Promise<{ readonly verdict: Verdict; readonly enough: boolean }> {
  const { clock, signal, stderr } = context
  const until = clock.monotonic() + waitMs
  let said = ''
  for (let passes = 0; ; ) {
    const verdict = await ask(Math.min(timeout, until - clock.monotonic()))
    passes = verdict.outcome === 'passed' ? passes + 1 : 0
    const left = until - clock.monotonic()
    const enough = passes >= consecutive
    if (enough || left < WAIT_PAUSE_MS + LEAST_MS || signal.aborted) return { verdict, enough }
    const progress =
      verdict.outcome === 'passed' && consecutive > 1
        ? `passed ${passes} of ${consecutive} in a row`
        : verdict.sentence
    // Print a sentence only when it changes.
    if (!quiet && progress !== said) stderr.write(`waiting, ${Math.ceil(left / 1000)} s left: ${progress}\n`)
    said = progress
    await clock.sleep(WAIT_PAUSE_MS, signal).catch(() => {})
  }
}

function exitCode({ outcome }: Verdict): ExitCode {
  return outcome === 'passed' ? EXIT.passed : outcome === 'failed' ? EXIT.failed : EXIT.remote
}

async function document(
  context: Context,
  format: HealthCommandOptions['format'],
  verdict: Verdict,
  passed: boolean,
): Promise<string> {
  switch (format) {
    case 'json': {
      const { healthJson } = await import('../output/health.ts')
      return `${JSON.stringify(healthJson(verdict, passed, context.clock.now()), null, 2)}\n`
    }
    case 'junit':
      return (await import('../output/junit.ts')).healthJunit(verdict, passed)
    case 'prom':
      return (await import('../output/health.ts')).healthProm(verdict, passed)
    case 'text': {
      const { healthText } = await import('../output/health.ts')
      const paint = await loadPaint(context.colour.stdout)
      return healthText({ verdict, passed, paint, columns: terminalColumns(context.stdout) })
    }
  }
}

/** `platformctl health explain [CODE]`: one cause code, or all of them. */
export function explainCause(context: Context, code: string | undefined): ExitCode {
  if (code !== undefined && !isCauseCode(code))
    throw unknownName({
      kind: 'cause code',
      name: code,
      known: Object.keys(CAUSES),
      otherwise: 'Run platformctl health explain to list them.',
    })
  const codes = code === undefined ? (Object.keys(CAUSES) as CauseCode[]) : [code]
  // Off a terminal a sentence stays on one line, so that it can be searched.
  const columns = context.stdout.columns ?? Number.POSITIVE_INFINITY
  const texts = codes.map((name) => {
    const sentences = [sentence(CAUSES[name].meaning), CAUSES[name].fix]
    return `${[name, ...sentences.map((one) => beside('  ', one, columns))].join('\n')}\n`
  })
  return printText(context, texts.join('\n'))
}

function sentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1)}.`
}
