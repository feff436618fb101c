import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { Context } from '../../src/cli/context.ts'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { healthBody, serve } from '../support/servers.ts'

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'

/** Runs a watch of web over these states, a round each, and interrupts it after the last. */
async function watch(
  rounds: readonly { state?: string; build?: string; status?: number }[],
  args: string[],
  stdout: Partial<Context['stdout']>,
  env: Context['env'] = {},
) {
  const interrupt = new AbortController()
  let asked = 0
  const paths: (string | undefined)[] = []
  const url = await serve((request, response) => {
    paths.push(request.url)
    const round = rounds[asked]
    asked += 1
    if (round === undefined) interrupt.abort()
    response.writeHead(round?.status ?? 200).end(
      healthBody({
        probes: { store: { state: round?.state ?? 'ok', checked: true, reason: 'the reason' } },
        ...round,
      }),
    )
  })
  let now = Date.parse('2026-11-21T12:00:00Z')
  const clock = {
    now: () => now,
    monotonic: () => now,
    // Only the pause between two rounds takes time; what waits for an answer waits for it.
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        if (signal !== interrupt.signal) return signal?.addEventListener('abort', reject)
        setImmediate(() => {
          now += ms
          resolve()
        })
      }),
  }
  const { context, stdout: written } = testContext({ env, clock, signal: interrupt.signal })
  const write = context.stdout.write.bind(context.stdout)
  const code = await runProgram(['health', '--watch', '--url', `web=${url}`, ...args], {
    ...context,
    stdout: { write, ...stdout },
  })
  return { code, text: written(), paths }
}

/** The frames as a terminal would show them, one text each. */
function frames(text: string): string[] {
  return text
    .split('\u001b[?2026h')
    .slice(1)
    .map((one) =>
      (one.split('\u001b[?2026l')[0] ?? '')
        .replace('\u001b[H', '')
        .replaceAll('\u001b[K', '')
        .replaceAll('\u001b[J', '')
        .replaceAll('\r', ''),
    )
}

test('on a terminal: a live view that fits it, and the terminal as it was afterwards', async () => {
  const rounds = [{}, {}, { state: 'failing' }, { state: 'failing' }, { status: 404 }]
  const { code, text } = await watch(rounds, ['--interval', '3s'], { isTTY: true, columns: 90, rows: 12 })
  expect(text.startsWith(ENTER)).toBe(true)
  expect(text.split(ENTER)).toHaveLength(2)
  const [inside = '', after = ''] = text.split(LEAVE)
  expect(after, 'what was seen last stays on the screen').toContain('not reached: web')
  expect(code).toBe(3)
  const shown = frames(inside)
  for (const frame of shown) {
    const lines = frame.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(11)
    for (const line of lines) expect([...line].length).toBeLessThanOrEqual(90)
  }
  const all = shown.join('\n')
  expect(all).toMatch(/ 12:00:\d\d UTC · every 3 s · next check in 3 s/)
  expect(all).toMatch(/next check in 1 s/)
  expect(all).toMatch(/● web {3}ok .* ms {2}[▁-█]{2} +for \d s/u)
  expect(all).toMatch(/✖ web {3}failing .*[▁-█]{3}/u)
  expect(all).toMatch(/root cause {2}web: store: the reason/)
  expect(all).toMatch(/✖ web {3}unreached .* ms {2}[▁-█]{4}× +.*not_found/u)
})

test('off a terminal: a line for each change, and none for what stays', async () => {
  const rounds = [
    { build: 'a' },
    { build: 'a' },
    { state: 'failing', build: 'a' },
    { state: 'failing', build: 'a' },
    { build: 'b' },
    { build: 'b' },
  ]
  const { code, text } = await watch(rounds, [], {})
  expect(text.replace(/^\S+ /gm, '').trimEnd().split('\n')).toEqual([
    'web ok build a',
    'web failing build a (store: the reason)',
    'web ok build b',
  ])
  // Asked every five seconds, unless --interval says otherwise.
  expect(text.match(/^\S+(?= web)/gm)?.map((at) => at.slice(11, 19))).toEqual([
    ...['12:00:00', '12:00:10', '12:00:20'],
  ])
  expect(text).not.toContain('\u001b')
  expect(code).toBe(0)
})

test.each([{ CI: 'true' }, { TERM: 'dumb' }])(
  'on a terminal with %j there are lines and no live view',
  async (env) => {
    const { text } = await watch([{}], [], { isTTY: true, columns: 90, rows: 12 }, env)
    expect(text).toMatch(/^2026-11-21T12:00:00\.000Z web ok build \S+\n$/)
  },
)

test('a watch asks as deeply and judges as strictly as a single check', async () => {
  const args = ['--deep', '--strict', '--expect-build', 'a']
  const worn = await watch([{ state: 'degraded', build: 'a' }], args, {})
  expect([worn.code, worn.paths[0]]).toEqual([1, '/api/health?deep=1'])
  expect((await watch([{ build: 'b' }], args, {})).code).toBe(1)
  const well = await watch([{ build: 'a' }], args.slice(1), {})
  expect([well.code, well.paths[0]]).toEqual([0, '/api/health'])
})

test('in JSON: a document a line, a line a round', async () => {
  const { text } = await watch([{}, { state: 'failing' }], ['--format', 'json'], { isTTY: true })
  expect(
    text
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { outcome: string }).outcome),
  ).toEqual(['passed', 'failed'])
})

test('a real terminal is restored on a signal', async () => {
  if (!existsSync('/usr/bin/script'))
    return void process.stderr.write('skipped: no /usr/bin/script (package bsdutils)\n')
  const url = await serve((_, response) => response.end(healthBody()))
  const bin = fileURLToPath(new URL('../../bin/platformctl.js', import.meta.url))
  // The shell says its process id and becomes the CLI, so that the signal meets it and not script.
  const command = `echo pid $$; exec '${process.execPath}' '${bin}' health --watch --interval 100ms --url web=${url}`
  const child = spawn('/usr/bin/script', ['-qec', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env.PATH, TERM: 'xterm', SHELL: '/bin/sh' },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await expect.poll(() => text, { timeout: 10_000 }).toContain('web is ok')
  process.kill(Number(/pid (\d+)/.exec(text)?.[1]), 'SIGTERM')
  const [code] = (await once(child, 'close')) as [number]
  expect(text.split(ENTER)).toHaveLength(2)
  expect(text.split(LEAVE)).toHaveLength(2)
  expect(text.indexOf(LEAVE)).toBeGreaterThan(text.indexOf(ENTER))
  expect(code).toBe(0)
})
