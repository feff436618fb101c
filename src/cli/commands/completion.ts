import { allNodes, type CommandNode, command, type Define } from '../command.ts'
import { choice } from '../inputs.ts'

const NAME = 'platformctl'

const offersOf = ({ args }: CommandNode) => args.flatMap(({ offers }) => offers)
const nameOf = ({ path }: CommandNode) => path.at(-1) ?? ''
const pathOf = ({ path }: CommandNode) => path.join(' ')

/** The commands of each option that takes a value, with the closed set of its values, or none for a file name. */
function valued(root: CommandNode) {
  const options = allNodes(root).flatMap((node) =>
    node.options.map((option) => ({ ...option, path: pathOf(node) })),
  )
  return Map.groupBy(
    options.filter(({ takesValue }) => takesValue),
    ({ name }) => name,
  )
}

/** Cases of bash and zsh for the command and option before the cursor; the command only where values differ, as those of `--format`. */
function valueCases(root: CommandNode, complete: (values: readonly string[]) => string): string {
  const cases = [...valued(root)].flatMap(([name, taking]) => {
    const [first = ''] = taking.map(({ offers }) => offers.join())
    return taking.every(({ offers }) => offers.join() === first)
      ? [{ pattern: `*' ${name}'`, offers: taking[0]?.offers ?? [] }]
      : taking.map(({ path, offers }) => ({ pattern: `'${path} ${name}'`, offers }))
  })
  return cases.map(({ pattern, offers }) => `    ${pattern}) ${complete(offers)}return ;;`).join('\n')
}

/** A pattern of bash and zsh that every command fits, and nothing else. */
function commandPattern(root: CommandNode): string {
  const [, ...commands] = allNodes(root)
  return commands.map((node) => `'${pathOf(node)}'`).join('|')
}

function bash(root: CommandNode): string {
  const words = allNodes(root).map((node) => {
    const options = node.options.map(({ name }) => name)
    // What may follow the command: its sub-commands, its arguments' closed sets, its options.
    const following = [...node.commands.map(nameOf), ...offersOf(node), ...options, '--help']
    return `    '${pathOf(node)}') words='${following.join(' ')}' ;;`
  })
  // Without suggestions readline completes file names itself, and quotes spaces in them.
  const values = valueCases(root, (words) =>
    words.length > 0 ? `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$word")); ` : '',
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
    case "\${COMP_WORDS[i-1]}" in ${[...valued(root).keys()].join('|')}) continue ;; esac
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in ${commandPattern(root)}) path="$next" ;; esac
  done
  case "$path $previous" in
${values}
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
      ...node.commands.map((child) => `'${nameOf(child)}:${quote(child.summary)}'`),
      ...offersOf(node).map((word) => `'${word}'`),
      ...node.options.map((option) => `'${option.name}:${quote(option.help)}'`),
      "'--help:show help'",
    ].join(' ')
  const values = valueCases(root, (words) =>
    words.length > 0 ? `compadd -- ${words.join(' ')}; ` : '_files; ',
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
${values}
  esac
  case "$path_" in
${allNodes(root)
  .map((node) => `    '${pathOf(node)}') choices=(${described(node)}) ;;`)
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
    const children = node.commands.map(nameOf)
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
      ...node.commands.map((child) => `${start} -f -a ${nameOf(child)} -d ${quote(child.summary)}`),
      ...offersOf(node).map((word) => `${start} -f -a ${word}`),
      ...node.options.map(({ name, offers, takesValue, help }) => {
        const value = offers.length > 0 ? `x -a ${quote(offers.join(' '))}` : takesValue ? 'r' : 'f'
        return `${start} -l ${name.replace(/^--/, '')} -${value} -d ${quote(help)}`
      }),
    ]
  })
  return `# platformctl completion for fish: platformctl completion fish > ~/.config/fish/completions/${NAME}.fish\n${lines.join('\n')}\n`
}

export const define: Define = (_, tree) =>
  command({
    description: 'Print a completion script for a shell; it completes without starting platformctl.',
    examples: [
      'source <(platformctl completion bash)                                              for this bash',
      'bash > ~/.local/share/bash-completion/completions/platformctl   for every bash',
      `zsh > "\${fpath[1]}/_platformctl"                            for every zsh`,
      'fish > ~/.config/fish/completions/platformctl.fish           for every fish',
    ],
    inputs: { '<shell>': choice('the shell', ['bash', 'zsh', 'fish'], { kind: 'shell', listAlways: true }) },
    run: async (_, { shell }) => ({ bash, zsh, fish })[shell](await tree()),
  })
