import type { Command } from 'commander'

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
  /** The closed set of values, if it has one. */
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
