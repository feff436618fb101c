import type { Report } from '../../core/env/validate.ts'
import type { Finding, Location } from '../../core/finding.ts'
import type { Paint } from '../terminal.ts'
import { beside, plural } from './text.ts'

export interface TextOptions {
  readonly paint: Paint
  readonly columns: number
  readonly live?: string | undefined
  readonly strict: boolean
}

/** A report for a person: services, groups as a table, findings by severity, a verdict in one line. */
export function reportText(
  report: Report,
  shown: readonly Finding[],
  options: TextOptions & { readonly platform: string },
): string {
  const { paint, columns } = options
  const [errors, others] = [true, false].map((isError) =>
    blocks(shown.filter(({ severity }) => (severity === 'error') === isError)).map((block) =>
      blockText(block, paint, columns),
    ),
  ) as [string[], string[]] // One for each of the two.
  const parts = [
    [
      `${paint.bold('Platform')}  ${options.platform}`,
      `${paint.bold('Services')}  ${report.services.join(', ')}`,
    ].join('\n'),
    ...errors,
    groupTable(report, paint, columns),
    ...(options.live ? [options.live] : []),
    ...others,
    verdict(report, options),
  ]
  return `${parts.join('\n\n')}\n`
}

const SIGN = { configured: '●', 'half-configured': '◐', absent: '○' } as const

/** A line for each group that something is set of, and one for all that are absent. */
function groupTable(report: Report, paint: Paint, columns: number): string {
  const absent = report.groups.filter(({ state }) => state === 'absent').map(({ name }) => name)
  const present = report.groups.filter(({ state }) => state !== 'absent')
  const width = Math.max(...present.map(({ name }) => name.length)) + 2
  const colour = { configured: paint.green, 'half-configured': paint.red, absent: paint.dim }
  const lines = present.map(({ name, state, meaning }) => {
    const lead = `${colour[state](SIGN[state])} ${name.padEnd(width)}${colour[state](state.padEnd(17))}`
    return beside(lead, paint.dim(meaning), columns)
  })
  if (absent.length > 0)
    lines.push(beside(`${paint.dim(`${SIGN.absent} absent`)}  `, paint.dim(absent.join(', ')), columns))
  return lines.join('\n')
}

/** Groups warnings and notices of one kind with the same fix, at the position of the first. */
function blocks(findings: readonly Finding[]): readonly (readonly Finding[])[] {
  const key = (finding: Finding) => (finding.severity === 'error' ? finding : `${finding.id} ${finding.fix}`)
  return [...Map.groupBy(findings, key).values()]
}

function blockText(findings: readonly Finding[], paint: Paint, columns: number): string {
  const [first, ...more] = findings
  if (first === undefined || more.length === 0)
    return findings.map((one) => findingText(one, paint, columns)).join('')
  const times = paint.dim(`${findings.length} times`)
  const lines = [`${colourOf(first, paint)(MARK[first.severity])} ${paint.bold(first.id)}  ${times}`]
  const places = findings.map(({ location }) => (location ? placeOf(location) : ''))
  const width = Math.max(...places.map((place) => place.length)) + 2
  // Beside its place when there is room for a sentence, else below it.
  const besidePlace = columns - width - 2 >= 50
  for (const [index, { cause }] of findings.entries()) {
    const place = places[index] ?? ''
    if (besidePlace) lines.push(beside(`  ${paint.cyan(place.padEnd(width))}`, cause, columns))
    else lines.push(`  ${paint.cyan(place)}`, beside('    ', cause, columns))
  }
  lines.push(beside(`  ${paint.dim('fix'.padEnd(9))}`, first.fix, columns))
  return lines.join('\n')
}

function placeOf({ file, line, column }: Location): string {
  return `${file}:${line}:${column}`
}

const MARK = { error: '✖ error', warning: '▲ warning', notice: '· notice' } as const

const colourOf = ({ severity }: Finding, paint: Paint) =>
  ({ error: paint.red, warning: paint.yellow, notice: paint.dim })[severity]

export function findingText(finding: Finding, paint: Paint, columns: number): string {
  const { location } = finding
  const services = finding.services.join(', ')
  const place = location ? `  ${placeOf(location)}` : ''
  const head = `${MARK[finding.severity]} ${finding.id}${place}`
  const fits = head.length + 2 + services.length <= columns
  const lines = [
    `${colourOf(finding, paint)(MARK[finding.severity])} ${paint.bold(finding.id)}${paint.cyan(place)}${fits ? `  ${paint.dim(services)}` : ''}`,
  ]
  if (finding.excerpt !== undefined && location)
    lines.push(paint.dim(`${String(location.line).padStart(6)} │ `) + finding.excerpt)
  const list = (label: string, text: string) =>
    lines.push(beside(`  ${paint.dim(label.padEnd(9))}`, text, columns))
  if (!fits) list('services', services)
  list('cause', finding.cause)
  // A warning about one variable has named it in its cause.
  const { severity, present, missing } = finding
  if (severity === 'error' || (severity === 'warning' && (missing.length > 0 || present.length > 1))) {
    if (present.length > 0) list('present', present.join(', '))
    if (missing.length > 0) list('missing', missing.join(', '))
  }
  list('fix', finding.fix)
  return lines.join('\n')
}

function verdict(report: Report, { paint, strict, columns }: TextOptions): string {
  const count = (severity: Finding['severity']) =>
    report.findings.filter((finding) => finding.severity === severity).length
  const [errors, warnings] = [count('error'), count('warning')]
  const groups = (wanted: string) => report.groups.filter(({ state }) => state === wanted).length
  const half = groups('half-configured') === 0 ? '' : `, ${groups('half-configured')} half-configured`
  const found = `${plural(errors, 'error')}, ${plural(warnings, 'warning')}; ${groups('configured')} of ${report.groups.length} groups configured${half}`
  const failed = errors > 0 || (strict && warnings > 0)
  const colour = failed ? paint.red : paint.green
  return beside(
    colour(paint.bold(failed ? '✖ ' : '✔ ')),
    colour(paint.bold(`${failed ? 'failed' : 'passed'}: ${found}`)),
    columns,
  )
}
