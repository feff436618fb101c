import { checkEnvironment } from '../check-environment.ts'
import { command, type Define } from '../command.ts'
import { duration, ENV_FILE, format, type Input, READERS, repeatable, TOKEN, value } from '../inputs.ts'
import { jsonText } from '../output/text.ts'
import { REPORT_INPUTS } from '../report.ts'

const EXPLAINED: Input<string> = {
  help: 'a variable (MAILER_FROM), a group (mail) or the id of a finding (mail-without-sender)',
  offers: ({ contract: { variables, groups } }) => [...variables, ...groups].map(({ name }) => name),
}

export const define: Define = () => ({
  examples: ['list --env-file .env', 'check .env.production --strict', 'explain MAILER_FROM'],
  commands: {
    check: command({
      summary: 'check one env file by itself',
      description: 'Check one env file by itself, without the environment of this process.',
      examples: ['.env.production --strict', '.env --format sarif > env.sarif'],
      inputs: { '<file>': 'the env file', ...READERS, ...REPORT_INPUTS },
      run: (context, { file, ...values }) =>
        checkEnvironment(context, {
          ...values,
          name: 'env check',
          services: context.platform.contract.services,
          files: [file],
          withProcess: false,
        }),
    }),
    schema: command({
      summary: 'print the contract as a JSON Schema',
      description:
        'Print the contract as a JSON Schema (2020-12): every variable a string, none required, and the rules of half-configuration.',
      examples: ['> env.schema.json', '--report > report.schema.json'],
      inputs: { '--report': 'print the schema of what preflight --format json writes instead' },
      async run(context, { report }) {
        const { contract } = context.platform
        const schema = report
          ? (await import('../documents/environment.ts')).reportSchema(contract)
          : (await import('../../core/env/schema.ts')).environmentSchema(contract)
        return jsonText(schema)
      },
    }),
    dialects: command({
      summary: 'show how different readers parse an env file',
      description:
        'Show how each reader parses an env file: a row for each name on which they disagree. Values are never shown.',
      exits: '0 all agree, 1 some differ, 2 unreadable input.',
      examples: ['.env'],
      document: 'env dialects',
      inputs: { '<file>': 'the env file' },
      run: async (context, { file }) =>
        (await import('../compare-environments.ts')).compareDialects(context, file),
    }),
    diff: command({
      summary: 'compare two env files by name and state only',
      description:
        'Compare two env files by name and state only: what is set in one and not in the other, what differs, which groups change. Values are never shown.',
      exits: '0 the same, 1 different, 2 unreadable input.',
      examples: ['.env.staging .env.production'],
      document: 'env diff',
      inputs: { '<a>': 'an env file', '<b>': 'another' },
      run: async (context, { a, b }) =>
        (await import('../compare-environments.ts')).diffEnvironments(context, [a, b]),
    }),
    verify: command({
      summary: 'check that running services have the values of an env file',
      description:
        'Check that running services have the values of an env file, by fingerprints. Values are never shown or sent.',
      notes: 'BUILD_STAMP, and variables that the definition marks with perReplica, may differ.',
      exits: '0 the same, 1 different, 2 unreadable input, 3 not reached or refused.',
      examples: [
        '--env-file .env.production --url web=https://www.example.com',
        '--env-file .env --url web=http://10.0.0.1:3000,http://10.0.0.2:3000',
      ],
      inputs: {
        '-e, --env-file <file>': { ...ENV_FILE['-e, --env-file <file>'], required: true },
        '--url <service=url...>': {
          ...repeatable('addresses, as web=https://www.example.com; replicas are separated by commas'),
          required: true,
        },
        ...TOKEN,
        '--timeout <duration>': value('how long one replica may take', duration, 30_000, '30s'),
        ...format('text', 'json', 'github', 'sarif'),
      },
      run: async (context, values) =>
        (await import('../verify-environment.ts')).verifyEnvironment(context, values),
    }),
    list: command({
      summary: 'every group and variable, and whether it is set',
      description: 'Every group and variable, and whether it is set. Values are never shown.',
      examples: ['--env-file .env', '--format json'],
      document: 'env list',
      inputs: ENV_FILE,
      run: async (context, { envFile }) => (await import('../variables.ts')).listVariables(context, envFile),
    }),
    explain: command({
      summary: 'explain a variable, a group or a finding',
      description: 'Explain a variable, a group or a finding, and how to fix it.',
      examples: ['MAILER_FROM', 'cors-wildcard'],
      inputs: { '<name>': EXPLAINED },
      run: async (context, { name }) => (await import('../variables.ts')).explain(context, name),
    }),
    example: command({
      summary: 'print a .env.example of every variable',
      description: 'Print an env file of every variable, each commented out, with what it is for.',
      examples: ['> .env'],
      run: async ({ platform }) => (await import('../../core/env/schema.ts')).exampleFile(platform.contract),
    }),
    types: command({
      summary: 'print the types of the environment as a declaration file',
      description:
        'Print a TypeScript declaration file of the environment: what readPlatformEnv gives, and the names in process.env.',
      examples: ['> platform-env.d.ts', '--out src/platform-env.d.ts'],
      inputs: { '--out <file>': 'write it to this file instead, replacing what an earlier run wrote' },
      run: async (context, { out }) =>
        (await import('../variables.ts')).writeTypes(context, 'variables', out),
    }),
  },
})
