import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { storeFault, storeFaultReason } from '../core/store-fault.ts'
import { type Configure, type Context, terminalColumns } from './context.ts'
import { CommandError, EXIT, type ExitCode, templateFaultText } from './exit.ts'
import { wrap } from './output/text.ts'
import { withGuardedOutput } from './terminal.ts'

/**
 * Adds a command's options, sub-commands and actions. Each action ends with `settle(exitCode)`; what it needs
 * beyond parsing its options it imports when it runs, so that `--help` stays instant.
 */

interface Row {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<{ readonly configure: Configure }>
}

/** The command tree: one row a command, one file each, loaded only when it is called. */
const COMMANDS: readonly Row[] = [
  {
    name: 'preflight',
    summary: 'validate the environment of the three services before a deploy',
    load: () => import('./commands/preflight.ts'),
  },
  {
    name: 'env',
    summary: 'the contract of variables: check, list, explain, example, diff, verify, schema, dialects',
    load: () => import('./commands/env.ts'),
  },
  {
    name: 'init',
    summary: 'write a platform definition to start from',
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'deploy',
    summary: 'write what a server needs to run the platform: units, images, manifests',
    load: () => import('./commands/deploy.ts'),
  },
  {
    name: 'status',
    summary: 'the daemon on one screen: services, store, schedule, backlog, problems',
    load: () => import('./commands/status.ts'),
  },
  {
    name: 'health',
    summary: 'ask the running services for their health; the smoke test of a deployment',
    load: () => import('./commands/health.ts'),
  },
  {
    name: 'dispatch',
    summary: 'send the lessons that are due',
    load: () => import('./commands/dispatch.ts'),
  },
  {
    name: 'course',
    summary: 'manage courses, subscriptions and deliveries that need a decision',
    load: () => import('./commands/course.ts'),
  },
  {
    name: 'db',
    summary: 'manage the store: status, migrate, backup, restore, copy, verify',
    load: () => import('./commands/db.ts'),
  },
  {
    name: 'alert',
    summary: 'alerts about incidents: list, test, ack, silence',
    load: () => import('./commands/alert.ts'),
  },
  {
    name: 'beat',
    summary: 'report that a job ran, or run it and report how it ended',
    load: () => import('./commands/beat.ts'),
  },
  {
    name: 'billing',
    summary: 'try payments end to end without moving money',
    load: () => import('./commands/billing.ts'),
  },
  {
    name: 'email',
    summary: 'preview, check and send mails, and act on bounces and complaints',
    load: () => import('./commands/email.ts'),
  },
  {
    name: 'mail',
    summary: 'stop mail in an emergency, resume it, and see what waits',
    load: () => import('./commands/mail.ts'),
  },
  {
    name: 'analytics',
    summary: 'count the stored events of visitors by kind and day',
    load: () => import('./commands/analytics.ts'),
  },
  {
    name: 'daemon',
    summary: 'run the services, the store and the schedule in one process',
    load: () => import('./commands/daemon.ts'),
  },
  {
    name: 'witness',
    summary: 'watch the platform from another machine, and serve its status when it cannot',
    load: () => import('./commands/witness.ts'),
  },
  {
    name: 'demo',
    summary: 'run the whole platform on this machine, with a mail inbox and a fast clock',
    load: () => import('./commands/demo.ts'),
  },
  {
    name: 'runbook',
    summary: 'print what to do about an alert, or how to run, back up and upgrade the platform',
    load: () => import('./commands/runbook.ts'),
  },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    load: () => import('./commands/completion.ts'),
  },
]

export const COMMAND_NAMES: readonly string[] = COMMANDS.map(({ name }) => name)

/** Builds the program with the named command configured (`undefined`: all of them). */
export async function buildProgram(
  context: Context,
  name: string | undefined,
  settle: (code: ExitCode) => void,
): Promise<Command> {
  const program = new Command('platformctl')
    .description(
      'Validate, run and operate a small web platform: every integration optional, every degradation visible.',
    )
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--no-color', 'write without color (as NO_COLOR does)')
    .option(
      '--config <file>',
      'the platform definition (default: platform.config.* in the working directory)',
    )
    .option('--no-config', 'ignore the definition in the working directory')
    .helpOption('-h, --help', 'show help')
    .configureHelp({ minWidthToWrap: 15 })
    .helpCommand('help [command]', 'show help for a command')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(fitted(text, context.stdout.columns)),
      writeErr: (text) => context.stderr.write(fitted(text, context.stderr.columns)),
      // Wrong usage is reported by `reportFault`, in the form of every other fault.
      outputError: () => {},
      getOutHelpWidth: () => terminalColumns(context.stdout),
      getErrHelpWidth: () => terminalColumns(context.stderr),
      getOutHasColors: () => context.colour.stdout,
      getErrHasColors: () => context.colour.stderr,
    })
  for (const row of COMMANDS) {
    const command = program.command(row.name).summary(row.summary).description(row.summary)
    if (name === undefined || name === row.name) {
      const { configure } = await row.load()
      configure(command, context, settle, () => buildProgram(context, undefined, settle))
    }
  }
  return program
}

/** Help wrapped to the terminal. Commander has wrapped its lists; an example stays on its line, to be copied. */
function fitted(text: string, columns: number | undefined): string {
  if (!columns) return text
  const lines = text.split('\n')
  return lines.flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, columns))).join('\n')
}

/** Runs one command line and gives its exit code; writes faults as one sentence, without a stack trace. */
export async function runProgram(argv: readonly string[], unguarded: Context): Promise<ExitCode> {
  const context = withGuardedOutput(unguarded)
  let code: ExitCode = EXIT.passed
  const named = argv[0] === 'help' ? argv[1] : argv[0]
  try {
    const program = await buildProgram(context, named ?? '', (settled) => {
      code = settled
    })
    if (argv.length === 0) {
      program.outputHelp()
      return EXIT.passed
    }
    await program.parseAsync(misnamed(program, argv) ?? argv, { from: 'user' })
    return code
  } catch (error) {
    return reportFault(error, context)
  }
}

/**
 * A help request for an unknown command, cut after the unknown word, so that parsing it reports that word. As a
 * request for help it would be answered with the help of the parent, as if all were well.
 */
function misnamed(program: Command, argv: readonly string[]): readonly string[] | undefined {
  const asks = argv.some((word) => word === '--help' || word === '-h')
  const words = argv[0] === 'help' ? argv.slice(1) : asks ? argv : []
  let command = program
  for (const [index, word] of words.entries()) {
    if (word.startsWith('-') || word === 'help' || command.commands.length === 0) return undefined
    const next = command.commands.find((child) => child.name() === word)
    if (next === undefined) return words.slice(0, index + 1)
    command = next
  }
  return undefined
}

/** Reports a failed command on standard error, without text from outside, and returns the exit code. */
export function reportFault(error: unknown, context: Context): ExitCode {
  if (error instanceof CommanderError) {
    // Help and version end a run too, and are not failures.
    if (error.exitCode === 0) return EXIT.passed
    // A command that needs a sub-command has written its help.
    if (error.code === 'commander.help') return EXIT.usage
    context.stderr.write(`platformctl: ${usageFault(error.message)}\n`)
    return EXIT.usage
  }
  if (error instanceof CommandError) {
    context.stderr.write(`platformctl: ${error.message.replaceAll('\n', '\\n')}\n`)
    return error.exitCode
  }
  if (error instanceof Error && error.name === 'DefinitionError') {
    context.stderr.write(`platformctl: ${error.message}\n`)
    return EXIT.usage
  }
  if (error instanceof Error && error.name === 'TemplateError') {
    context.stderr.write(`platformctl: ${templateFaultText(context.cwd, error)}\n`)
    return EXIT.usage
  }
  if (isStoreUnavailable(error)) {
    // A store that closed itself says what may be lost, which matters more than why.
    const known = !('final' in error && error.final === true) && storeFault(error) !== 'unknown'
    context.stderr.write(
      `platformctl: ${known ? `the store cannot be used: ${storeFaultReason(error)}.` : error.message}\n`,
    )
    return EXIT.remote
  }
  context.stderr.write('platformctl: internal fault; please report it with the lines below.\n')
  context.stderr.write(`${error instanceof Error ? error.name : typeof error}\n`)
  for (const frame of framesOf(error)) context.stderr.write(`${frame}\n`)
  return EXIT.internal
}

/** Commander's message as one sentence: with its suggestion, or with where to read on. */
function usageFault(message: string): string {
  const [fault = '', suggestion] = message
    .replace(
      /^error: (?:command-argument value ('.*') is invalid for argument '(\w+)')?/,
      (_, value, name) => (name ? `${value} cannot be the ${name}` : ''),
    )
    .split('\n')
  const sentence = fault.endsWith('.') ? fault : `${fault}.`
  return `${sentence} ${suggestion === undefined ? 'Add --help for usage.' : suggestion.replace(/^\(|\)$/g, '')}`
}

/** Compares codes, so that no command has to load a class. The message of our own error may be shown. */
function isStoreUnavailable(error: unknown): error is Error {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'store_unavailable' ||
      (String(error.code).startsWith('SQLITE_') && storeFault(error) !== 'unknown'))
  )
}

/** Where it happened. What comes before the frames is left out, because an error's message can quote a value. */
function framesOf(error: unknown): string[] {
  if (!(error instanceof Error) || error.stack === undefined) return []
  const message = error.stack.indexOf(error.message)
  const frames = message === -1 ? '' : error.stack.slice(message + error.message.length)
  return frames
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 12)
}
