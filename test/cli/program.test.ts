import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'

test('an unknown command is wrong usage: exit 2, a sentence on standard error, nothing on standard output', async () => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram(['nope'], context)).toBe(2)
  expect(stderr()).toMatch(/unknown command 'nope'/)
  expect(stdout()).toBe('')
})

test('a misspelt command is answered with the nearest one', async () => {
  const { context, stderr } = testContext()
  expect(await runProgram(['deom'], context)).toBe(2)
  expect(stderr()).toMatch(/Did you mean demo\?/)
})

test('an unknown flag of a command is wrong usage', async () => {
  const { context, stderr } = testContext()
  expect(await runProgram(['demo', '--nope'], context)).toBe(2)
  expect(stderr()).toMatch(/unknown option '--nope'/)
})

test('without arguments it shows its help on standard output and exits 0', async () => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram([], context)).toBe(0)
  expect(stdout()).toMatch(/Usage: platformctl/)
  expect(stderr()).toBe('')
})

test('help for one command and --help of that command are the same text', async () => {
  const [asked, flagged] = [testContext(), testContext()]
  expect(await runProgram(['help', 'demo'], asked.context)).toBe(0)
  expect(await runProgram(['demo', '--help'], flagged.context)).toBe(0)
  expect(asked.stdout()).toBe(flagged.stdout())
  expect(asked.stdout()).toMatch(/Usage: platformctl demo/)
})

test('--version prints the version of the package and nothing else', async () => {
  const { context, stdout } = testContext()
  expect(await runProgram(['--version'], context)).toBe(0)
  expect(stdout()).toMatch(/^\d+\.\d+\.\d+\n$/)
})
