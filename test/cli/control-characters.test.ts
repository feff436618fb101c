// biome-ignore-all lint/suspicious/noControlCharactersInRegex: they are what is looked for here
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { logOutput } from '../../src/cli/commands/daemon.ts'
import { inertJson, loadPaint, type Output, shown, withGuardedOutput } from '../../src/cli/context.ts'
import { COMMAND_NAMES, runProgram } from '../../src/cli/program.ts'
import { openStore } from '../../src/core/store/open.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

/** Title of the window, colours, the C1 form of an escape, a bell, a backspace, an overwritten line, reversed text. */
const HOSTILE =
  '\u001b]0;EVIL\u0007\u001b[31mEVIL\u001b[2J\u009b2JEVIL\b\rEVIL\u202eEVIL\u2028\u001b[0;1mEVIL'
/** As a line of its own it would be a command to GitHub, or to Azure. */
const COMMAND = 'EVIL\n::add-mask::EVIL\r##[command]EVIL\n  ::stop-commands::EVIL'

/** Both streams as one terminal with colours. */
function terminal(parts: Parameters<typeof testContext>[0] = {}) {
  let text = ''
  // The cursor methods of a terminal, which spinners call.
  const stream = {
    cursorTo: () => true,
    clearLine: () => true,
    moveCursor: () => true,
    isTTY: true,
    columns: 80,
    rows: 24,
    write: (more: string) => {
      text += more
    },
  } satisfies Output & Record<string, unknown>
  const { context } = testContext({
    stdout: stream,
    stderr: stream,
    colour: { stdout: true, stderr: true },
    ...parts,
  })
  return { context, text: () => text }
}

/** Characters in a text that must never reach a terminal or a log. */
function dangers(text: string): string[] {
  // And those of a spinner: the cursor, and drawing at once.
  const colours = text.replace(/\u001b\[(?:(?:1|2|22|31|32|33|36|39)m|\?(?:25|2026)[hl])(?!EVIL)/g, '')
  return [
    ...(colours.match(/[\0-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g) ??
      []),
    ...text
      .split('\n')
      .filter((line) => /^\s*(?:::(?!(?:error|warning|notice) [^\n]*title=)|##\[)/.test(line)),
  ].map((one) => JSON.stringify(one))
}

test.each([
  ['hostile', HOSTILE],
  ['like workflow commands', COMMAND],
])(
  'words of the command line that are %s reach no terminal as they are',
  async (_, evil) => {
    const cwd = await emptyFolder()
    for (const name of COMMAND_NAMES)
      for (const words of [
        [name, evil],
        [name, `--${evil}`],
        [name, '--env-file', evil],
        [name, 'status', evil],
        [name, 'show', evil, '--data', '.'],
        [name, 'backup', evil],
        [name, 'restore', evil],
        [name, 'check', evil],
        [name, 'explain', evil],
        [name, 'render', evil],
        ['help', evil],
        [evil],
      ]) {
        const { context, text } = terminal({ cwd, signal: AbortSignal.abort() })
        if (/^(?:daemon|demo)$/.test(name) && !words.some((word) => word.includes('EVIL'))) continue
        await runProgram(words, context)
        expect(dangers(text()), JSON.stringify(words)).toEqual([])
      }
  },
  60_000,
)

test.each(['text', 'json', 'github', 'sarif', 'junit'])(
  'a hostile env file under a hostile name, as %s',
  async (format) => {
    const cwd = await emptyFolder()
    const name = 'a\u001b[31mEVIL\n::error::EVIL\u202e.env'
    await mkdir(cwd, { recursive: true })
    await writeFile(
      path.join(cwd, name),
      `LOG_LEVEL=${HOSTILE}\n${HOSTILE}=x\nSHAREDSTORE_REST_URL=https://${HOSTILE}\nwhat\u001b[2J is this\n`,
    )
    for (const command of [
      ['preflight', '--env-file', name],
      ['env', 'check', name],
      ['env', 'dialects', name],
    ]) {
      const { context, text } = terminal({ cwd })
      await runProgram([...command, ...(command[1] === 'dialects' ? [] : ['--format', format])], context)
      expect(text()).not.toBe('')
      expect(dangers(text()), text()).toEqual([])
    }
  },
)

test('the answer of a hostile server, in every format of health and by dispatch', async () => {
  const evil = `${HOSTILE}${COMMAND}`
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json')
    response.end(
      JSON.stringify({
        service: 'web',
        state: 'failing',
        build: evil,
        startedAt: evil,
        time: evil,
        latencyMs: 1,
        code: evil,
        message: evil,
        probes: { [evil]: { state: 'failing', checked: true, reason: evil } },
        results: [{ subscription: evil, day: 1, sent: false, reason: evil }],
        processed: 1,
        sent: 0,
        failed: 1,
        unknown: 0,
        remaining: 0,
        limit: 100,
        reason: evil,
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const commands = [
    ...['text', 'json', 'junit', 'prom'].map((format) => [
      'health',
      '--service',
      'web',
      '--url',
      `web=${url}`,
      '--format',
      format,
    ]),
    ['dispatch', '--url', url],
    ['dispatch', '--url', url, '--drain'],
  ]
  for (const words of commands) {
    const { context, text } = terminal({
      env: { EMAIL_DISPATCH_SECRET: 'a-secret-of-thirty-two-characters' },
    })
    await runProgram(words, context)
    expect(text(), words.join(' ')).not.toBe('')
    expect(dangers(text()), `${words.join(' ')}\n${JSON.stringify(text())}`).toEqual([])
  }
})

test('a store with hostile ids and tables', async () => {
  const cwd = await emptyFolder()
  const file = path.join(cwd, 'platform.sqlite')
  const store = await openStore({ kind: 'sqlite', file })
  await store.course.requestConfirmation({
    course: 'quantum',
    identity: 'ada@example.com',
    address: `ada@example.com${HOSTILE}`,
    id: HOSTILE,
    tokenHash: 'h',
    now: 0,
  })
  await store.close()
  const { default: Database } = await import('better-sqlite3')
  const database = new Database(file)
  database.exec(
    `CREATE TABLE "${HOSTILE}" (a); UPDATE subscription SET sent_days = '[3,1]', state = 'confirmed', confirmed_at = 1`,
  )
  database.close()
  for (const words of [
    ['db', 'status'],
    ['db', 'verify'],
    ['db', 'audit'],
    ['db', 'backup', 'b.sqlite'],
    ['course', 'status'],
    ['course', 'show', 'ada@example.com'],
  ]) {
    const { context, text } = terminal({ cwd })
    await runProgram([...words, '--data', '.'], context)
    expect(text(), words.join(' ')).not.toBe('')
    expect(dangers(text()), `${words.join(' ')}\n${JSON.stringify(text())}`).toEqual([])
  }
})

test('a log line whose texts are hostile keeps its own colours only', async () => {
  const { context, text } = terminal()
  const write = await logOutput(withGuardedOutput(context))
  const line = {
    level: 'error',
    time: 0,
    event: HOSTILE,
    message: `${HOSTILE}${COMMAND}`,
    reason: HOSTILE,
    service: HOSTILE,
  }
  write(`${JSON.stringify(line)}\n`)
  const printed = text().replace(/\u001b\[\d+m(?!EVIL)/g, '')
  expect(printed).toContain('EVIL')
  expect(dangers(printed)).toEqual([])
})

test('our own colours stay, and a guessed number does not make a sequence ours', async () => {
  const { red } = await loadPaint(true)
  expect(shown(red('x'), true)).toBe('\u001b[31mx\u001b[39m')
  expect(shown('\u001b[31;123456m', true)).toBe('\\u001b[31;123456m')
  expect(shown('one\r\n\ttwo 🙂 é', true)).toBe('one\r\n\ttwo 🙂 é')
})

test('no text can send a control character to a terminal', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(dangers(shown(text, true).replaceAll('\r\n', '\n'))).toEqual([])
      // A document in JSON stays one, and says the same.
      expect(JSON.parse(shown(JSON.stringify(text), true))).toBe(text)
      const parsed: unknown = JSON.parse(inertJson(JSON.stringify(text)))
      expect(String(parsed)).not.toMatch(/[\0-\u0008\u000a-\u001f]/)
    }),
  )
})
