import type { Report } from '../../core/env/validate.ts'
import type { Finding } from '../../core/finding.ts'
import type { Paint } from '../paint.ts'
import { wrap } from './wrap.ts'

export interface TextOptions {
  readonly paint: Paint
  readonly columns: number
  /** What the live checks gave, as a block of its own. */
  readonly live?: { readonly block: string; readonly counts: string } | undefined
  /** Notices too: what is absent and what that means. */
  readonly notices: boolean
  readonly strict: boolean
}

/** A report for a person: services, groups as a table, findings by severity, a verdict in one line. */
export function reportText(report: Report, options: TextOptions): string {
  const { paint } = options
  const shown = report.findings.filter((finding) => options.notices || finding.severity !== 'notice')
  const parts = [
    `${paint.bold('Services')}  ${report.services.join(', ')}`,
    groupTable(report, paint, options.columns),
    ...(options.live ? [options.live.block] : []),
    ...shown.map((finding) => findingText(finding, paint, options.columns)),
    verdict(report, options),
  ]
  return `${parts.join('\n\n')}\n`
}

const SIGN = { configured: '●', 'half-configured': '◐', absent: '○' } as const

function groupTable(report: Report, paint: Paint, columns: number): string {
  const width = Math.max(...report.groups.map(({ name }) => name.length)) + 2
  const state = 'half-configured'.length + 2
  const colour = { configured: paint.green, 'half-configured': paint.red, absent: paint.dim }
  return report.groups
    .map((group) => {
      const [first = '', ...rest] = wrap(group.meaning, Math.max(24, columns - width - state - 2))
      const lead = `${colour[group.state](SIGN[group.state])} ${group.name.padEnd(width)}${colour[group.state](group.state.padEnd(state))}`
      return [
        lead + paint.dim(first),
        ...rest.map((line) => ' '.repeat(width + state + 2) + paint.dim(line)),
      ].join('\n')
    })
    .join('\n')
}

const MARK = { error: '✖ error', warning: '▲ warning', notice: '· notice' } as const

export function findingText(finding: Finding, paint: Paint, columns: number): string {
  const colour = { error: paint.red, warning: paint.yellow, notice: paint.dim }[finding.severity]
  const { location } = finding
  const lines = [
    `${colour(MARK[finding.severity])} ${paint.bold(finding.id)}${location ? paint.cyan(`  ${location.file}:${location.line}:${location.column}`) : ''}  ${paint.dim(finding.services.join(', '))}`,
  ]
  if (finding.excerpt !== undefined && location)
    lines.push(paint.dim(`${String(location.line).padStart(6)} │ `) + finding.excerpt)
  const list = (label: string, text: string) => {
    const [first = '', ...rest] = wrap(text, columns - 11)
    lines.push(`  ${paint.dim(label.padEnd(9))}${first}`, ...rest.map((line) => ' '.repeat(11) + line))
  }
  list('cause', finding.cause)
  if (finding.severity !== 'notice') {
    if (finding.present.length > 0) list('present', finding.present.join(', '))
    if (finding.missing.length > 0) list('missing', finding.missing.join(', '))
  }
  list('fix', finding.fix)
  return lines.join('\n')
}

function verdict(report: Report, { paint, strict, live }: TextOptions): string {
  const count = (severity: Finding['severity']) =>
    report.findings.filter((finding) => finding.severity === severity).length
  const [errors, warnings] = [count('error'), count('warning')]
  const configured = report.groups.filter(({ state }) => state === 'configured').length
  const found = `${plural(errors, 'error')}, ${plural(warnings, 'warning')}; ${configured} of ${report.groups.length} groups configured${live ? `; ${live.counts}` : ''}`
  return errors > 0 || (strict && warnings > 0)
    ? paint.red(paint.bold(`✖ failed: ${found}`))
    : paint.green(paint.bold(`✔ passed: ${found}`))
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
