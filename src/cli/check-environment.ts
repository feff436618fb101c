import { validate } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import type { Service } from '../core/service.ts'
import type { Context } from './context.ts'
import { loadEnvironment } from './environment.ts'
import type { ExitCode } from './exit.ts'
import { type ReportOptions, writeReport } from './report.ts'

export interface CheckInput extends ReportOptions {
  readonly name: string
  readonly services: readonly Service[]
  readonly files: readonly string[]
  /** The process's environment too, as at boot; false looks at the files alone. */
  readonly withProcess: boolean
}

const RANK: Readonly<Record<Finding['severity'], number>> = { error: 0, warning: 1, notice: 2 }

/** Loads, validates, writes: `preflight` and `env check` differ only in what they look at. */
export async function checkEnvironment(context: Context, input: CheckInput): Promise<ExitCode> {
  const loaded = await loadEnvironment(context, input.files, { withProcess: input.withProcess })
  const report = validate(loaded.env, input.services, loaded.origin)
  const findings = [...report.findings, ...loaded.findings].sort(
    (a, b) => RANK[a.severity] - RANK[b.severity],
  )
  return writeReport(context, input.name, { ...report, findings }, input)
}
