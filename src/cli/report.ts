import type { LiveFindingId } from '../core/env/explanations.ts'
import type { Report } from '../core/env/validate.ts'
import type { Finding } from '../core/finding.ts'
import type { LiveResult } from '../core/live/live.ts'
import type { LintReport } from '../core/mail/lint/lint.ts'
import type { Context, ExitCode } from './context.ts'
import { EXIT, loadPaint, terminalColumns, whichPlatform, wrongUsage } from './context.ts'
import { readTextFile } from './environment.ts'
import { format, type Values } from './inputs.ts'
import { lintText, reportText } from './output/findings-text.ts'
import { jsonText } from './output/text.ts'

export const REPORT_FORMAT = format('text', 'json', 'github', 'sarif', 'junit')

export const BASELINE = { '--baseline <file>': 'accept warnings of an earlier --format json report' } as const

export const REPORT_INPUTS = {
  '--strict': 'fail on warnings too',
  '--notices': 'show what is not configured and what that means as findings',
  ...BASELINE,
  ...REPORT_FORMAT,
} as const

export type ReportOptions = Partial<Values<typeof REPORT_INPUTS>> &
  Pick<Values<typeof REPORT_INPUTS>, 'format'> & { readonly files?: readonly string[] }

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
  report: (Report & { readonly live?: readonly LiveResult[] }) | LintReport,
  options: ReportOptions,
): Promise<ExitCode> {
  const accepted = options.baseline === undefined ? undefined : await readBaseline(context, options.baseline)
  // As many of a kind as the baseline has: the names of a line that cannot be read are not known.
  const isAccepted = (finding: Finding) => {
    const at = accepted?.indexOf(keyOf(finding)) ?? -1
    return at >= 0 && accepted?.splice(at, 1) !== undefined
  }
  const findings = report.findings.filter((one) => one.severity === 'error' || !isAccepted(one))
  const shown = findings.filter(
    ({ id, severity }) => severity !== 'notice' || options.notices || id.startsWith('configuration-'),
  )
  const remaining = { ...report, findings }
  // Formats of other tools have no place for it.
  if (!('mails' in report) && options.format !== 'text' && options.format !== 'json')
    context.stderr.write(`${whichPlatform(context)}\n`)
  context.stdout.write(await document(shown, context, name, remaining, options))
  const errors = findings.filter(({ severity }) => severity === 'error')
  if (errors.length > 0)
    return errors.every(({ id }) => REMOTE_FAULTS.includes(id)) ? EXIT.remote : EXIT.failed
  return options.strict && findings.some(({ severity }) => severity === 'warning') ? EXIT.failed : EXIT.passed
}

async function document(
  shown: readonly Finding[],
  ...[context, name, report, options]: Parameters<typeof writeReport>
): Promise<string> {
  const live = 'live' in report ? report.live : undefined
  const { format, strict = false } = options
  if (format === 'json') return jsonText({ ...report, findings: shown })
  if (format === 'github') return (await import('./output/annotations.ts')).githubText(shown, live)
  if (format === 'sarif')
    return (await import('./output/annotations.ts')).sarifText(context, shown, options.files)
  if (format === 'junit') return (await import('./output/junit.ts')).junitText(name, shown, strict, live)
  const paint = await loadPaint(context.colour.stdout)
  const how = { paint, columns: Math.min(terminalColumns(context.stdout), 120), strict }
  return 'mails' in report
    ? lintText(report, shown, how)
    : reportText(report, shown, { ...how, platform: whichPlatform(context), live })
}

const keyOf = ({ id, present }: Pick<Finding, 'id' | 'present'>) => `${id} ${present.toSorted().join(' ')}`

async function readBaseline(context: Context, file: string): Promise<string[]> {
  const fail = (why: string) =>
    wrongUsage(`cannot use ${file} as a baseline: ${why}; make one with --format json.`)
  const text = await readTextFile(context, file).catch(() => {
    throw fail('it cannot be read')
  })
  try {
    const { findings } = JSON.parse(text.replace(/^\uFEFF/, '')) as {
      findings: readonly { readonly id: string; readonly present: readonly string[] }[]
    }
    return findings.map(keyOf)
  } catch {
    throw fail('it is not a report')
  }
}
