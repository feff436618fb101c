import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { healthBody, serve } from '../support/servers.ts'

const here = (() => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    process.stderr.write('skipped: promtool is not installed (apt-get install prometheus)\n')
    return false
  }
})()

test.runIf(here)(
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
