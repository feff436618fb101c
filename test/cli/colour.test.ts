import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { wantsColour } from '../../src/cli/main.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { platformctl } from '../support/cli.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { loopbackLookup, nameServer } from '../support/outside.ts'
import { run } from '../support/run.ts'

const terminal = { write: () => true, isTTY: true }
const pipe = { write: () => true }

test.each([
  ['a terminal', [], {}, terminal, true],
  ['a pipe', [], {}, pipe, false],
  ['NO_COLOR', [], { NO_COLOR: '1' }, terminal, false],
  ['an empty NO_COLOR, which says nothing', [], { NO_COLOR: '' }, terminal, true],
  ['FORCE_COLOR on a pipe', [], { FORCE_COLOR: '1' }, pipe, true],
  ['FORCE_COLOR=0', [], { FORCE_COLOR: '0' }, terminal, false],
  ['FORCE_COLOR over CI', [], { FORCE_COLOR: '1', CI: 'true' }, pipe, true],
  ['NO_COLOR over FORCE_COLOR', [], { NO_COLOR: '1', FORCE_COLOR: '1' }, terminal, false],
  ['CI', [], { CI: 'true' }, terminal, false],
  ['an empty CI, which says nothing', [], { CI: '' }, terminal, true],
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
  const wanted = async (...more: string[]) =>
    (await platformctl([...args, ...more], { cwd, env: { FORCE_COLOR: '1' } })).stdout.includes(ESCAPE)
  expect([await wanted(), await wanted('--no-color'), await wanted('--color')]).toEqual([true, false, true])
})

test.each(['stdout', 'stderr'])(
  'errors are colored where %s is a terminal: only for its own',
  async (live) => {
    const NODE_OPTIONS = `--import=data:text/javascript,process.${live}.isTTY=true`
    const run = { cwd: await emptyFolder(), env: { NODE_OPTIONS, MAILER_REPLY_TO: 'help@example.com' } }
    const { stderr } = await platformctl(['daemon'], run)
    expect(stripVTControlCharacters(stderr)).toContain('MAILER_API_KEY')
    expect(stderr.includes(ESCAPE)).toBe(live === 'stderr')
    if (live === 'stdout') return
    const { stdout } = await platformctl(['env', 'check', 'nextjs.env'], { cwd, env: { NODE_OPTIONS } })
    expect(stdout).not.toContain(ESCAPE)
  },
)

const TOKEN = 'HEALTH_DEEP_TOKEN=a-health-token-of-thirty-two-bytes'
const AWAY = 'web=http://127.0.0.1:1'
test.each([
  ['preflight'],
  ['env', 'list'],
  ['env', 'explain', 'mail'],
  ['env', 'diff', 'nextjs.env', 'rails.env'],
  ['env', 'dialects', 'docker.env'],
  ['env', 'verify', '--env-file', 'token.env', '--url', AWAY],
  ['health', '--url', AWAY],
  ['health', '--watch', '--url', AWAY],
  ['billing', 'smoke', '--no-webhook'],
])('what %s %s prints is colored by what standard output is, whatever standard error is', async (...args) => {
  const folder = args.includes('token.env') ? await folderWith({ 'token.env': TOKEN }) : cwd
  const env = {
    PAYMENTS_SECRET_KEY: 'sk_test_of-some-length',
    PAYMENTS_WEBHOOK_SECRET: 'whsec_of-some-length',
    PAYMENTS_PRICE_PRO_MONTHLY: 'price_a',
    PAYMENTS_API_URL: 'http://127.0.0.1:1',
  }
  for (const stdout of [true, false]) {
    const interrupt = new AbortController()
    const signal = interrupt.signal
    let shown = ''
    const write = (text: string) => {
      shown += text
      if (shown.includes('unreached')) interrupt.abort()
    }
    const output = { write, isTTY: args.includes('--watch'), columns: 100, rows: 30 }
    await run(args, { cwd: folder, env, signal, colour: { stdout, stderr: !stdout }, stdout: output })
    // The sequences of a live view are no colors.
    expect(/\[\d+m/.test(shown), shown).toBe(stdout)
  }
})

async function deep(file: string, columns: number, colour: boolean): Promise<string> {
  let written = ''
  await run(['preflight', '--deep', '--timeout', '2s', '--env-file', file, '--notices'], {
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
  return written
}

test.each(['nextjs.env', 'docker.env', 'rails.env', 'systemd.env'])(
  'colour adds nothing that the text of %s does not say, which fits into 60 and 100 columns',
  async (file) => {
    for (const columns of [60, 100]) {
      const coloured = await deep(file, columns, true)
      expect(coloured).toContain(ESCAPE)
      const plain = stripVTControlCharacters(coloured)
      for (const line of plain.split('\n')) {
        // A name or a place that is longer than the line stays whole, so that it can be copied.
        const words = line.trim().split(' ').length
        if (words > 3) expect(line.length, line).toBeLessThanOrEqual(columns)
      }
      if (columns === 60) expect(plain).toBe(await deep(file, columns, false))
    }
  },
)
