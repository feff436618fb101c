import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runSteps, sameShape, stepsOf } from '../../scripts/runbooks/session.ts'
import { SETUPS } from '../../scripts/runbooks/setups.ts'
import { hasProgram } from '../support/programs.ts'

const folder = fileURLToPath(new URL('../../runbooks', import.meta.url))
const here =
  hasProgram(
    ['unshare', '--user', '--map-root-user', '--mount', '--net', 'ip', 'link'],
    'util-linux iproute2',
  ) &&
  hasProgram(['jq', '--version'], 'jq') &&
  hasProgram(['curl', '--version'], 'curl')

const runbooks = readdirSync(folder)
  .map((file) => ({ name: path.basename(file, '.md'), text: readFileSync(path.join(folder, file), 'utf8') }))
  .filter(({ text }) => stepsOf(text).length > 0)

test.skipIf(!here).each(runbooks)(
  'the commands of the runbook $name do what it shows',
  async ({ name, text }) => {
    const steps = stepsOf(text)
    const done = await runSteps(steps, SETUPS[name] ?? 'true')
    for (const [index, shown] of steps.entries()) {
      const { command, output, exitCode } = done[index] ?? shown
      const where = `runbooks/${name}.md:${shown.line} ${command}`
      expect({ where, exitCode, output }).toMatchObject({ where, exitCode: shown.exitCode })
      if (!sameShape(shown.output, output)) expect(output, where).toEqual(shown.output)
    }
  },
  100_000,
)
