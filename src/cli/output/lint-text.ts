import type { Finding } from '../../core/finding.ts'
import type { LintReport } from '../../core/mail/lint/lint.ts'
import { findingText, plural, type TextOptions } from './findings-text.ts'

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
