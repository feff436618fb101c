import { execa } from 'execa'
import { expect, test } from 'vitest'
import { readEnv } from '../../src/env.ts'
import { bin } from '../support/cli.ts'
import { folderWith } from '../support/folder.ts'
import { run as runIn } from '../support/run.ts'

const run = async (text: string, ...args: string[]) =>
  runIn(args, { cwd: await folderWith({ 'a.env': text }), env: { OF_MACHINE: 'loud' } })

interface Report {
  readonly findings: readonly { id: string; severity: string; location?: { line: number } }[]
}
/** The findings of a check of this text. */
async function findings(text: string, ...args: string[]) {
  const { code, stdout } = await run(text, 'env', 'check', 'a.env', '--format', 'json', ...args)
  expect(code).toBe(0)
  return (JSON.parse(stdout) as Report).findings
}

test('names that every reader sees alike are not shown, and the exit code is 0', async () => {
  const { code, stdout } = await run('LOG_LEVEL=info\nSTORE_POOL_SIZE=5\n', 'env', 'dialects', 'a.env')
  expect({ code, stdout }).toEqual({ code: 0, stdout: '2 of 2 names are read alike by all\n' })
})

test('a file that is checked as one reader sees it is compared with the readers of a deployment all the same', async () => {
  const found = await findings('LOG_LEVEL=info # quiet\n', '--dialect', 'node')
  expect(found.map(({ id }) => id)).toContain('reader-difference')
})

test('the same letter is the same value, a dash is no value, and values are never shown', async () => {
  const { code, stdout } = await run('A=canary # note\nE=\n', 'env', 'dialects', 'a.env', '--format', 'json')
  expect(code).toBe(1)
  expect(stdout).not.toContain('canary')
  expect(JSON.parse(stdout)).toMatchObject({
    refusing: [],
    names: [
      {
        name: 'A',
        readers: { node: 'A', dotenv: 'A', 'dotenv-expand': 'A', compose: 'A', docker: 'B', systemd: 'B' },
      },
      { name: 'E', readers: { node: 'A', systemd: '–' } },
    ],
  })
})

test('a name of ours that only some readers find is a row, and no other line of a value is', async () => {
  const { stdout } = await run('KEY="b\nLOG_LEVEL=info\nOTHER=c"\n', 'env', 'dialects', 'a.env')
  expect(stdout).toMatch(/^LOG_LEVEL +– +– +– +– +A +–$/m)
  expect(stdout).not.toContain('OTHER')
})

test('names each reader that would refuse the file, in the table and as a warning', async () => {
  const text = 'LOG_LEVEL = info\n'
  expect(await run(text, 'env', 'dialects', 'a.env')).toEqual({
    code: 1,
    stdout: 'refused by docker (because of line 1)\n1 of 1 names are read alike by all others\n',
    stderr: '',
  })
  expect((await findings(text)).map(({ id }) => id)).toContain('refused-by-reader')
  const { stdout } = await run(text, 'env', 'dialects', 'a.env', '--format', 'json')
  expect(JSON.parse(stdout)).toMatchObject({
    refusing: ['docker'],
    names: [{ name: 'LOG_LEVEL', readers: { node: 'A', docker: 'refused', systemd: 'A' } }],
  })
})

test('warns at the line of a value that a deployment would read differently', async () => {
  const found = await findings('LOG_LEVEL=info\n\nBUILD_STAMP=$2b$10$abcdef\n')
  expect(found.filter(({ severity }) => severity === 'warning')).toMatchObject([
    { id: 'reader-difference', present: ['BUILD_STAMP'], location: { line: 3, column: 1 } },
  ])
})

test('readEnv reads as the named reader would, and says when that reader refuses', () => {
  expect(readEnv('A=b # c').values.get('A')).toBe('b')
  expect(readEnv('A=`b # c`').values.get('A')).toBe('b # c')
  expect(readEnv('A=b # c', { dialect: 'docker' }).values.get('A')).toBe('b # c')
  expect(readEnv('A = b', { dialect: 'docker' })).toMatchObject({ rejected: true })
  for (const dialect of [undefined, 'node'] as const) {
    const { values, findings } = readEnv('A=1\nA=2\nA=3', { file: 'ops.env', ...(dialect && { dialect }) })
    expect(values.get('A')).toBe('3')
    expect(findings).toMatchObject(
      [2, 3].map((line) => ({
        id: 'duplicate-name',
        cause: expect.stringContaining(`line ${line - 1} of the same file`),
        location: { file: 'ops.env', line },
      })),
    )
  }
})

const REFERENCE = ['RATE_LIMIT_PER_MINUTE=$', '{NOT_SET:-60}'].join('')

test.each([
  ['node', 'LOG_LEVEL="warn"', []],
  ['docker', 'LOG_LEVEL="warn"', ['malformed-value']],
  ['systemd', 'export LOG_LEVEL=loud', []],
  ['node', 'export LOG_LEVEL=loud', ['malformed-value']],
  ['compose', REFERENCE, []],
  ['dotenv', REFERENCE, ['placeholder-value']],
  ['compose', 'LOG_LEVEL=$OF_MACHINE', ['malformed-value']],
  ['dotenv-expand', 'LOG_LEVEL=$OF_MACHINE', ['malformed-value']],
])('--dialect %s: %s is judged as that reader sees it', async (dialect, text, expected) => {
  const found = await findings(`# note\n${text}\n`, '--dialect', dialect, '--readers', dialect)
  const warnings = found.filter(({ severity }) => severity === 'warning')
  expect(warnings.map(({ id }) => id)).toEqual(expected)
  for (const { location } of warnings) expect(location?.line).toBe(2)
})

test('a file refused by the selected reader is unreadable: exit 2, one sentence', async () => {
  expect(await run('LOG LEVEL=info\n', 'preflight', '-e', 'a.env', '--dialect', 'docker')).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^platformctl: docker would refuse a\.env because of line \d+: .*\n$/),
  })
})

test('only the readers that are named can disagree', async () => {
  const warned = async (readers: string) =>
    (await findings('BUILD_STAMP="a b"\n', '--readers', readers)).map(({ id }) => id)
  expect(await warned('node,compose,systemd')).not.toContain('reader-difference')
  expect(await warned('node, docker')).toContain('reader-difference')
  expect(await run('', 'preflight', '--readers', 'nodejs')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/unknown reader 'nodejs'\. Did you mean node/),
  })
})

test('more differences than a call has arguments are listed all the same', async () => {
  const text = Array.from({ length: 13_000 }, (_, index) => `A${index}='a'\n`).join('')
  const cwd = await folderWith({ 'a.env': text })
  // A call has fewer on a small stack: 11,900 and not 125,000.
  const args = ['--stack-size=100', '--', bin, 'env', 'dialects', 'a.env']
  const { exitCode, stdout } = await execa(process.execPath, args, { cwd, reject: false })
  expect(exitCode).toBe(1)
  expect(stdout).toContain('A12999')
})
