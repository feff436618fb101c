import { Argument, Command, CommanderError, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { codeOf, framesOf, storeFault, storeFaultReason } from '../core/errors.ts'
import {
  afterHelp,
  type CommandData,
  type CommandNode,
  camel,
  type Define,
  descriptionOf,
  inputOf,
  nodeOf,
} from './command.ts'
import type { Context, ExitCode } from './context.ts'
import {
  CommandError,
  EXIT,
  templateFaultText,
  terminalColumns,
  withGuardedOutput,
  wrongUsage,
} from './context.ts'
import type { Input } from './inputs.ts'
import { complain, jsonText, wrap } from './output/text.ts'

/** The commands in the order of the help. What a command needs beyond its inputs it imports when it runs. */
const SUMMARIES = {
  preflight: 'validate the environment of all services before a deploy',
  env: 'environment variables: check, list, explain, example, diff, verify, schema, dialects',
  init: 'write a platform definition to start from',
  deploy: 'write what a server needs to run the platform: units, images, manifests',
  status: 'the daemon on one screen: services, store, schedule, backlog, problems',
  health: 'ask the running services for their health; the smoke test of a deployment',
  dispatch: 'send the lessons that are due',
  course: 'manage courses, subscriptions and deliveries that need a decision',
  db: 'manage the store: status, migrate, backup, restore, copy, verify',
  alert: 'alerts about incidents: list, test, ack, silence',
  beat: 'report that a job ran, or run it and report how it ended',
  billing: 'try payments end to end without moving money',
  email: 'preview, check and send mails, and act on bounces and complaints',
  mail: 'stop mail in an emergency, resume it, and see what waits',
  analytics: 'count the stored events of visitors by kind and day',
  daemon: 'run the services, the store and the schedule in one process',
  witness: 'watch the platform from another machine, and serve its status when it cannot',
  demo: 'run the whole platform on this machine, with a mail inbox and a fast clock',
  runbook: 'print what to do about an alert, or how to run, back up and upgrade the platform',
  completion: 'print a completion script for bash, zsh or fish',
} as const

type CommandName = keyof typeof SUMMARIES

/** Each in a file of its own, loaded only when it is called. */
const FILES: Readonly<Record<CommandName, () => Promise<{ readonly define: Define }>>> = {
  alert: () => import('./commands/alert.ts'),
  analytics: () => import('./commands/analytics.ts'),
  beat: () => import('./commands/beat.ts'),
  billing: () => import('./commands/billing.ts'),
  completion: () => import('./commands/completion.ts'),
  course: () => import('./commands/course.ts'),
  daemon: () => import('./commands/daemon.ts'),
  db: () => import('./commands/db.ts'),
  demo: () => import('./commands/demo.ts'),
  deploy: () => import('./commands/deploy.ts'),
  dispatch: () => import('./commands/dispatch.ts'),
  email: () => import('./commands/email.ts'),
  env: () => import('./commands/env.ts'),
  health: () => import('./commands/health.ts'),
  init: () => import('./commands/init.ts'),
  mail: () => import('./commands/mail.ts'),
  preflight: () => import('./commands/preflight.ts'),
  runbook: () => import('./commands/runbook.ts'),
  status: () => import('./commands/status.ts'),
  witness: () => import('./commands/witness.ts'),
}

export const COMMAND_NAMES = Object.keys(SUMMARIES) as readonly CommandName[]

const ROOT: CommandData = {
  description:
    'Validate, run and operate a small web platform: every integration optional, every degradation visible.',
  inputs: {
    '-V, --version': 'print the version',
    '--no-color': 'write without color (as NO_COLOR does)',
    '--config <file>': 'the platform definition (default: platform.config.* in the working directory)',
    '--no-config': 'ignore the definition in the working directory',
  },
}

async function load(name: CommandName, context: Context): Promise<CommandData> {
  const { define } = await FILES[name]()
  return { ...define(context, () => commandTree(context)), summary: SUMMARIES[name] }
}

/** The whole command tree as data, for completion and the pages made from it. */
export async function commandTree(context: Context): Promise<CommandNode> {
  const loaded = COMMAND_NAMES.map(async (name) => [name, await load(name, context)] as const)
  return nodeOf([], { ...ROOT, commands: Object.fromEntries(await Promise.all(loaded)) }, context.platform)
}

/** Builds the program with the named command, or with the names and summaries of all. */
async function buildProgram(context: Context, named: string | undefined, settle: (code: ExitCode) => void) {
  const program = new Command('platformctl')
    .version(packageJson.version, '-V, --version', 'print the version')
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
  const { '-V, --version': _, ...inputs } = ROOT.inputs ?? {}
  attach(program, [], { ...ROOT, inputs })
  const known = COMMAND_NAMES.find((name) => name === named)
  // The others are in the way of a cold start: only a mistyped name is compared with them.
  for (const name of known === undefined ? COMMAND_NAMES : [known]) {
    const data = name === known ? await load(name, context) : { description: SUMMARIES[name] }
    attach(program.command(name).summary(SUMMARIES[name]), [name], data)
  }
  return program

  function attach(command: Command, path: readonly string[], data: CommandData): void {
    const { inputs = {}, commands = {}, run } = data
    command.description(descriptionOf(data)).addHelpText('after', afterHelp(path, data))
    for (const [flags, input] of Object.entries(inputs))
      if (flags.startsWith('-')) command.addOption(optionOf(flags, inputOf(input)))
      else command.addArgument(argumentOf(flags, inputOf(input)))
    if (run) command.action(async () => settle(await runOf(context, run, command)))
    for (const [name, child] of Object.entries(commands))
      attach(command.command(name).summary(child.summary ?? ''), [...path, name], child)
  }
}

function optionOf(flags: string, input: Input<unknown>): Option {
  const { help, words, parse, byDefault, shown, required, hidden } = input
  const option = new Option(flags, help).makeOptionMandatory(required === true).hideHelp(hidden === true)
  if (words) option.choices(words)
  if (option.required) option.argParser(readerOf(`${option.long}`, parse))
  return byDefault === undefined || required ? option : option.default(byDefault, shown)
}

function argumentOf(flags: string, { help, words, parse, byDefault }: Input<unknown>): Argument {
  const argument = new Argument(flags, help).default(byDefault)
  if (words) argument.choices(words)
  // What follows -- is another program's, which may take empty words.
  const read = words || argument.variadic ? parse : readerOf(`<${argument.name()}>`, parse)
  return read ? argument.argParser(read) : argument
}

function readerOf(name: string, parse: Input<unknown>['parse']) {
  return (text: string, before: unknown) => {
    // As a path it would be the working directory.
    if (text.trim() === '') throw wrongUsage(`${name} is empty: is the shell variable unset?`)
    return parse ? parse(text, before) : text
  }
}

/** The parsed options and arguments by name. A parent with options of the same names takes those of its sub-command. */
function valuesOf(command: Command): Readonly<Record<string, unknown>> {
  const args = command.registeredArguments.map((argument, index) => [
    camel(argument.name()),
    command.processedArgs[index],
  ])
  return { ...command.optsWithGlobals(), ...Object.fromEntries(args) }
}

/** Runs a command, writes its result in the form that was asked for, and gives the exit code. */
async function runOf(context: Context, run: NonNullable<CommandData['run']>, command: Command) {
  const result = await run(context, valuesOf(command))
  if (typeof result === 'number') return result
  if (typeof result === 'string') {
    context.stdout.write(result)
    return EXIT.passed
  }
  const { json, text, exit = EXIT.passed, fault } = result
  const isJson = command.optsWithGlobals().format === 'json'
  context.stdout.write(isJson ? jsonText({ version: 1, ...json }) : text)
  if (fault !== undefined) throw new CommandError(exit === EXIT.passed ? EXIT.failed : exit, fault)
  return exit
}

/** Help wrapped to the terminal. Commander has wrapped its lists; an example stays on its line, to be copied. */
function fitted(text: string, columns: number | undefined): string {
  if (!columns) return text
  const lines = text.split('\n')
  return lines.flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, columns))).join('\n')
}

/** Runs one command line and gives its exit code; writes faults as one sentence, without a stack trace. */
export async function runProgram(words: readonly string[], unguarded: Context): Promise<ExitCode> {
  const context = withGuardedOutput(unguarded)
  let code: ExitCode = EXIT.passed
  // Commander's own `help` goes down one level only.
  const argv = words[0] === 'help' && words.length > 1 ? [...words.slice(1), '--help'] : words
  try {
    const program = await buildProgram(context, argv[0], (settled) => {
      code = settled
    })
    if (argv.length === 0) {
      program.outputHelp()
      return EXIT.passed
    }
    if (argv.at(-1) === '--') throw wrongUsage('nothing follows --: is the shell variable unset?')
    await program.parseAsync(cutAtUnknown(program, argv), { from: 'user' })
    return code
  } catch (error) {
    return reportFault(error, context)
  }
}

/** Cuts a help request after an unknown command, which is then reported; the help of its parent would read as if all were well. */
function cutAtUnknown(program: Command, argv: readonly string[]): readonly string[] {
  if (!argv.some((word) => word === '--help' || word === '-h')) return argv
  let command = program
  for (const [index, word] of argv.entries()) {
    if (word.startsWith('-') || word === 'help' || command.commands.length === 0) break
    const next = command.commands.find((child) => child.name() === word)
    if (next === undefined) return argv.slice(0, index + 1)
    command = next
  }
  return argv
}

/** Reports a failed command on standard error, without text from outside, and returns the exit code. */
export function reportFault(fault: unknown, context: Context): ExitCode {
  const unfollowed = 'a file has a name that the system cannot follow: correct it.'
  const error = /^(?:ELOOP|ENAMETOOLONG)$/.test(codeOf(fault)) ? wrongUsage(unfollowed) : fault
  if (error instanceof CommanderError) {
    // Help and version end a run too, and are not failures.
    if (error.exitCode === 0) return EXIT.passed
    // A command that needs a sub-command has written its help.
    if (error.code !== 'commander.help') complain(context, usageFault(error.message))
    return EXIT.usage
  }
  if (error instanceof CommandError) {
    complain(context, error.message.replaceAll('\n', '\\n'))
    return error.exitCode
  }
  if (error instanceof Error && (error.name === 'DefinitionError' || error.name === 'TemplateError')) {
    complain(context, error.name === 'TemplateError' ? templateFaultText(context.cwd, error) : error.message)
    return EXIT.usage
  }
  if (isStoreUnavailable(error)) {
    // A store that closed itself says what may be lost, which matters more than why.
    const known = !('final' in error && error.final === true) && storeFault(error) !== 'unknown'
    complain(context, known ? `the store cannot be used: ${storeFaultReason(error)}.` : error.message)
    return EXIT.remote
  }
  complain(context, 'internal fault; please report it with the lines below.')
  const frames = framesOf(error).slice(0, 12)
  for (const line of [error instanceof Error ? error.name : typeof error, ...frames])
    context.stderr.write(`${line}\n`)
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
const isStoreUnavailable = (error: unknown): error is Error =>
  error instanceof Error &&
  (codeOf(error) === 'store_unavailable' ||
    (codeOf(error).startsWith('SQLITE_') && storeFault(error) !== 'unknown'))
