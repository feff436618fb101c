import { Option } from 'commander'
import type { Dialect } from '../../core/env/dialects/read.ts'
import type { Configure } from '../context.ts'
import { EXIT } from '../exit.ts'
import {
  collect,
  dialectOption,
  durationOption,
  envFileOption,
  formatOption,
  readersOption,
  subcommand,
} from '../options.ts'
import { type ReportOptions, withReportOptions } from '../report.ts'
import type { VerifyOptions } from '../verify-environment.ts'

type Format = 'text' | 'json'

export const configure: Configure = (command, context, settle) => {
  command.description(
    'The variables of the contract: list them with their state, explain one, or start an environment file.',
  )
  command.addHelpText(
    'after',
    '\nExamples:\n  platformctl env list --env-file .env\n  platformctl env check .env.production --strict\n  platformctl env explain MAILER_FROM',
  )
  withReportOptions(
    command
      .command('check')
      .summary('check one env file by itself')
      .description('Check one env file by itself, without the environment of this process.')
      .argument('<file>', 'the env file')
      .addOption(dialectOption())
      .addOption(readersOption()),
  )
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl env check .env.production --strict\n  platformctl env check .env --format sarif > env.sarif',
    )
    .action(
      async (
        file: string,
        options: ReportOptions & { readonly dialect?: Dialect; readonly readers?: readonly Dialect[] },
      ) => {
        const { checkEnvironment } = await import('../check-environment.ts')
        settle(
          await checkEnvironment(context, {
            ...options,
            name: 'env check',
            services: context.platform.contract.services,
            files: [file],
            withProcess: false,
          }),
        )
      },
    )
  subcommand(command, {
    name: 'schema',
    summary: 'print the contract as a JSON Schema',
    description:
      'Print the contract as a JSON Schema (2020-12): every variable a string, none required, and the rules of half-configuration.',
    examples: [' > env.schema.json', ' --report > report.schema.json'],
  })
    .option('--report', 'print the schema of what preflight --format json writes instead')
    .action(async ({ report }: { report?: true }) => {
      const schema = report
        ? (await import('../../core/live/report-schema.ts')).reportSchema(context.platform.contract)
        : (await import('../../core/env/schema.ts')).environmentSchema(context.platform.contract)
      context.stdout.write((await import('../print.ts')).jsonText(schema))
      settle(EXIT.passed)
    })
  subcommand(command, {
    name: 'dialects',
    summary: 'show how different readers parse an env file',
    description:
      'Show how each reader parses an env file: a row for each name on which they disagree. Values are never shown.',
    exits: '0 all agree, 1 some differ, 2 unreadable input.',
    examples: [' .env'],
  })
    .argument('<file>', 'the env file')
    .addOption(formatOption(['text', 'json']))
    .action(async (file: string, options: { format: Format }) => {
      const { compareDialects } = await import('../compare-environments.ts')
      settle(await compareDialects(context, file, options.format))
    })
  subcommand(command, {
    name: 'diff',
    summary: 'compare two env files by name and state only',
    description:
      'Compare two env files by name and state only: what is set in one and not in the other, what differs, which groups change. Values are never shown.',
    exits: '0 the same, 1 different, 2 unreadable input.',
    examples: [' .env.staging .env.production'],
  })
    .argument('<a>', 'an env file')
    .argument('<b>', 'another')
    .addOption(formatOption(['text', 'json']))
    .action(async (a: string, b: string, options: { format: Format }) => {
      const { diffEnvironments } = await import('../compare-environments.ts')
      settle(await diffEnvironments(context, [a, b], options.format))
    })
  command
    .command('verify')
    .summary('check that running services have the values of an env file')
    .description(
      'Check that running services have the values of an env file, by fingerprints. Values are never shown or sent.',
    )
    .addOption(envFileOption().makeOptionMandatory())
    .addOption(
      new Option(
        '--url <service=url...>',
        'addresses, as web=https://www.example.com; replicas are separated by commas',
      )
        .argParser(collect)
        .makeOptionMandatory(),
    )
    .option('--token-env <name>', 'the variable that holds the token (default: HEALTH_DEEP_TOKEN)')
    .option('--token-file <file>', 'a file that holds the token')
    .addOption(durationOption('--timeout <duration>', 'how long one replica may take', '30s'))
    .addOption(formatOption(['text', 'json', 'github', 'sarif']))
    .addHelpText(
      'after',
      `
BUILD_STAMP, and variables that the definition marks with perReplica, may differ.

Exit codes: 0 the same, 1 different, 2 unreadable input, 3 not reached or refused.

Examples:
  platformctl env verify --env-file .env.production --url web=https://www.example.com
  platformctl env verify --env-file .env --url web=http://10.0.0.1:3000,http://10.0.0.2:3000`,
    )
    .action(async (options: VerifyOptions) => {
      const { verifyEnvironment } = await import('../verify-environment.ts')
      settle(await verifyEnvironment(context, options))
    })
  subcommand(command, {
    name: 'list',
    summary: 'every group and variable, and whether it is set',
    description: 'Every group and variable, and whether it is set. Values are never shown.',
    examples: [' --env-file .env', ' --format json'],
  })
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .action(async (options: { envFile: readonly string[]; format: Format }) =>
      settle(await (await import('../variables.ts')).listVariables(context, options)),
    )
  subcommand(command, {
    name: 'explain',
    summary: 'explain a variable, a group or a finding',
    description: 'Explain a variable, a group or a finding, and how to fix it.',
    examples: [' MAILER_FROM', ' cors-wildcard'],
  })
    .argument(
      '<name>',
      'a variable (MAILER_FROM), a group (mail) or the id of a finding (mail-without-sender)',
    )
    .action(async (name: string) => settle(await (await import('../variables.ts')).explain(context, name)))
  subcommand(command, {
    name: 'example',
    summary: 'print a .env.example of every variable',
    description: 'Print an env file of every variable, each commented out, with what it is for.',
    examples: [' > .env'],
  }).action(async () => {
    const { exampleFile } = await import('../../core/env/schema.ts')
    context.stdout.write(exampleFile(context.platform.contract))
    settle(EXIT.passed)
  })
  subcommand(command, {
    name: 'types',
    summary: 'print the types of the environment as a declaration file',
    description:
      'Print a TypeScript declaration file of the environment: what readPlatformEnv gives, and the names in process.env.',
    examples: [' > platform-env.d.ts', ' --out src/platform-env.d.ts'],
  })
    .option('--out <file>', 'write it to this file instead, replacing what an earlier run wrote')
    .action(async ({ out }: { readonly out?: string }) => {
      const { writeTypes } = await import('../variables.ts')
      settle(await writeTypes(context, 'variables', out))
    })
}
