import packageJson from '../package.json' with { type: 'json' }
import { allNodes, type CommandNode, descriptionOf, type InputNode } from '../src/cli/command.ts'
import { documentedTree } from './command-tree.ts'
import { SHOWN } from './reference/platform.ts'

const EXIT_CODES = [
  ['0', 'passed; warnings and degraded are allowed'],
  ['1', 'a check failed, or what was asked for was refused; with --strict also warnings and degraded'],
  ['2', 'wrong usage or unreadable input; an unknown command is this too'],
  ['3', 'something remote, or the store, was not reached or refused'],
  ['70', 'an internal fault (please report it); of the daemon also a disk that did not confirm a write'],
] as const

/** An option that means the same in at least this many commands, and in most of those that have it, is described once. */
const MANY = 2

const nameOf = ({ path }: CommandNode) => ['platformctl', ...path].join(' ')
const anchor = (command: CommandNode) => nameOf(command).replaceAll(' ', '-')

/** `docs/reference/commands.md`: every command, its arguments, options, exit codes and examples. */
export async function commandsPage(): Promise<string> {
  const [, ...commands] = allNodes(await documentedTree())
  const index = commands
    .filter(({ path }) => path.length === 1)
    .map((command) => `| [\`${nameOf(command)}\`](#${anchor(command)}) | ${command.summary} |`)
  const rows = commands.flatMap(inputRows).map(({ text }) => text)
  const nameIn = (text: string) => text.split(/ \| | (?=<)/)[0]
  // One row an option: a command where it means something else says so itself.
  const common = [...new Set(rows)].filter((text) => {
    const same = rows.filter((other) => other === text).length
    return same >= MANY && same > rows.filter((other) => nameIn(other) === nameIn(text)).length / 2
  })
  return `${[
    '# Commands',
    '<!-- Made by `npm run make`. -->',
    `${SHOWN} \`platformctl help COMMAND\` prints the same with yours. What \`--format json\` writes has [a JSON Schema for each command](schemas).`,
    ['| Command | Does |', '|---|---|', ...index].join('\n'),
    'Every command takes `--help`, `--no-color` (as `NO_COLOR` does), and `--config FILE` or `--no-config` ([where the definition is found](../guides/definition.md#where-it-is-found)). Only what was asked for goes to standard output; progress, warnings and faults go to standard error. Arguments are listed before options, in `[ ]` if they may be left out.',
    [
      '| Exit code | Means |',
      '|---|---|',
      ...EXIT_CODES.map(([code, means]) => `| ${code} | ${means} |`),
    ].join('\n'),
    '## Common options',
    ['| Option | Means |', '|---|---|', ...common].join('\n'),
    ...commands.map((command) => section(command, new Set(common), examplesBelow(command, commands))),
  ].join('\n\n')}\n`
}

/** The examples of the commands below this one: they stand there. */
function examplesBelow({ path }: CommandNode, commands: readonly CommandNode[]): ReadonlySet<string> {
  const below = commands.filter((one) => one.path.length > path.length && one.path[0] === path[0])
  return new Set(below.flatMap(({ after }) => after.split('\n').filter((line) => line.startsWith('  '))))
}

function section(command: CommandNode, common: ReadonlySet<string>, below: ReadonlySet<string>): string {
  const { commands } = command
  const inputs = inputRows(command)
  const shared = inputs.filter(({ text }) => common.has(text))
  const rows = inputs.flatMap(({ text }) => (common.has(text) ? [] : [text]))
  // The table of commands says the summaries.
  const isTold =
    command.path.length === 1 && command.description === descriptionOf({ summary: command.summary })
  const parts = [
    `${command.path.length === 1 ? '##' : '###'} ${nameOf(command)}`,
    ...(isTold ? [] : [command.description]),
  ]
  if (commands.length > 0)
    parts.push(`Commands: ${commands.map((one) => `[\`${one.path.at(-1)}\`](#${anchor(one)})`).join(', ')}.`)
  if (rows.length > 0) parts.push(['| Option | Means |', '|---|---|', ...rows].join('\n'))
  if (shared.length > 0)
    parts.push(
      `[Common](#common-options): ${shared
        .map(
          ({ name }) =>
            `\`${name
              .split(/ (?=<)/)[0]
              ?.split(', ')
              .at(-1)}\``,
        )
        .join(', ')}.`,
    )
  if (command.after !== '') parts.push(...afterParts(command, below))
  return parts.join('\n\n')
}

const inputRows = ({ args, options }: CommandNode) =>
  [...args, ...options].map((input) => ({ name: input.flags, text: row(input) }))

function row({ flags, help, words, byDefault }: InputNode): string {
  const one = words.length > 0 ? `; one of ${words.map((word) => `\`${word}\``).join(', ')}` : ''
  const otherwise = byDefault === undefined ? '' : ` (default: \`${byDefault}\`)`
  return `| \`${flags.replaceAll('|', '\\|')}\` | ${(help + one + otherwise).replaceAll('|', '\\|')} |`
}

/**
 * Examples stand in a block of their own, so that they can be copied; the rest is prose. Left out are those that show
 * nothing new: the bare command, the same as JSON, and those of a command below.
 */
function afterParts(command: CommandNode, below: ReadonlySet<string>): string[] {
  const plain = new Set([nameOf(command), `${nameOf(command)} --format json`])
  return command.after.split(/\n\n/).flatMap((part) => {
    const [, ...lines] = part.split('\n')
    if (lines.length === 0 || !lines[0]?.startsWith('  ')) return part
    const kept = lines.filter((line) => !below.has(line) && !plain.has(line.trim()))
    return kept.length === 0
      ? []
      : `\`\`\`sh\n${kept.map((line) => line.replace(/^ {2}/, '')).join('\n')}\n\`\`\``
  })
}

/** `man/platformctl.1`: the same in the form of the manual (man(7)). */
export async function manPage(): Promise<string> {
  const program = await documentedTree()
  const [, ...commands] = allNodes(program)
  return `${[
    `.TH PLATFORMCTL 1 "" "platformctl ${packageJson.version}" "User Commands"`,
    '.SH NAME',
    `platformctl \\- ${roff(program.description.replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    '.B platformctl',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    roff(packageJson.description),
    '.PP',
    roff(
      `${SHOWN} platformctl help COMMAND prints the same with yours. Every command takes --config FILE or --no-config.`,
    ),
    '.SH COMMANDS',
    ...commands.flatMap(manual),
    '.SH EXIT STATUS',
    ...EXIT_CODES.flatMap(([code, means]) => ['.TP', `.B ${code}`, roff(means)]),
    '.SH ENVIRONMENT',
    'The variables of the platform are listed by',
    '.B platformctl env list',
    'and explained by',
    '.BR "platformctl env explain" .',
    '.B NO_COLOR',
    'and',
    '.B CI',
    'turn colour off.',
    '.BR HTTP_PROXY , " HTTPS_PROXY"',
    'and',
    '.B NO_PROXY',
    'hold for every request that leaves over HTTP.',
    '.SH FILES',
    '.TP',
    '.I .platformctl/platform.sqlite',
    'The store, where neither \\-\\-data nor STORE_URL says otherwise.',
  ].join('\n')}\n`
}

function manual(command: CommandNode): string[] {
  return [
    `.SS "${roff(command.usage)}"`,
    roff(command.description),
    ...command.args.flatMap((arg) => ['.TP', `.I ${roff(arg.name)}`, roff(inputText(arg))]),
    ...command.options.flatMap((option) => ['.TP', `.B "${roff(option.flags)}"`, roff(inputText(option))]),
    ...(command.after === '' ? [] : command.after.split('\n\n')).flatMap((part) => {
      const lines = part.split('\n').map(roff)
      return ['.PP', ...(part.startsWith('Examples:') ? ['.nf', ...lines, '.fi'] : lines)]
    }),
  ]
}

function inputText({ help, words, byDefault }: InputNode): string {
  const one = words.length === 0 ? '' : `; one of ${words.join(', ')}`
  return `${help}${one}${byDefault === undefined ? '' : ` (default: ${byDefault})`}`
}

/** Escapes what troff would read as its own: backslashes, hyphens that are minus signs, quotes, a control at the start. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replaceAll('’', '\\(cq')
    .replaceAll('…', '...')
    .replaceAll('→', '\\->')
    .replace(/^([.'])/, '\\&$1')
}
