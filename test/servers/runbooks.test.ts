import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runSteps, sameShape, stepsOf } from '../../scripts/runbooks/session.ts'
import { PAGES, root, SETUPS } from '../../scripts/runbooks/setups.ts'
import { hasProgram } from '../support/programs.ts'

const here =
  hasProgram(
    ['unshare', '--user', '--map-root-user', '--mount', '--net', 'ip', 'link'],
    'util-linux iproute2',
  ) &&
  hasProgram(['jq', '--version'], 'jq') &&
  hasProgram(['sqlite3', '--version'], 'sqlite3') &&
  hasProgram(['curl', '--version'], 'curl')

const pages = PAGES.map((page) => ({ page, steps: stepsOf(readFileSync(path.join(root, page), 'utf8')) }))

test.skipIf(!here).each(pages.filter(({ steps }) => steps.length > 0))(
  'the commands of $page do what it shows',
  async ({ page, steps }) => {
    const done = await runSteps(steps, SETUPS[page] ?? 'true')
    for (const [index, shown] of steps.entries()) {
      const { command, output, exitCode } = done[index] ?? shown
      const where = `${page}:${shown.line} ${command}`
      expect({ where, exitCode, output }).toMatchObject({ where, exitCode: shown.exitCode })
      if (!sameShape(shown.output, output)) expect(output, where).toEqual(shown.output)
    }
  },
  100_000,
)
