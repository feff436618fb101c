import type { Dialect } from '../core/env/dialects/dialect.ts'
import { isInstalled } from '../core/env/group-warnings.ts'
import { secretBehind } from '../core/env/secret-files.ts'
import { rawValue } from '../core/env/settings.ts'
import { bySeverity, concerned, type Report, validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import { recordedPlatform } from '../core/platform.ts'
import type { Service } from '../core/service.ts'
import { type Context, type ExitCode, failure } from './context.ts'
import { fileFinding, type LoadedEnvironment, loadEnvironment } from './environment.ts'
import type { DeepOptions } from './live-checks.ts'
import { type ReportOptions, writeReport } from './report.ts'
import type { changesAgainst } from './verify-environment.ts'

interface CheckInput extends ReportOptions {
  readonly name: string
  readonly services: readonly Service[]
  readonly files: readonly string[]
  readonly withProcess: boolean
  readonly dialect?: Dialect | undefined
  readonly readers?: readonly Dialect[] | undefined
  /** What would change on these running services too. */
  readonly against?: Parameters<typeof changesAgainst>[2] | undefined
  readonly deep?: DeepOptions | undefined
}

/** Loads, validates, writes: `preflight` and `env check` differ only in what they look at. */
export async function checkEnvironment(context: Context, input: CheckInput): Promise<ExitCode> {
  const { deep, against, services } = input
  const { contract } = context.platform
  const loaded = await loadEnvironment(context, input.files, { ...input, reportsSecretFiles: true })
  const report = validate(contract, loaded.env, services, loaded.origin, {
    production: input.withProcess && rawValue(loaded.env, 'DEPLOY_ENVIRONMENT') === 'production',
    isInstalled: (name) => !input.withProcess || isInstalled(name),
  })
  // A template with a fault keeps a daemon from starting.
  if (input.withProcess) await context.platform.mails.compiled()
  const live = deep && (await (await import('./live-checks.ts')).liveChecks(context, loaded, services, deep))
  if (live && context.signal.aborted)
    throw failure('the live checks were interrupted, so they have no result.')
  const changes =
    against && (await (await import('./verify-environment.ts')).changesAgainst(context, loaded, against))
  // Hide errors about secret files that only other services read.
  const ofFiles = loaded.findings.flatMap((finding) =>
    finding.severity !== 'error' || finding.services.some((reader) => services.includes(reader))
      ? { ...finding, services: concerned(contract, finding.present, services) }
      : [],
  )
  const elsewhere = fileFinding({
    id: 'no-definition',
    severity: 'warning',
    services,
    cause: `This is not about what runs here: ${context.unused}`,
    fix: 'Do as it says, or add --no-config if the default platform is meant.',
  })
  const findings = bySeverity([
    ...report.findings,
    ...namesNotRead(context, loaded, services, report),
    ...(context.unused === undefined ? [] : [elsewhere]),
    ...ofFiles,
    ...(live?.findings ?? []),
    ...(changes ?? []),
  ])
  const ok = findings[0]?.severity !== 'error'
  const results = live && { live: live.results }
  const whole = { ...report, platform: recordedPlatform(context.platform), ok, findings, ...results }
  return writeReport(context, input.name, whole, input)
}

/** One finding with the number of unknown names in the files, unless misspelled: a warning if a definition may be missing. */
export function namesNotRead(
  { platform: { contract }, searched }: Pick<Context, 'platform' | 'searched'>,
  { env, origin }: LoadedEnvironment,
  services: readonly Service[],
  report?: Report,
): readonly Finding[] {
  const unknown = Object.keys(env).filter(
    (name) => origin(name) && (contract.find(name) ?? secretBehind(contract, name)) === undefined,
  )
  if (unknown.length === 0) return []
  const { findings } = report ?? validate(contract, env, services)
  const misspelt = findings.flatMap(({ id, present }) => (id === 'unknown-name' ? present : []))
  const { length } = unknown.filter((name) => !misspelt.includes(name))
  if (length === 0) return []
  const counted = length === 1 ? '1 name in the files is' : `${length} names in the files are`
  const said: Pick<Finding, 'id' | 'severity' | 'cause' | 'fix'> =
    searched === undefined
      ? {
          id: 'names-not-read',
          severity: 'notice',
          cause: `${counted} in no group of this platform, and not checked.`,
          fix: 'Nothing to do, unless they should be checked: then add them to a group of the definition.',
        }
      : {
          id: 'no-definition',
          severity: 'warning',
          cause: `${counted} unknown to the default platform, which runs because no definition was found in ${searched.join(' or ')}.`,
          fix: 'Name the definition with --config, or add --no-config if the default platform is meant.',
        }
  return [fileFinding({ services, ...said })]
}
