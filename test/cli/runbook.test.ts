import { expect, test } from 'vitest'
import { platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

test('runbook prints the list, a runbook by its name, or the names that there are', async () => {
  const cwd = await emptyFolder()
  const run = (...args: string[]) => platformctl(['runbook', ...args], { cwd })
  expect((await run()).stdout).toMatch(/^# Runbooks\n/)
  expect((await run('mail-refused')).stdout).toMatch(/^# Mail refused\n/)
  for (const name of ['mail-refuse', '../README', 'alerts.yaml'])
    expect(await run(name)).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringContaining(`there is no runbook ${name}. There are: README, alerts, `),
    })
})
