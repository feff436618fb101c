import type { Contract } from '../core/env/contract.ts'
import type { Dialect } from '../core/env/dialects/read.ts'
import { missingPackages } from '../core/env/packages.ts'
import { validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import { isInstalled } from '../core/installed.ts'
import type { Service } from '../core/service.ts'
import type { Context } from './context.ts'
import { loadEnvironment } from './environment.ts'
import { CommandError, EXIT, type ExitCode } from './exit.ts'
import { type ReportOptions, writeReport } from './report.ts'

export interface CheckInput extends ReportOptions {
  readonly name: string
  readonly services: readonly Service[]
  readonly files: readonly string[]
  /** The process's environment too, as at boot; false looks at the files alone. */
  readonly withProcess: boolean
  readonly dialect?: Dialect
  readonly readers?: readonly Dialect[]
  /** Live checks too, of what is configured. */
  readonly deep?: { readonly timeoutMs: number; readonly dkimSelectors: readonly string[] } | undefined
}

const RANK: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, notice: 2 }

/** Loads, validates, writes: `preflight` and `env check` differ only in what they look at. */
export async function checkEnvironment(context: Context, input: CheckInput): Promise<ExitCode> {
  const { deep, services } = input
  const { contract } = context.platform
  const loaded = await loadEnvironment(context, input.files, input)
  const report = validate(contract, loaded.env, services, loaded.origin)
  // What the validators cannot know, because they only read: is what the environment asks for installed here?
  const packages = input.withProcess
    ? missingPackages({ report, services, origin: loaded.origin, isInstalled })
    : []
  const live =
    deep && (await (await import('./live-checks.ts')).liveChecks(context, { ...deep, services, loaded }))
  if (live && context.signal.aborted)
    throw new CommandError(EXIT.failed, 'the live checks were interrupted, so nothing is said of them.')
  const ofFiles = loaded.findings.map((finding) => ({
    ...finding,
    services: concerned(contract, finding, services),
  }))
  const findings = [...report.findings, ...ofFiles, ...packages, ...(live?.findings ?? [])].sort(
    (a, b) => RANK[a.severity] - RANK[b.severity],
  )
  const ok = findings[0]?.severity !== 'error'
  return writeReport(
    context,
    input.name,
    { ...report, ok, findings, ...(live && { live: live.results }) },
    input,
  )
}

/** Of the services asked for, those that read what the finding names; all of them when none does. */
function concerned(
  contract: Contract,
  { present }: Finding,
  services: readonly Service[],
): readonly Service[] {
  const readers = services.filter((service) =>
    present.some((name) => contract.find(name)?.services.includes(service)),
  )
  return readers.length > 0 ? readers : services
}
