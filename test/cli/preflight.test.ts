import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'

async function preflight(
  file: string | Uint8Array | undefined,
  args: string[] = [],
  env: Record<string, string> = {},
) {
  const cwd = await emptyFolder()
  if (file !== undefined) await writeFile(path.join(cwd, 'a.env'), file)
  const { context, stdout, stderr } = testContext({ cwd, env })
  const code = await runProgram(
    ['preflight', ...(file === undefined ? [] : ['--env-file', 'a.env']), ...args],
    context,
  )
  return { code, stdout: stdout(), stderr: stderr() }
}

test('an empty environment and an empty file pass', async () => {
  expect(await preflight(undefined)).toMatchObject({ code: 0, stderr: '' })
  expect(await preflight('')).toMatchObject({ code: 0, stderr: '' })
})

test('half-configuration fails, names what is present and missing, and points at the line', async () => {
  const { code, stdout } = await preflight('# limits\nSHAREDSTORE_REST_URL=https://limits.example.com\n')
  expect(code).toBe(1)
  expect(stdout).toContain('sharedstore-pair  a.env:2:1')
  expect(stdout).toMatch(/present +SHAREDSTORE_REST_URL\n +missing +SHAREDSTORE_REST_TOKEN/)
  expect(stdout).toMatch(/failed: 1 error, 0 warnings/)
})

test('errors come first, then the groups, with those that are absent in one line, then warnings', async () => {
  const { stdout } = await preflight('SHAREDSTORE_REST_URL=https://limits.example.com\nLOG_LEVEL=loud\n')
  const [error, half, absent, warning, verdict] = [
    stdout.search(/^✖ error sharedstore-pair/m),
    stdout.search(/^◐ sharedstore +half-configured/m),
    stdout.search(/^○ absent +site, store, datastore, payments, /m),
    stdout.search(/^▲ warning malformed-value/m),
    stdout.search(/^✖ failed/m),
  ]
  expect([error, half, absent, warning, verdict]).toEqual(
    [error, half, absent, warning, verdict].toSorted((a, b) => a - b),
  )
  expect(error).toBeGreaterThan(0)
  expect(stdout.match(/^. absent/gm)).toHaveLength(1)
})

test('warnings pass, and fail with --strict', async () => {
  const file = 'RATE_LIMIT_PER_MINUTE=many\n'
  expect((await preflight(file)).code).toBe(0)
  expect((await preflight(file, ['--strict'])).code).toBe(1)
})

test('JSON is the only thing on standard output, and has a version', async () => {
  const { code, stdout, stderr } = await preflight('MAILER_API_KEY=some-key-value', ['--format', 'json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({ version: 1, ok: false, services: ['web', 'api', 'agent'] })
  expect(stderr).toBe('')
})

test('the process environment wins over a file, and the file’s value is named as shadowed', async () => {
  const { code, stdout } = await preflight('LOG_LEVEL=loud\n', [], { LOG_LEVEL: 'warn' })
  expect(code).toBe(0)
  expect(stdout).toContain('shadowed-value')
  expect(stdout).not.toContain('malformed-value')
})

test('one service at a time can be asked for', async () => {
  const file = 'HARDWARE_A_TOKEN=token-value\n'
  expect((await preflight(file, ['--service', 'web'])).code).toBe(0)
  expect((await preflight(file, ['--service', 'web,api'])).code).toBe(1)
  expect(await preflight(file, ['--service', 'database'])).toMatchObject({ code: 2, stdout: '' })
})

test('a finding of a file names those of the requested services that read its variables', async () => {
  const services = async (file: string, args: string[]) => {
    const { findings } = JSON.parse((await preflight(file, [...args, '--format', 'json'])).stdout) as {
      findings: { severity: string; services: string[] }[]
    }
    return findings.filter(({ severity }) => severity === 'warning').map((finding) => finding.services)
  }
  const file = 'API_URL="https://api.example.com" \nAPI_URL=https://api.example.com\n'
  expect(await services(file, [])).toEqual([['web', 'agent']])
  expect(await services('not an assignment\n', ['--service', 'api', '--readers', 'node'])).toEqual([['api']])
})

test('no byte of a value reaches any stream, whatever is wrong with it', async () => {
  const file = VARIABLES.map(({ name }, index) => `${name}=*canary${index} \u0001`).join('\n')
  for (const format of ['text', 'json']) {
    const { stdout, stderr } = await preflight(file, ['--format', format, '--notices'])
    expect(stdout + stderr).not.toContain('canary')
  }
})

test.each([
  ['a folder', async (cwd: string) => void (await mkdir(path.join(cwd, 'a.env'))), /a\.env: it is a folder/],
  ['a missing file', async () => {}, /a\.env: there is no such file/],
  [
    'a binary file',
    (cwd: string) => writeFile(path.join(cwd, 'a.env'), new Uint8Array([65, 61, 0, 66])),
    /binary file/,
  ],
  [
    'invalid UTF-8',
    (cwd: string) => writeFile(path.join(cwd, 'a.env'), new Uint8Array([65, 61, 0xff, 0xfe])),
    /not valid UTF-8/,
  ],
  [
    'a file larger than an env file can be',
    (cwd: string) => writeFile(path.join(cwd, 'a.env'), 'A'.repeat(5_000_000)),
    /larger than/,
  ],
])('%s is one sentence on standard error, exit 2', async (_, make, sentence) => {
  const cwd = await emptyFolder()
  await make(cwd)
  const { context, stdout, stderr } = testContext({ cwd })
  expect(await runProgram(['preflight', '--env-file', 'a.env', '--format', 'json'], context)).toBe(2)
  expect(stdout()).toBe('')
  expect(stderr()).toMatch(sentence)
  expect(stderr().trim().split('\n')).toHaveLength(1)
})

test('on a terminal of 40 columns no line is longer, and a group’s meaning is below it', async () => {
  const chunks: string[] = []
  const stdout = { columns: 40, write: (text: string) => chunks.push(text) > 0 }
  await runProgram(
    ['preflight'],
    testContext({ stdout, env: { SHAREDSTORE_REST_URL: 'https://a.example' } }).context,
  )
  const written = chunks.join('')
  expect(written).toMatch(
    /\n◐ sharedstore {2}half-configured\n {4}rate limits count in this process\n {4}only\n○ absent {2}site, store, datastore,/,
  )
  const table = written.split('\n\n')[2]?.split('\n') ?? []
  expect(table.filter((line) => line.length > 40)).toEqual([])
})
