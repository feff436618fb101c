import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'
import { serve, serveBodies } from '../support/servers.ts'

const env = { EMAIL_DISPATCH_SECRET: 'a-dispatch-secret-of-thirty-two-bytes' }

test('output, a signal and the exit code pass through beat, and the failure is reported', async () => {
  const bodies: string[] = []
  const url = await serveBodies((body, response) => {
    bodies.push(body)
    response.end('{"nextBy":"2026-11-22T11:00:00.000Z"}')
  })
  // The job sends its parent, which is beat, a signal, and ends with the code of its own handler.
  const job =
    'echo out --color; echo err >&2; trap "exit 7" TERM; kill -TERM $PPID; while :; do sleep 0.05; done'
  const cwd = await emptyFolder()
  expect(await platformctl(['beat', 'backup', '--url', url, '--', 'sh', '-c', job], { cwd, env })).toEqual({
    exitCode: 7,
    stdout: 'out --color',
    stderr: 'err',
  })
  expect(bodies).toEqual(['{"exitCode":7}'])
})

test('a signal after the end of the command ends the wait for a service that does not answer', async () => {
  const cwd = await emptyFolder()
  let requests = 0
  const url = await serve(async (_, response) => {
    requests += 1
    process.kill(Number(await readFile(`${cwd}/pid`, 'utf8')), 'SIGTERM')
    await once(response, 'close')
  })
  const job = 'echo $PPID > pid; exit 7'
  const run = await platformctl(['beat', 'backup', '--url', url, '--', 'sh', '-c', job], { cwd, env })
  expect(run).toMatchObject({ exitCode: 7, stderr: expect.stringContaining('was not recorded') })
  // No second attempt, as a service that is away gets.
  expect(requests).toBe(1)
})

test.each([
  ['', []],
  [', nor with an option before it', ['--no-color']],
])('an unreachable server or a broken definition does not fail the command%s', async (_, before) => {
  const cwd = await emptyFolder()
  await writeFile(`${cwd}/platform.config.json`, '{ broken')
  const run = await platformctl(
    [...before, 'beat', 'backup', '--url', 'http://127.0.0.1:1', '--', 'printf', '%s', '--color'],
    { cwd, env },
  )
  expect(run).toMatchObject({ exitCode: 0, stdout: '--color' })
  expect(run.stderr).toBe(
    'platformctl: the heartbeat backup was not recorded: http://127.0.0.1:1 could not be reached: is the web service running, and the address right?',
  )
})
