import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { wantsColour } from '../../src/cli/main.ts'
import { runProgram } from '../../src/cli/program.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { platformctl } from '../support/cli.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { loopbackLookup, nameServer } from '../support/outside.ts'

const terminal = { write: () => true, isTTY: true }
const pipe = { write: () => true }

test.each([
  ['a terminal', [], {}, terminal, true],
  ['a pipe', [], {}, pipe, false],
  ['NO_COLOR', [], { NO_COLOR: '1' }, terminal, false],
  ['an empty NO_COLOR, which says nothing', [], { NO_COLOR: '' }, terminal, true],
  ['FORCE_COLOR on a pipe', [], { FORCE_COLOR: '1' }, pipe, true],
  ['FORCE_COLOR=0', [], { FORCE_COLOR: '0' }, terminal, false],
  ['NO_COLOR over FORCE_COLOR', [], { NO_COLOR: '1', FORCE_COLOR: '1' }, terminal, false],
  ['CI', [], { CI: 'true' }, terminal, false],
  ['a terminal that cannot', [], { TERM: 'dumb' }, terminal, false],
  ['--no-color over all', ['--no-color'], { FORCE_COLOR: '1' }, terminal, false],
  ['--color over NO_COLOR', ['--color'], { NO_COLOR: '1' }, pipe, true],
] as const)('colour: %s', (_, argv, env, stream, expected) => {
  expect(wantsColour(argv, env, stream)).toBe(expected)
})

const ESCAPE = '\u001b['
const cwd = fileURLToPath(new URL('../fixtures/env-files/', import.meta.url))

test('the built command writes colour only where it is wanted', async () => {
  const args = ['env', 'check', 'nextjs.env']
  expect((await platformctl(args, { cwd })).stdout).not.toContain(ESCAPE)
  expect((await platformctl(args, { cwd, env: { FORCE_COLOR: '1' } })).stdout).toContain(ESCAPE)
  expect(
    (await platformctl([...args, '--no-color'], { cwd, env: { FORCE_COLOR: '1' } })).stdout,
  ).not.toContain(ESCAPE)
})

test.each(['stdout', 'stderr'])(
  'errors are colored where %s is a terminal: only for its own',
  async (live) => {
    const NODE_OPTIONS = `--import=data:text/javascript,process.${live}.isTTY=true`
    const run = { cwd: await emptyFolder(), env: { NODE_OPTIONS, MAILER_REPLY_TO: 'help@example.com' } }
    const { stderr } = await platformctl(['daemon'], run)
    expect(stripVTControlCharacters(stderr)).toContain('MAILER_API_KEY')
    expect(stderr.includes(ESCAPE)).toBe(live === 'stderr')
  },
)

const FILES = ['nextjs.env', 'docker.env', 'rails.env', 'systemd.env']

async function deep(file: string, columns: number, colour: boolean): Promise<string> {
  let written = ''
  const { context } = testContext({
    cwd,
    env: { API_URL: 'http://nowhere.invalid' },
    network: openNetwork({ lookup: loopbackLookup, nameServers: [await nameServer({})] }),
    colour: { stdout: colour, stderr: false },
    stdout: {
      columns,
      write(text: string) {
        written += text
      },
    },
    // Durations would differ from one run to the next.
    clock: { now: () => 0, monotonic: () => 0, sleep: async () => {} },
  })
  await runProgram(['preflight', '--deep', '--timeout', '2s', '--env-file', file, '--notices'], context)
  return written
}

test.each(FILES)('colour adds nothing that the text of %s does not say', async (file) => {
  const coloured = await deep(file, 90, true)
  expect(coloured).toContain(ESCAPE)
  expect(stripVTControlCharacters(coloured)).toBe(await deep(file, 90, false))
})

test.each(FILES.flatMap((file) => [60, 80, 100].map((columns) => ({ file, columns }))))(
  '$file fits into $columns columns',
  async ({ file, columns }) => {
    for (const line of (await deep(file, columns, false)).split('\n')) {
      // A name or a place that is longer than the line stays whole, so that it can be copied.
      const words = line.trim().split(' ').length
      if (words > 3) expect(line.length, line).toBeLessThanOrEqual(columns)
    }
  },
)
