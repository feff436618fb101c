import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { platformctl } from '../support/cli.ts'
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
