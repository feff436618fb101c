import type { Command } from 'commander'
import { buildProgram } from '../src/cli/program.ts'
import { systemClock } from '../src/core/clock.ts'
import { systemRandom } from '../src/core/random.ts'
import { learning } from '../src/presets/learning/platform.ts'

/** One command as its help shows it, for pages that are made from the command tree. */
export interface DocumentedCommand {
  /** `['db', 'backup']`; empty for the program itself. */
  readonly path: readonly string[]
  readonly summary: string
  readonly description: string
  /** `platformctl db backup [options] <file>` */
  readonly usage: string
  readonly args: readonly {
    readonly name: string
    readonly description: string
    readonly words: readonly string[]
  }[]
  readonly options: readonly DocumentedOption[]
  /** Help text after the options: exit codes, examples. */
  readonly after: string
  readonly commands: readonly DocumentedCommand[]
}

export interface DocumentedOption {
  /** `--data <folder>` */
  readonly flags: string
  readonly long: string | undefined
  readonly short: string | undefined
  readonly takesValue: boolean
  readonly description: string
  readonly choices: readonly string[]
  readonly defaultValue: string | undefined
}

/** The real command tree, every command loaded. */
export async function documentedTree(): Promise<DocumentedCommand> {
  let written = ''
  const sink = {
    write(text: string) {
      written += text
      return true
    },
    columns: 100,
  }
  const program = await buildProgram(
    {
      platform: learning,
      env: {},
      cwd: '/',
      stdin: (async function* () {})(),
      stdout: sink,
      stderr: sink,
      colour: { stdout: false, stderr: false },
      clock: systemClock,
      random: systemRandom,
      signal: new AbortController().signal,
    },
    undefined,
    () => {},
  )
  return document(program, [])

  function document(command: Command, path: readonly string[]): DocumentedCommand {
    written = ''
    command.outputHelp()
    const after = written.slice(command.helpInformation().length).trim()
    const help = command.createHelp()
    return {
      path,
      summary: command.summary() || command.description(),
      description: command.description(),
      usage: help.commandUsage(command),
      args: command.registeredArguments.map((one) => ({
        name: one.name(),
        description: one.description,
        words: one.argChoices ?? [],
      })),
      options: command.options
        .filter((option) => !option.hidden)
        .map((option) => ({
          flags: option.flags,
          long: option.long,
          short: option.short,
          takesValue: option.required || option.optional,
          description: option.description,
          choices: option.argChoices ?? [],
          defaultValue: defaultOf(option.defaultValue, option.defaultValueDescription),
        })),
      after,
      commands: command.commands.map((child) => document(child, [...path, child.name()])),
    }
  }
}

function defaultOf(value: unknown, description: string | undefined): string | undefined {
  if (description !== undefined) return description === 'none' ? undefined : description
  if (value === undefined || value === true || value === false) return undefined
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(', ')
  return String(value)
}

/** Every command of the tree, the program itself first. */
export function allCommands(command: DocumentedCommand): readonly DocumentedCommand[] {
  return [command, ...command.commands.flatMap(allCommands)]
}
