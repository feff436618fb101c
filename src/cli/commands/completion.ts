import { completionScript, SHELLS, type Shell } from '../completion/scripts.ts'
import { commandTree } from '../completion/tree.ts'
import type { Configure } from '../configure.ts'
import { EXIT } from '../exit.ts'
import { choiceArgument } from '../suggest.ts'

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
