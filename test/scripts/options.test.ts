import { execa } from 'execa'
import { expect, test } from 'vitest'

const TOOLS = [
  ['scripts/fuzz.ts', '--requests'],
  ['scripts/restarts.ts', '--times'],
  ['scripts/soak.ts', '--seconds'],
  ['test/simulation/main.ts', '--subscriber-days'],
  ['test/simulation/mutations.ts', '--first'],
  ['test/torture/main.ts', '--kills'],
  ['test/torture/many.ts', '--due'],
] as const

const run = (...args: readonly string[]) => execa(process.execPath, args, { reject: false })

test.each(TOOLS)(
  '%s refuses a count that is none with its usage, and starts nothing',
  async (tool, count) => {
    for (const wrong of ['ten', '0']) {
      const { exitCode, stdout, stderr } = await run(tool, `${count}=${wrong}`)
      expect([exitCode, stdout]).toEqual([2, ''])
      expect(stderr).toContain(`${count} is a whole number of at least 1`)
      expect(stderr).toContain('npm run ')
    }
  },
)

test('a tool tells its usage for --help, and for an unknown option', async () => {
  const help = await run('scripts/soak.ts', '--help')
  expect([help.exitCode, help.stderr]).toEqual([0, ''])
  expect(help.stdout).toContain('npm run soak')
  const wrong = await run('scripts/soak.ts', '--second', '5')
  expect(wrong.exitCode).toBe(2)
  expect(wrong.stderr).toContain("Unknown option '--second'")
  expect(wrong.stderr).toContain('npm run soak')
})
