import { SERVICES, type Service } from '../../core/service.ts'
import { EXIT } from '../exit.ts'
import { envFileOption, formatOption, serviceOption } from '../options.ts'
import type { Configure } from '../program.ts'

interface Options {
  readonly envFile: readonly string[]
  readonly service?: readonly Service[]
  readonly strict?: true
  readonly notices?: true
  readonly format: 'text' | 'json'
}

export const configure: Configure = (command, context, settle) => {
  command
    .description(
      'Run the validators of all three services, as they run at boot: half-configuration is an error, all else at most a warning.',
    )
    .addOption(envFileOption())
    .addOption(serviceOption())
    .option('--strict', 'fail on warnings too')
    .option('--notices', 'show what is not configured and what that means as findings')
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 passed, 1 failed, 2 unreadable input.

Examples:
  platformctl preflight                                   this process's environment
  platformctl preflight --env-file .env --strict          with a file, failing on warnings
  platformctl preflight --env-file .env --service api --format json`,
    )
    .action(async (options: Options) => {
      const { loadEnvironment } = await import('../environment.ts')
      const { validate } = await import('../../core/env/validate.ts')
      const loaded = await loadEnvironment(context, options.envFile)
      const validated = validate(loaded.env, options.service ?? SERVICES, loaded.origin)
      const report = { ...validated, findings: [...validated.findings, ...loaded.findings].sort(bySeverity) }
      if (options.format === 'json') {
        context.stdout.write((await import('../output/json.ts')).jsonText(report))
      } else {
        const { reportText } = await import('../output/findings-text.ts')
        context.stdout.write(
          reportText(report, {
            colour: context.colour.stdout,
            columns: Math.min(context.stdout.columns ?? 100, 120),
            notices: options.notices === true,
            strict: options.strict === true,
          }),
        )
      }
      const warned = report.findings.some((finding) => finding.severity === 'warning')
      settle(!report.ok || (options.strict && warned) ? EXIT.failed : EXIT.passed)
    })
}

function bySeverity(a: { severity: string }, b: { severity: string }): number {
  const rank = ['error', 'warning', 'notice']
  return rank.indexOf(a.severity) - rank.indexOf(b.severity)
}
