import type { CommandNode } from '../src/cli/command.ts'
import { commandTree } from '../src/cli/program.ts'
import { systemClock, systemRandom } from '../src/core/host.ts'
import { reference } from './reference/platform.ts'

/** The command tree, with the names of the platform that the reference pages show. */
export function documentedTree(): Promise<CommandNode> {
  const sink = { write: () => true }
  return commandTree({
    platform: reference,
    env: {},
    cwd: '/',
    stdin: (async function* () {})(),
    stdout: sink,
    stderr: sink,
    colour: { stdout: false, stderr: false },
    clock: systemClock,
    random: systemRandom,
    signal: new AbortController().signal,
  })
}
