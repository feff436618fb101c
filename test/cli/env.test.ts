import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { LIVE_FINDINGS, WARNINGS } from '../../src/core/env/explanations.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { RULES, VARIABLES } from '../support/learning.ts'

async function run(args: string[], parts: Parameters<typeof testContext>[0] = {}) {
  const { context, stdout, stderr } = testContext(parts)
  return { code: await runProgram(args, context), stdout: stdout(), stderr: stderr() }
}

test('the example names every variable, sets none, and passes preflight unchanged', async () => {
  const { stdout } = await run(['env', 'example'])
  for (const { name } of VARIABLES) expect(stdout).toMatch(new RegExp(`^# ${name}=`, 'm'))
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, '.env'), stdout)
  expect(await run(['preflight', '--env-file', '.env', '--strict'], { cwd })).toMatchObject({ code: 0 })
})

test('every value of the example is well-formed once its line is uncommented', async () => {
  const { stdout } = await run(['env', 'example'])
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, '.env'), stdout.replace(/^# ([A-Z0-9_]+=.+)$/gm, '$1'))
  const report = JSON.parse(
    (await run(['preflight', '--env-file', '.env', '--format', 'json'], { cwd })).stdout,
  ) as { findings: { id: string; present: string[] }[] }
  expect(report.findings.filter(({ id }) => id === 'malformed-value' || id === 'unreadable-line')).toEqual([])
})

test.each([
  ...VARIABLES.map(({ name }) => name),
  ...RULES.map(({ id }) => id),
  ...Object.keys(WARNINGS),
  ...Object.keys(LIVE_FINDINGS),
])('explains %s', async (name) => {
  const { code, stdout } = await run(['env', 'explain', name])
  expect(code).toBe(0)
  expect(stdout.split('\n').length).toBeGreaterThan(2)
})

test('explaining an unknown name is wrong usage and names the nearest', async () => {
  expect(await run(['env', 'explain', 'MAILER_FORM'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('Did you mean MAILER_FROM?'),
  })
})

test.each(['constructor', 'toString', '__proto__'])(
  '%s, which every object has, is an unknown name',
  async (name) => {
    expect(await run(['env', 'explain', name])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('unknown'),
    })
  },
)

test.each([
  ['mail-without-sendr', 'mail-without-sender'],
  ['live-nmae', 'live-name'],
  ['payment', 'payments'],
])('%s is answered with %s', async (name, near) => {
  expect((await run(['env', 'explain', name])).stderr).toMatch(new RegExp(` Did you mean ${near}\\?\n$`))
})

test('on a terminal an explanation is wrapped, and off it a sentence is one line', async () => {
  const piped = (await run(['env', 'explain', 'sender-spf'])).stdout
  const written: string[] = []
  const stdout = { columns: 50, write: (text: string) => written.push(text) }
  await run(['env', 'explain', 'sender-spf'], { stdout })
  const shown = written.join('')
  expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeLessThanOrEqual(50)
  expect(shown.replace(/\s+/g, ' ')).toBe(piped.replace(/\s+/g, ' '))
})

test('the list tells a malformed value, which is set and behaves as absent', async () => {
  const { stdout } = await run(['env', 'list'], { env: { RATE_LIMIT_PER_MINUTE: 'many' } })
  expect(stdout).toMatch(/limits {2}absent\n {2}▲ malformed {2}RATE_LIMIT_PER_MINUTE/)
})

test('the list says what is set and never to what', async () => {
  const { code, stdout } = await run(['env', 'list'], { env: { MAILER_API_KEY: 'canary-value' } })
  expect(code).toBe(0)
  expect(stdout).toMatch(/● set +MAILER_API_KEY/)
  expect(stdout).not.toContain('canary')
})

test('env diff names no line of a wrapped secret', async () => {
  const cwd = await emptyFolder()
  await writeFile(
    path.join(cwd, 'a.env'),
    'DATASTORE_JWT_SECRET=-----BEGIN KEY-----\nwrapped0123\n-----END KEY-----\n',
  )
  await writeFile(path.join(cwd, 'b.env'), 'BUILD_STAMP=x\n')
  const { stdout } = await run(['env', 'diff', 'a.env', 'b.env'], { cwd })
  expect(stdout).toContain('DATASTORE_JWT_SECRET')
  expect(stdout).not.toMatch(/wrapped0123|END KEY/)
})
