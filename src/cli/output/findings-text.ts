import type { Report } from '../../core/env/validate.ts'
import type { Finding, Location } from '../../core/finding.ts'
import type { LiveResult, LiveState } from '../../core/live/live.ts'
import type { LintReport } from '../../core/mail/lint/lint.ts'
import type { Paint } from '../context.ts'
import { beside, compact, plural } from './text.ts'

export interface TextOptions {
  readonly paint: Paint
  readonly columns: number
  readonly strict: boolean
}

/** A report for a person: services, groups as a table, findings by severity, a verdict in one line. */
export function reportText(
  report: Report,
  shown: readonly Finding[],
  options: TextOptions & { readonly platform: string; readonly live?: readonly LiveResult[] | undefined },
): string {
  const { paint, columns, platform, live } = options
  const texts = (isError: boolean) =>
    blocks(shown.filter(({ severity }) => (severity === 'error') === isError)).map((block) =>
      blockText(block, paint, columns),
    )
  const parts = compact(
    `${paint.bold('Platform')}  ${platform}\n${paint.bold('Services')}  ${report.services.join(', ')}`,
    ...texts(true),
    groupTable(report, paint, columns),
    live && liveText(live, paint, columns),
    ...texts(false),
    verdict(report.findings, options, groupsText(report)),
  )
  return `${parts.join('\n\n')}\n`
}

const GROUP_SIGN = { configured: '●', 'half-configured': '◐', absent: '○' } as const

/** A line for each group that something is set of, and one for all that are absent. */
function groupTable(report: Report, paint: Paint, columns: number): string {
  const absent = report.groups.flatMap(({ state, name }) => (state === 'absent' ? [name] : []))
  const present = report.groups.filter(({ state }) => state !== 'absent')
  const width = Math.max(...present.map(({ name }) => name.length)) + 2
  const colour = { configured: paint.green, 'half-configured': paint.red, absent: paint.dim }
  const lines = present.map(({ name, state, meaning }) => {
    const lead = `${colour[state](GROUP_SIGN[state])} ${name.padEnd(width)}${colour[state](state.padEnd(17))}`
    return beside(lead, paint.dim(meaning), columns)
  })
  if (absent.length > 0)
    lines.push(beside(`${paint.dim(`${GROUP_SIGN.absent} absent`)}  `, paint.dim(absent.join(', ')), columns))
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
  const width = places.reduce((most, { length }) => Math.max(most, length), 0) + 2
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

const placeOf = ({ file, line, column }: Location) => `${file}:${line}:${column}`

const MARK = { error: '✖ error', warning: '▲ warning', notice: '· notice' } as const

const colourOf = ({ severity }: Finding, paint: Paint) =>
  ({ error: paint.red, warning: paint.yellow, notice: paint.dim })[severity]

export function findingText(finding: Finding, paint: Paint, columns: number): string {
  const { location, severity, present, missing } = finding
  const services = finding.services.join(', ')
  const place = location ? `  ${placeOf(location)}` : ''
  const head = `${MARK[severity]} ${finding.id}${place}`
  const fits = head.length + 2 + services.length <= columns
  const lines = [
    `${colourOf(finding, paint)(MARK[severity])} ${paint.bold(finding.id)}${paint.cyan(place)}${fits ? `  ${paint.dim(services)}` : ''}`,
  ]
  if (finding.excerpt !== undefined && location)
    lines.push(paint.dim(`${String(location.line).padStart(6)} │ `) + finding.excerpt)
  const list = (label: string, text: string) =>
    lines.push(beside(`  ${paint.dim(label.padEnd(9))}`, text, columns))
  if (!fits) list('services', services)
  list('cause', finding.cause)
  // A warning about one variable has named it in its cause.
  if (severity === 'error' || (severity === 'warning' && (missing.length > 0 || present.length > 1))) {
    if (present.length > 0) list('present', present.join(', '))
    if (missing.length > 0) list('missing', missing.join(', '))
  }
  list('fix', finding.fix)
  return lines.join('\n')
}

function verdict(findings: readonly Finding[], options: TextOptions, about: string): string {
  const { paint, strict, columns } = options
  const [errors = 0, warnings = 0] = ['error', 'warning'].map(
    (severity) => findings.filter((finding) => finding.severity === severity).length,
  )
  const failed = errors > 0 || (strict && warnings > 0)
  const colour = (text: string) => (failed ? paint.red : paint.green)(paint.bold(text))
  const found = `${plural(errors, 'error')}, ${plural(warnings, 'warning')}${about}`
  return beside(colour(failed ? '✖ ' : '✔ '), colour(`${failed ? 'failed' : 'passed'}: ${found}`), columns)
}

function groupsText({ groups }: Report): string {
  const count = (wanted: string) => groups.filter(({ state }) => state === wanted).length
  const half = count('half-configured')
  return `; ${count('configured')} of ${groups.length} groups configured${half === 0 ? '' : `, ${half} half-configured`}`
}

const LIVE_SIGN = { passed: '✔', warning: '▲', failed: '✖', skipped: '○' } as const

/** Live checks for a person: a block a target, a line a check. What was skipped for one reason shares a line. */
export function liveText(results: readonly LiveResult[], paint: Paint, columns: number): string {
  const colour = { passed: paint.dim, warning: paint.yellow, failed: paint.red, skipped: paint.dim }
  const sign = { ...colour, passed: paint.green }
  const tried = results.filter(({ check }) => check !== 'configuration')
  const widthOf = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length)) + 2
  const targets = widthOf(results.map(({ target }) => target))
  const checks = widthOf(tried.map(({ check }) => check))
  const line = (lead: string, state: LiveState, check: string, text: string) =>
    beside(`${lead}${sign[state](LIVE_SIGN[state])} ${check}`, colour[state](text), columns)
  const lines: string[] = []
  for (const [target, ofTarget] of Map.groupBy(tried, (result) => result.target)) {
    const runs = Map.groupBy(ofTarget, ({ state, detail, check }) => (state === 'skipped' ? detail : check))
    const texts = [...runs.values()].flatMap(([first, ...more], index) => {
      if (first === undefined) return []
      const lead = (index === 0 ? target : '').padEnd(targets)
      const { state, check, detail, latencyMs = 0 } = first
      const all = [first, ...more].map((one) => one.check).join(', ')
      // Below a millisecond nothing was waited for.
      const took = latencyMs < 1 ? '' : `, ${Math.round(latencyMs)} ms`
      if (state !== 'skipped') return line(lead, state, check.padEnd(checks), detail + took)
      return more.length > 0
        ? line(lead, state, '', `skipped (${detail}): ${all}`)
        : line(lead, state, check.padEnd(checks), `skipped: ${detail}`)
    })
    lines.push(...texts)
  }
  const untried = results.filter(({ check }) => check === 'configuration')
  for (const [reason, skipped] of Map.groupBy(untried, ({ detail }) => detail)) {
    const all = skipped.map(({ target }) => target).join(', ')
    lines.push(line('', 'skipped', '', `skipped (${reason}): ${all}`))
  }
  return `${paint.bold('Live checks')}  ${liveCounts(results)}\n\n${lines.join('\n')}`
}

/** `12 passed, 1 failed, 4 skipped`: states that did not occur are left out, but never that nothing passed. */
export function liveCounts(results: readonly LiveResult[]): string {
  const count = (state: LiveState) => results.filter((result) => result.state === state).length
  const [doubtful, failed, skipped] = [count('warning'), count('failed'), count('skipped')]
  return compact(
    `${count('passed')} passed`,
    doubtful > 0 && `${doubtful} doubtful`,
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} skipped`,
  ).join(', ')
}

export function lintText(report: LintReport, shown: readonly Finding[], options: TextOptions): string {
  const { paint, columns } = options
  const name = Math.max(...report.mails.map((mail) => mail.name.length)) + 2
  const table = report.mails.map((mail) => {
    const mark = mail.errors > 0 ? paint.red('✖') : mail.warnings > 0 ? paint.yellow('▲') : paint.green('✔')
    const size = `${(mail.htmlBytes / 1024).toFixed(1).padStart(5)} KB`
    return `${mark} ${mail.name.padEnd(name)}${mail.htmlBytes === 0 ? '       –' : size}  ${paint.dim(mail.subject)}`.trimEnd()
  })
  return `${[
    table.join('\n'),
    ...shown.map((finding) => findingText(finding, paint, columns)),
    verdict(report.findings, options, ` in ${plural(report.mails.length, 'mail')}`),
  ].join('\n\n')}\n`
}
