import packageJson from '../../package.json' with { type: 'json' }
import type { RecordedPlatform } from '../core/daemon-record.ts'
import type { LiveFindingId } from '../core/env/explanations.ts'
import type { Report } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import type { LiveResult } from '../core/live/live.ts'
import type { LintReport } from '../core/mail/lint/lint.ts'
import { type Context, whichPlatform } from './context.ts'
import type { DocumentOf } from './documents/documents.ts'
import { readTextFile } from './environment.ts'
import { EXIT, type ExitCode, wrongUsage } from './exit.ts'
import { format, type Values } from './inputs.ts'
import { lintText, reportText } from './output/findings-text.ts'
import { jsonText } from './output/text.ts'
import { loadPaint } from './terminal.ts'

/** How such a report is written. */
export const REPORT_FORMAT = format('text', 'json', 'github', 'sarif', 'junit')

export const BASELINE = {
  '--baseline <file>': 'accept the warnings of an earlier --format json report',
} as const

/** The inputs of a command that reports on an environment. */
export const REPORT_INPUTS = {
  '--strict': 'fail on warnings too',
  '--notices': 'show what is not configured and what that means as findings',
  ...BASELINE,
  ...REPORT_FORMAT,
} as const

export type ReportOptions = Partial<Values<typeof REPORT_INPUTS>> &
  Pick<Values<typeof REPORT_INPUTS>, 'format'>

/** A report, and with `--deep` what the live checks gave. */
export interface CheckedReport extends Report {
  readonly platform: RecordedPlatform
  readonly live?: readonly LiveResult[]
}

/** Errors about the other side, which was not reached or refused us: exit code 3 if there are no others (CONTRACT §7). */
const REMOTE_FAULTS: readonly string[] = [
  'live-name',
  'live-name-server',
  'live-unreachable',
  'live-unauthorised',
  'configuration-unreached',
] satisfies (LiveFindingId | 'configuration-unreached')[]

/** Writes a report in the asked-for format and gives the exit code: preflight, `env check` and lint share it. */
export async function writeReport(
  context: Context,
  name: string,
  report: CheckedReport | LintReport,
  options: ReportOptions,
): Promise<ExitCode> {
  const accepted =
    options.baseline === undefined ? new Set<string>() : await readBaseline(context, options.baseline)
  const findings = report.findings.filter(
    (finding) => finding.severity === 'error' || !accepted.has(keyOf(finding)),
  )
  const shown = findings.filter(
    ({ id, severity }) => severity !== 'notice' || options.notices || id.startsWith('configuration-'),
  )
  const remaining = { ...report, findings }
  // Formats of other tools have no place for it.
  if (!('mails' in report) && options.format !== 'text' && options.format !== 'json')
    context.stderr.write(`${whichPlatform(context)}\n`)
  context.stdout.write(await document(context, name, remaining, shown, options))
  const warned = findings.some(({ severity }) => severity === 'warning')
  const errors = findings.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return options.strict && warned ? EXIT.failed : EXIT.passed
  return errors.every(({ id }) => REMOTE_FAULTS.includes(id)) ? EXIT.remote : EXIT.failed
}

async function document(
  context: Context,
  name: string,
  report: CheckedReport | LintReport,
  shown: readonly Finding[],
  options: ReportOptions,
): Promise<string> {
  const live = 'live' in report ? report.live : undefined
  switch (options.format) {
    case 'json':
      return jsonText(report satisfies CheckedReport | DocumentOf<'email lint'>)
    case 'github':
      return (await import('./output/annotations.ts')).githubText(shown, live)
    case 'sarif': {
      return (await import('./output/annotations.ts')).sarifText(shown, packageJson.version, live)
    }
    case 'junit':
      return (await import('./output/junit.ts')).junitText(name, shown, options.strict === true, live)
    case 'text': {
      const how = {
        paint: await loadPaint(context.colour.stdout),
        columns: Math.min(context.stdout.columns ?? 100, 120),
        strict: options.strict === true,
      }
      return 'mails' in report
        ? lintText(report, shown, how)
        : reportText(report, shown, { ...how, platform: whichPlatform(context), live })
    }
  }
}

function keyOf({ id, present }: Pick<Finding, 'id' | 'present'>): string {
  return `${id} ${[...present].sort().join(' ')}`
}

async function readBaseline(context: Context, file: string): Promise<Set<string>> {
  const fail = (why: string) =>
    wrongUsage(`cannot use ${file} as a baseline: ${why}; make one with --format json.`)
  let text: string
  try {
    text = (await readTextFile(context, file)).replace(/^\uFEFF/, '')
  } catch {
    throw fail('it cannot be read')
  }
  try {
    const { findings } = JSON.parse(text) as {
      findings: readonly { readonly id: string; readonly present: readonly string[] }[]
    }
    return new Set(findings.map(keyOf))
  } catch {
    throw fail('it is not a report')
  }
}
