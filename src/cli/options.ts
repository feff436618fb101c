import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { Dialect } from '../core/env/dialects/read.ts'
import type { Environment } from '../core/env/environment.ts'
import type { IncidentStore } from '../core/incidents/incident.ts'
import type { Channel } from '../core/incidents/teller.ts'
import { nearestOf } from '../core/nearest.ts'
import type { Service } from '../core/service.ts'
import type { Store } from '../core/store/store.ts'
import type { OpenedPlatform } from '../daemon/platform.ts'
import type { Context } from './context.ts'
import { type CommandError, type ExitCode, wrongUsage } from './exit.ts'

/** Collects a repeatable option into a list. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** `--env-file F`, repeatable: the same wherever an environment is read. Node reads the long name itself; not `-e`. */
export function envFileOption(): Option {
  return new Option(
    '-e, --env-file <file>',
    'an env file; repeatable, a later one wins, the process environment wins over all',
  )
    .argParser(collect)
    .default([], 'none')
}

/** How long a command may take, with a default that its help shows as it would be typed. */
export function durationOption(flags: string, description: string, byDefault: string): Option {
  return new Option(flags, description).argParser(duration).default(duration(byDefault), byDefault)
}

/** `--service S`, repeatable; also `web,api`. */
export function serviceOption(services: readonly Service[]): Option {
  return wordsOption('--service <service>', `${alternatives(services)}; repeatable; all when not given`, {
    kind: 'service',
    known: services,
  })
}

/** A repeatable option that takes some of these words, also separated by commas; given in the order of `known`. */
export function wordsOption<Word extends string>(
  flags: string,
  description: string,
  { kind, known }: { readonly kind: string; readonly known: readonly Word[] },
): Option {
  return new Option(flags, description).argParser((value: string, before: readonly Word[] = []) => {
    const named = value.split(',').map((word) => word.trim())
    for (const name of named)
      if (!known.some((word) => word === name)) throw unknownName({ kind, name, known })
    return known.filter((word) => before.includes(word) || named.includes(word))
  })
}

/** `web`, `web or api`, `web, api or agent`. */
export function alternatives(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

export function formatOption<Format extends string>(formats: readonly [Format, ...Format[]]): Option {
  return choiceOption('--format <format>', 'how the result is written', {
    kind: 'format',
    choices: formats,
  }).default(formats[0])
}

/** A whole number within bounds, both included. */
export function wholeNumber(low: number, high: number): (value: string) => number {
  return (value) => {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= low && number <= high))
      throw new InvalidArgumentError(`A whole number from ${low} to ${high} is needed.`)
    return number
  }
}

/** `500ms`, `5s`, `2m`; a bare number is seconds. In milliseconds, at most a day. */
export function duration(text: string): number {
  const match = /^(\d{1,6}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text)
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[match?.[2] ?? 's'] ?? 1000
  const ms = Number(match?.[1]) * unit
  if (match === null || !(ms > 0 && ms <= 86_400_000))
    throw new InvalidArgumentError('A duration such as 500ms, 60s or 2m is needed.')
  return ms
}

export function port(value: string): number {
  return wholeNumber(0, 65_535)(value)
}

/** Why somebody does something, for those who read of it later. */
export function reason(text: string): string {
  const said = text.trim()
  if (said === '' || said.length > 200)
    throw new InvalidArgumentError('A reason of 1 to 200 characters is needed.')
  return said
}

/** `--baseline F`: known warnings, accepted by id and variable. */
export function baselineOption(): Option {
  return new Option('--baseline <file>', 'accept the warnings of an earlier --format json report')
}

const DIALECTS = [
  'node',
  'dotenv',
  'dotenv-expand',
  'compose',
  'docker',
  'systemd',
] as const satisfies readonly Dialect[]

/** `--dialect D`: read the files as another reader would. */
export function dialectOption(): Option {
  return choiceOption('--dialect <reader>', 'read the files as this reader would', {
    kind: 'reader',
    choices: DIALECTS,
  })
}

/** `--readers a,b`: the readers that a deployment goes through. */
export function readersOption(): Option {
  return new Option(
    '--readers <list>',
    'warn where these readers of the files would disagree (default: node,compose,docker,systemd)',
  ).argParser((value: string): readonly Dialect[] =>
    value.split(',').map((word) => {
      const found = DIALECTS.find((dialect) => dialect === word.trim())
      if (found === undefined) throw unknownName({ kind: 'reader', name: word.trim(), known: DIALECTS })
      return found
    }),
  )
}

/** The options of a command that works on the store: which store, and how the result is written. */
export interface StoreOptions {
  readonly data?: string
  readonly envFile: readonly string[]
  readonly format: 'text' | 'json'
}

interface Subcommand {
  readonly name: string
  readonly summary: string
  /** The summary as a sentence when left out. */
  readonly description?: string
  /** What its exit codes mean. */
  readonly exits?: string
  /** Each as it follows the command. */
  readonly examples: readonly string[]
}

export function subcommand(parent: Command, described: Subcommand): Command {
  const { name, summary, description, exits, examples } = described
  const lines = examples.map((example) => `\n  ${pathOf(parent)} ${name}${example}`)
  return parent
    .command(name)
    .summary(summary)
    .description(description ?? `${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
    .addHelpText(
      'after',
      `${exits === undefined ? '' : `\nExit codes: ${exits}\n`}\nExamples:${lines.join('')}`,
    )
}

/** Adds a command under `parent` that works on the store of the data folder or the env files. */
export function storeSubcommand(parent: Command, described: Subcommand): Command {
  return subcommand(parent, described)
    .option('--data <folder>', 'the data folder, when STORE_URL is not set (default: .platformctl)')
    .addOption(envFileOption())
}

/** `platformctl email suppressions`: as it is typed. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

/** `unknown template 'weclome'. Did you mean welcome?`: the one form in which a mistyped name is answered. */
export function unknownName(input: {
  readonly kind: string
  readonly name: string
  readonly known: readonly string[]
  /** Set where a close name is no likely slip, as with `tcsh` and bash: then the names are always listed. */
  readonly listAlways?: boolean
  /** The next step if no known name is close; by default, the list of names. */
  readonly otherwise?: string
}): CommandError {
  const { kind, name, known, listAlways, otherwise = `Choose one of ${known.join(', ')}.` } = input
  const near = listAlways ? undefined : nearestOf(name, known)
  return wrongUsage(`unknown ${kind} '${name}'. ${near === undefined ? otherwise : `Did you mean ${near}?`}`)
}

/** An option that takes one of these words. */
export function choiceOption<Choice extends string>(
  flags: string,
  description: string,
  { kind, choices }: { readonly kind: string; readonly choices: readonly Choice[] },
): Option {
  const option = new Option(flags, description).choices(choices)
  return option.argParser(oneOf(kind, choices))
}

/** An argument that is one of these words. */
export function choiceArgument<Choice extends string>(
  name: string,
  description: string,
  input: { readonly kind: string; readonly choices: readonly Choice[]; readonly listAlways?: boolean },
): Argument {
  const { kind, choices, listAlways } = input
  const argument = new Argument(name, description).choices(choices)
  return argument.argParser(oneOf(kind, choices, listAlways))
}

function oneOf<Choice extends string>(
  kind: string,
  choices: readonly Choice[],
  listAlways = false,
): (name: string) => Choice {
  return (name) => {
    const found = choices.find((choice) => choice === name)
    if (found === undefined) throw unknownName({ kind, name, known: choices, listAlways })
    return found
  }
}

/** Opens the platform over the store of the env files or the data folder, works with it, and closes it. */
export async function withPlatform<Result>(
  context: Context,
  { envFile, data }: Pick<StoreOptions, 'data' | 'envFile'>,
  work: (platform: OpenedPlatform, env: Environment) => Promise<Result>,
): Promise<Result> {
  const { loadEnvironment } = await import('./environment.ts')
  const { openLocal } = await import('./local.ts')
  const { env } = await loadEnvironment(context, envFile)
  const { platform, close } = await openLocal(context, env, data)
  try {
    return await work(platform, env)
  } finally {
    await close()
  }
}

/** Opens the store of the env files or the data folder, works on its incidents, and closes it. */
export async function withIncidents(
  context: Context,
  options: { readonly data?: string; readonly envFile: readonly string[] },
  work: (incidents: IncidentStore, env: Environment, store: Store) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { loadEnvironment } = await import('./environment.ts')
  const { openLocalStore } = await import('./local.ts')
  const { env } = await loadEnvironment(context, options.envFile)
  const store = await openLocalStore(context, env, options.data)
  try {
    return await work(store.incidents, env, store)
  } finally {
    await store.close()
  }
}

/** The channels for alerts that the environment configures. */
export async function alertChannelsOf(context: Context, env: Environment): Promise<Channel[]> {
  const { readSettings } = await import('../core/env/settings.ts')
  const { alertChannels } = await import('../daemon/alerts.ts')
  const { platform, clock } = context
  return alertChannels({ platform, settings: readSettings(platform, env), clock })
}
