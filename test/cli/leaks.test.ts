import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { VARIABLES } from '../../src/core/env/contract.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

/** A value for each variable that is wrong in a different way, and recognisable wherever it comes out. */
const SHAPES = [
  'CANARY%',
  'CANARY% with spaces',
  'https://CANARY%.example.com/x',
  'sk_live_CANARY%',
  '*CANARY%',
  'CANARY%@example.com',
  'smtp://user:CANARY%@host',
  '"CANARY%',
  '<CANARY%>',
  'price_CANARY%\u0007',
]
const CANARIES = VARIABLES.map(
  ({ name }, index) => `${name}=${SHAPES[index % SHAPES.length]?.replace('%', String(index))}`,
)

const FORMATS = ['text', 'json', 'github', 'sarif', 'junit']
const COMMANDS = [
  ...FORMATS.flatMap((format) => [
    ['preflight', '--env-file', 'a.env', '--notices', '--format', format],
    ['preflight', '--strict', '--format', format],
    ['env', 'check', 'a.env', '--notices', '--format', format],
  ]),
  ...['text', 'json'].flatMap((format) => [
    ['env', 'list', '--env-file', 'a.env', '--format', format],
    ['env', 'diff', 'a.env', 'b.env', '--format', format],
    [
      'health',
      '--env-file',
      'a.env',
      '--timeout',
      '1ms',
      '--format',
      format,
      '--url',
      'api=http://127.0.0.1:1',
    ],
  ]),
  ['dispatch', '--env-file', 'a.env'],
  ['daemon', '--env-file', 'a.env'],
  ['email', 'send-test', 'welcome', '--to', 'you@example.com', '--env-file', 'a.env'],
  ['course', 'status', '--env-file', 'a.env'],
]

test.each(COMMANDS)('no byte of a value comes out of: platformctl %s %s %s %s', async (...args) => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'a.env'), CANARIES.join('\n'))
  await writeFile(path.join(cwd, 'b.env'), CANARIES.join('\n').replaceAll('CANARY', 'OTHERCANARY'))
  const env = Object.fromEntries(
    CANARIES.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const { context, stdout, stderr } = testContext({ cwd, env: args.includes('a.env') ? {} : env })
  await runProgram(
    args.filter((word) => word !== undefined),
    context,
  )
  expect(stdout() + stderr()).not.toBe('')
  expect(stdout() + stderr()).not.toMatch(/CANARY/)
})
