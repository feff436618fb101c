import { Option } from 'commander'
import type { Dialect } from '../../core/env/dialects/read.ts'
import type { Service } from '../../core/service.ts'
import type { Configure } from '../context.ts'
import {
  collect,
  dialectOption,
  durationOption,
  envFileOption,
  readersOption,
  serviceOption,
} from '../options.ts'
import { type ReportOptions, withReportOptions } from '../report.ts'

interface Options extends ReportOptions {
  readonly envFile: readonly string[]
  readonly service?: readonly Service[]
  readonly dialect?: Dialect
  readonly readers?: readonly Dialect[]
  readonly deep?: true
  readonly timeout: number
  readonly dkimSelector: readonly string[]
}

export const configure: Configure = (command, context, settle) => {
  withReportOptions(
    command
      .description(
        'Run the validators of all three services, as they run at boot: half-configuration is an error, all else at most a warning.',
      )
      .addOption(envFileOption())
      .addOption(serviceOption(context.platform.contract.services))
      .addOption(dialectOption())
      .addOption(readersOption())
      .option(
        '--deep',
        'live checks too, of what is configured: names, certificates, keys, mail records, migrations',
      )
      .addOption(
        durationOption(
          '--timeout <duration>',
          'with --deep: how long all live checks may take (10s, 1m)',
          '15s',
        ),
      )
      .addOption(
        new Option(
          '--dkim-selector <name>',
          'with --deep: a DKIM selector of the sender’s domain; repeatable',
        )
          .argParser(collect)
          .default([], 'none'),
      ),
  )
    .addHelpText(
      'after',
      `
Exit codes: 0 passed, 1 failed, 2 unreadable input, 3 passed here, but something outside was not reached or refused a key.

Examples:
  platformctl preflight                                   this process's environment
  platformctl preflight --env-file .env --strict          with a file, failing on warnings
  platformctl preflight --env-file .env --deep            and ask everything that is configured
  platformctl preflight --env-file .env --format github   annotations in a workflow
  platformctl preflight --env-file .env --format json > known.json
  platformctl preflight --env-file .env --strict --baseline known.json`,
    )
    .action(async (options: Options) => {
      const { checkEnvironment } = await import('../check-environment.ts')
      settle(
        await checkEnvironment(context, {
          ...options,
          name: 'preflight',
          services: options.service ?? context.platform.contract.services,
          files: options.envFile,
          withProcess: true,
          deep: options.deep && { timeoutMs: options.timeout, dkimSelectors: options.dkimSelector },
        }),
      )
    })
}
