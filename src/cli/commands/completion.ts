import type { Command } from 'commander'
import type { Configure } from '../context.ts'
import { EXIT } from '../exit.ts'
import { choiceArgument } from '../options.ts'

/** The command tree as plain data: what completions and the reference page are made from. */
export interface CommandNode {
  /** From the program on: `['env', 'check']`; empty for the program itself. */
  readonly path: readonly string[]
  readonly summary: string
  readonly options: readonly OptionNode[]
  readonly commands: readonly CommandNode[]
  /** Closed sets of words that its arguments take, in order. */
  readonly words: readonly string[]
}

export interface OptionNode {
  /** `--env-file`; short options are not worth a completion. */
  readonly name: string
  readonly summary: string
  readonly takesValue: boolean
  readonly values: readonly string[]
}

export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  return {
    path,
    summary: command.summary() || command.description(),
    options: command.options.flatMap((option) =>
      option.long && !option.hidden
        ? {
            name: option.long,
            summary: option.description,
            takesValue: option.required || option.optional,
            values: option.argChoices ?? [],
          }
        : [],
    ),
    commands: command.commands.map((child) => commandTree(child, [...path, child.name()])),
    words: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
  }
}

/** Every node of the tree, the root first. */
export function allNodes(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(allNodes)]
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** A completion script made from the command tree: it completes without starting the program. */
export function completionScript(shell: Shell, root: CommandNode): string {
  return { bash, zsh, fish }[shell](root)
}

const NAME = 'platformctl'

/** Words that may follow a command: its sub-commands, its arguments' closed sets, its options. */
function following(node: CommandNode): string[] {
  return [
    ...node.commands.map((child) => child.path.at(-1) ?? ''),
    ...node.words,
    ...node.options.map((option) => option.name),
    '--help',
  ]
}

/** Options that take a value: with their closed set of values, or with a file name. */
function valued(root: CommandNode): OptionNode[] {
  const seen = new Map<string, OptionNode>()
  for (const option of allNodes(root).flatMap((node) => node.options)) {
    if (option.takesValue && !seen.has(option.name)) seen.set(option.name, option)
  }
  return [...seen.values()]
}

/**
 * Patterns of bash and zsh for the command and the option before the cursor. An option with the same values in every
 * command needs no command in its pattern; `--format` does, because health and preflight have different formats.
 */
function valuePatterns(
  root: CommandNode,
): { readonly pattern: string; readonly values: readonly string[] }[] {
  return valued(root).flatMap(({ name, values }) => {
    const taking = allNodes(root).flatMap(({ path, options }) =>
      options.filter((option) => option.name === name).map((option) => ({ path, values: option.values })),
    )
    return taking.every((one) => one.values.join() === values.join())
      ? [{ pattern: `*' ${name}'`, values }]
      : taking.map((one) => ({ pattern: `'${one.path.join(' ')} ${name}'`, values: one.values }))
  })
}

/** A pattern of bash and zsh that every command fits, and nothing else. */
function commandPattern(root: CommandNode): string {
  return allNodes(root)
    .slice(1)
    .map((node) => `'${node.path.join(' ')}'`)
    .join('|')
}

function bash(root: CommandNode): string {
  const words = allNodes(root).map(
    (node) => `    '${node.path.join(' ')}') words='${following(node).join(' ')}' ;;`,
  )
  const values = valuePatterns(root).map(({ pattern, values }) =>
    values.length > 0
      ? `    ${pattern}) COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$word")); return ;;`
      : // Without suggestions readline completes file names itself, and quotes spaces in them.
        `    ${pattern}) return ;;`,
  )
  return `# platformctl completion for bash: source <(platformctl completion bash)
_${NAME}() {
  local word="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path='' next words i
  COMPREPLY=()
  # Readline takes the = of --option=value for a word of its own.
  if [ "$word" = '=' ]; then word=''
  elif [ "$previous" = '=' ]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    # The value of an option is no command.
    case "\${COMP_WORDS[i-1]}" in ${valued(root)
      .map(({ name }) => name)
      .join('|')}) continue ;; esac
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in ${commandPattern(root)}) path="$next" ;; esac
  done
  case "$path $previous" in
${values.join('\n')}
  esac
  case "$path" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _${NAME} ${NAME}
`
}

function zsh(root: CommandNode): string {
  const quote = (text: string) => text.replaceAll("'", "'\\''").replaceAll(':', '\\:')
  const described = (node: CommandNode) =>
    [
      ...node.commands.map((child) => `'${child.path.at(-1)}:${quote(child.summary)}'`),
      ...node.words.map((word) => `'${word}'`),
      ...node.options.map((option) => `'${option.name}:${quote(option.summary)}'`),
      "'--help:show help'",
    ].join(' ')
  const values = valuePatterns(root).map(({ pattern, values }) =>
    values.length > 0
      ? `    ${pattern}) compadd -- ${values.join(' ')}; return ;;`
      : `    ${pattern}) _files; return ;;`,
  )
  return `#compdef ${NAME}
# platformctl completion for zsh: platformctl completion zsh > "\${fpath[1]}/_${NAME}"
_${NAME}() {
  local previous="\${words[CURRENT-1]}" path_='' next i
  local -a choices
  for ((i = 2; i < CURRENT; i++)); do
    next="\${path_:+$path_ }\${words[i]}"
    case "$next" in ${commandPattern(root)}) path_="$next" ;; esac
  done
  case "$path_ $previous" in
${values.join('\n')}
  esac
  case "$path_" in
${allNodes(root)
  .map((node) => `    '${node.path.join(' ')}') choices=(${described(node)}) ;;`)
  .join('\n')}
  esac
  _describe '${NAME}' choices
}
if [ "$funcstack[1]" = "_${NAME}" ]; then _${NAME} "$@"; else compdef _${NAME} ${NAME}; fi
`
}

function fish(root: CommandNode): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = allNodes(root).flatMap((node) => {
    const children = node.commands.map((child) => child.path.at(-1) ?? '')
    const inside =
      node.path.length === 0
        ? '__fish_use_subcommand'
        : node.path.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const here =
      node.path.length > 0 && children.length > 0
        ? `${inside}; and not __fish_seen_subcommand_from ${children.join(' ')}`
        : inside
    const start = `complete -c ${NAME} -n ${quote(here)}`
    return [
      ...node.commands.map((child) => `${start} -f -a ${child.path.at(-1)} -d ${quote(child.summary)}`),
      ...node.words.map((word) => `${start} -f -a ${word}`),
      ...node.options.map((option) => {
        const value =
          option.values.length > 0
            ? ` -x -a ${quote(option.values.join(' '))}`
            : option.takesValue
              ? ' -r'
              : ' -f'
        return `${start} -l ${option.name.replace(/^--/, '')}${value} -d ${quote(option.summary)}`
      }),
    ]
  })
  return `# platformctl completion for fish: platformctl completion fish > ~/.config/fish/completions/${NAME}.fish\n${lines.join('\n')}\n`
}

export const configure: Configure = (command, context, settle, whole) => {
  command
    .description('Print a completion script for a shell; it completes without starting platformctl.')
    .addArgument(
      choiceArgument('<shell>', 'which shell', { kind: 'shell', choices: SHELLS, listAlways: true }),
    )
    .addHelpText(
      'after',
      `
Examples:
  source <(platformctl completion bash)                                              for this bash
  platformctl completion bash > ~/.local/share/bash-completion/completions/platformctl   for every bash
  platformctl completion zsh > "\${fpath[1]}/_platformctl"                            for every zsh
  platformctl completion fish > ~/.config/fish/completions/platformctl.fish           for every fish`,
    )
    .action(async (shell: Shell) => {
      context.stdout.write(completionScript(shell, commandTree(await whole())))
      settle(EXIT.passed)
    })
}
