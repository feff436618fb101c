import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { execa } from 'execa'
import { expect, test } from 'vitest'
import { bin, platformctl } from '../support/cli.ts'
import { emptyFolder } from '../support/folder.ts'

/** Makes the process fail from outside, with every value of the environment in the error's text. */
const crash = (how: string) =>
  `--import=data:text/javascript,${encodeURIComponent(
    `const error = () => new TypeError(Object.values(process.env).join(' ')); ${how}`,
  )}`

test.each([
  ['an exception that nobody catches', 'setImmediate(() => { throw error() })'],
  ['a rejection that nobody handles', 'setImmediate(() => Promise.reject(error()))'],
  ['a fault while a value is judged', 'URL.parse = () => { throw error() }'],
])('%s ends with 70 and one report, without the text of the error', async (_, how) => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'a.env'), 'API_URL=https://canary-in-the-file.example\n')
  const { exitCode, stdout, stderr } = await platformctl(['preflight', '--env-file', 'a.env', '--deep'], {
    cwd,
    env: { MAILER_API_KEY: 'canary-in-the-environment', NODE_OPTIONS: crash(how) },
  })
  expect(exitCode).toBe(70)
  expect(stderr).toMatch(/internal fault[^\n]*\nTypeError\n/)
  expect(stdout + stderr).not.toContain('canary')
  expect(await readdir(cwd)).toEqual(['a.env'])
})

test.each([
  ['stdout', 0, ['preflight']],
  ['stdout', 1, ['preflight', '--env-file', 'half.env']],
  ['stdout', 3, ['health', '--url', 'web=http://127.0.0.1:9']],
  ['stdout', 3, ['health', '--watch', '--interval', '100ms', '--url', 'web=http://127.0.0.1:9']],
  ['stderr', 2, ['preflight', '--env-file', 'none.env']],
] as const)(
  'a reader of %s that goes away, as `| head` does, leaves exit code %i: %j',
  async (stream, code, args) => {
    const cwd = await emptyFolder()
    await writeFile(path.join(cwd, 'half.env'), 'MAILER_REPLY_TO=help@example.com\n')
    const running = execa(process.execPath, ['--', bin, ...args], {
      cwd,
      env: {},
      extendEnv: false,
      reject: false,
    })
    running[stream].destroy()
    const { exitCode, stdout, stderr } = await running
    expect(exitCode).toBe(code)
    expect(stdout + stderr).toBe('')
  },
)
