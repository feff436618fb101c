import type { CommandNode } from '../src/cli/command.ts'
import { commandTree } from '../src/cli/program.ts'
import { systemClock } from '../src/core/clock.ts'
import { systemRandom } from '../src/core/random.ts'
import { learning } from '../src/presets/learning/platform.ts'

/** The command tree of the default platform. */
export function documentedTree(): Promise<CommandNode> {
  const sink = { write: () => true }
  return commandTree({
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
  })
}
