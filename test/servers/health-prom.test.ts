import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { hasProgram } from '../support/programs.ts'
import { healthBody, serve } from '../support/servers.ts'

test.runIf(hasProgram(['promtool', '--version'], 'prometheus'))(
  'promtool has nothing against what platformctl health writes for a textfile collector',
  async () => {
    const web = await serve((_, response) =>
      response.end(
        healthBody({
          build: 'a "b"\\c',
          probes: { store: { state: 'degraded', checked: true, latencyMs: 1.5 } },
        }),
      ),
    )
    const { context, stdout } = testContext()
    await runProgram(['health', '--format', 'prom', '--url', `web=${web}`, 'api=http://127.0.0.1:1'], context)
    expect(execFileSync('promtool', ['check', 'metrics'], { input: stdout(), encoding: 'utf8' })).toBe('')
  },
)
