import type { Finding } from '../../core/finding.ts'
import type { LiveResult, LiveState } from '../../core/live/live.ts'
import type { LintReport } from '../../core/mail/lint/lint.ts'
import type { Paint } from '../terminal.ts'
import { findingText, type TextOptions } from './findings-text.ts'
import { beside, plural } from './text.ts'

const SIGN: Readonly<Record<LiveState, string>> = { passed: '✔', warning: '▲', failed: '✖', skipped: '○' }

/**
 * Live checks for a person: a block a target, a line a check. What was skipped says so in words, and what was skipped
 * for one reason shares a line.
 */
export function liveText(results: readonly LiveResult[], paint: Paint, columns: number): string {
  const colour = { passed: paint.dim, warning: paint.yellow, failed: paint.red, skipped: paint.dim }
  const sign = { ...colour, passed: paint.green }
  const tried = results.filter(({ check }) => check !== 'configuration')
  const widthOf = (texts: readonly string[]) => Math.max(0, ...texts.map((text) => text.length)) + 2
  const targets = widthOf(results.map(({ target }) => target))
  const checks = widthOf(tried.map(({ check }) => check))
  const line = (lead: string, state: LiveState, check: string, text: string) =>
    beside(`${lead}${sign[state](SIGN[state])} ${check}`, colour[state](text), columns)
  const lines: string[] = []
  for (const [target, ofTarget] of Map.groupBy(tried, (result) => result.target)) {
    const runs = Map.groupBy(ofTarget, ({ state, detail, check }) => (state === 'skipped' ? detail : check))
    for (const [index, run] of [...runs.values()].entries()) {
      const [first] = run
      if (first === undefined) continue
      const lead = (index === 0 ? target : '').padEnd(targets)
      const { state, check, detail, latencyMs } = first
      if (state === 'skipped' && run.length > 1)
        lines.push(line(lead, state, '', `skipped (${detail}): ${run.map((one) => one.check).join(', ')}`))
      else {
        const text = state === 'skipped' ? `skipped: ${detail}` : `${detail}${took(latencyMs)}`
        lines.push(line(lead, state, check.padEnd(checks), text))
      }
    }
  }
  const untried = results.filter(({ check }) => check === 'configuration')
  for (const [reason, skipped] of Map.groupBy(untried, ({ detail }) => detail))
    lines.push(
      line('', 'skipped', '', `skipped (${reason}): ${skipped.map(({ target }) => target).join(', ')}`),
    )
  return `${paint.bold('Live checks')}  ${liveCounts(results)}\n\n${lines.join('\n')}`
}

/** Below a millisecond nothing was waited for. */
function took(latencyMs = 0): string {
  return latencyMs < 1 ? '' : `, ${Math.round(latencyMs)} ms`
}

/** `12 passed, 1 failed, 4 skipped`: states that did not occur are left out, but never that nothing passed. */
export function liveCounts(results: readonly LiveResult[]): string {
  const count = (state: LiveState) => results.filter((result) => result.state === state).length
  const parts = [`${count('passed')} passed`]
  for (const [state, word] of [
    ['warning', 'doubtful'],
    ['failed', 'failed'],
    ['skipped', 'skipped'],
  ] as const)
    if (count(state) > 0) parts.push(`${count(state)} ${word}`)
  return parts.join(', ')
}

/** The mails with their sizes, what was found in them, and a verdict in one line. */
export function lintText(report: LintReport, shown: readonly Finding[], options: TextOptions): string {
  const { paint, columns, strict } = options
  const count = (severity: Finding['severity']) =>
    report.findings.filter((finding) => finding.severity === severity).length
  const [errors, warnings] = [count('error'), count('warning')]
  const name = Math.max(...report.mails.map((mail) => mail.name.length)) + 2
  const table = report.mails.map((mail) => {
    const mark = mail.errors > 0 ? paint.red('✖') : mail.warnings > 0 ? paint.yellow('▲') : paint.green('✔')
    const size = `${(mail.htmlBytes / 1024).toFixed(1).padStart(5)} KB`
    return `${mark} ${mail.name.padEnd(name)}${mail.htmlBytes === 0 ? '       –' : size}  ${paint.dim(mail.subject)}`.trimEnd()
  })
  const verdict = `${plural(errors, 'error')}, ${plural(warnings, 'warning')} in ${plural(report.mails.length, 'mail')}`
  const failed = errors > 0 || (strict && warnings > 0)
  return `${[
    table.join('\n'),
    ...shown.map((finding) => findingText(finding, paint, columns)),
    failed ? paint.red(paint.bold(`✖ failed: ${verdict}`)) : paint.green(paint.bold(`✔ passed: ${verdict}`)),
  ].join('\n\n')}\n`
}
