import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runWrapped } from '../../../src/cli/commands/beat.ts'
import { testContext } from '../../support/context.ts'
import { emptyFolder } from '../../support/folder.ts'

const node = (script: string) => [process.execPath, '-e', script]

/** The exit code of a wrapped command, and what was said of it. */
async function wrapped(command: readonly string[], parts: Parameters<typeof testContext>[0] = {}) {
  const { context, stderr } = testContext(parts)
  const { exitCode, interrupted } = await runWrapped(context, command)
  return { exitCode, interrupted: interrupted.aborted, stderr: stderr() }
}

test.each([
  ['process.exit(0)', 0],
  ['process.exit(7)', 7],
  ["process.kill(process.pid, 'SIGKILL')", 137],
])('%s gives the exit code %i, as in a shell', async (script, exitCode) => {
  expect(await wrapped(node(script))).toEqual({ exitCode, interrupted: false, stderr: '' })
})

test('a command runs in the folder and with the environment of its caller', async () => {
  const cwd = await emptyFolder()
  const script = "process.exit(process.env.KILN === 'hot' && require('fs').existsSync('here') ? 0 : 1)"
  await writeFile(path.join(cwd, 'here'), '')
  expect((await wrapped(node(script), { cwd, env: { KILN: 'hot' } })).exitCode).toBe(0)
  expect((await wrapped(node(script), { cwd })).exitCode).toBe(1)
})

test('a command that does not exist is 127, and one that is not executable 126, each with its reason', async () => {
  const file = path.join(await emptyFolder(), 'no-program')
  expect(await wrapped([file])).toMatchObject({
    exitCode: 127,
    stderr: 'platformctl: the command could not be started: there is no such program\n',
  })
  await writeFile(file, '', { mode: 0o600 })
  expect(await wrapped([file])).toMatchObject({
    exitCode: 126,
    stderr: 'platformctl: the command could not be started: EACCES\n',
  })
})

test('what was stopped before it began is not run, and ends as by SIGTERM', async () => {
  const stopped = await wrapped(['/nowhere/no-program'], { signal: AbortSignal.abort() })
  expect(stopped).toEqual({ exitCode: 143, interrupted: false, stderr: '' })
})

test('a signal goes to the command while it runs, and to what follows once it has ended', async () => {
  let forward: (signal: NodeJS.Signals) => void = () => {}
  const { context } = testContext({
    takeSignals: (take) => {
      forward = take
    },
  })
  const running = runWrapped(context, node('setInterval(() => {}, 1000)'))
  forward('SIGTERM')
  const { exitCode, interrupted } = await running
  expect(exitCode).toBe(143)
  expect(interrupted.aborted).toBe(false)
  forward('SIGTERM')
  expect(interrupted.aborted).toBe(true)
})
