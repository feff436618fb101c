import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'

/** Values that nothing can use, so that the daemon starts and says of each that it is malformed. */
const CANARIES = Object.fromEntries(
  VARIABLES.filter(({ kind, secret }) => !secret && kind !== 'text' && kind !== 'path').map(
    ({ name }, index) => [
      name,
      // Without the star of a wildcard, which is an error of its own.
      `https://canary${index}.invalid/canary ✗`,
    ],
  ),
)

test('a daemon with malformed values says so, and writes no byte of them to any stream', async () => {
  const cwd = await emptyFolder()
  const child = execa(
    process.execPath,
    ['--', bin, 'daemon', '--web-port', '0', '--api-port', '0', '--agent-port', '0', '--no-schedule'],
    // Its record is its own: other tests look for daemons of this machine at the same time.
    { cwd, env: { ...CANARIES, XDG_STATE_HOME: cwd }, reject: false, timeout: 20_000 },
  )
  let text = ''
  for await (const line of child.iterable()) {
    text += line
    if (line.includes('"listening"')) child.kill('SIGTERM')
  }
  const { exitCode, stdout, stderr } = await child
  expect(exitCode).toBe(0)
  expect(text).toContain('NEXT_PUBLIC_ERRORTRACK_DSN')
  expect(text + stdout + stderr).not.toMatch(/canary/i)
})
