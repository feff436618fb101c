// biome-ignore-all lint/suspicious/noControlCharactersInRegex: they are what is looked for here
import path from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { logOutput } from '../../src/cli/commands/daemon.ts'
import { inertJson, loadPaint, type Output, shown, withGuardedOutput } from '../../src/cli/context.ts'
import { COMMAND_NAMES, runProgram } from '../../src/cli/program.ts'
import { openStore } from '../../src/core/store/open.ts'
import { anyText } from '../support/any-text.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { serve } from '../support/servers.ts'

/** Title of the window, colours, the C1 form of an escape, a bell, a backspace, an overwritten line, reversed text. */
const HOSTILE =
  '\u001b]0;EVIL\u0007\u001b[31mEVIL\u001b[2J\u009b2JEVIL\b\rEVIL\u202eEVIL\u2028\u001b[0;1mEVIL'
/** It would be a command to GitHub as a line of its own, and to its runner or Azure’s agent also in the middle of one. */
const COMMAND =
  'EVIL\n::add-mask::EVIL\r##[command]EVIL\n  ::stop-commands::EVIL ##vso[task.setvariable variable=A]EVIL ##VSO[a]'

const EVIL = `${HOSTILE}${COMMAND}`

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
      .filter((line) => /^\s*::(?!(?:error|warning|notice) [^\n]*title=)|##(?:vso)?\[/i.test(line)),
  ].map((one) => JSON.stringify(one))
}

test('no word of the command line reaches a terminal as it is, nor as a workflow command', async () => {
  const cwd = await emptyFolder()
  for (const name of COMMAND_NAMES)
    for (const words of [
      [name, EVIL],
      [name, `--${EVIL}`],
      [name, '--env-file', EVIL],
      [name, 'status', EVIL],
      [name, 'show', EVIL, '--data', '.'],
      [name, 'backup', EVIL],
      [name, 'restore', EVIL],
      [name, 'check', EVIL],
      [name, 'explain', EVIL],
      [name, 'render', EVIL],
      ['help', EVIL],
      [EVIL],
    ]) {
      const { context, text } = terminal({ cwd, signal: AbortSignal.abort() })
      await runProgram(words, context)
      expect(dangers(text()), JSON.stringify(words)).toEqual([])
    }
}, 60_000)

test.each(['text', 'json', 'github', 'sarif', 'junit'])(
  'a hostile env file under a hostile name, as %s',
  async (format) => {
    const name = 'a\u001b[31mEVIL\n::error::EVIL\u202e.env'
    const cwd = await folderWith({
      [name]: `LOG_LEVEL=${HOSTILE}\n${HOSTILE}=x\nSHAREDSTORE_REST_URL=https://${HOSTILE}\nwhat\u001b[2J is this\n`,
    })
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
  const url = await serve((_, response) =>
    response.end(
      JSON.stringify({
        service: 'web',
        state: 'failing',
        build: EVIL,
        startedAt: EVIL,
        time: EVIL,
        latencyMs: 1,
        code: EVIL,
        message: EVIL,
        probes: { [EVIL]: { state: 'failing', checked: true, reason: EVIL } },
        results: [{ subscription: EVIL, day: 1, sent: false, reason: EVIL }],
        processed: 1,
        sent: 0,
        failed: 1,
        unknown: 0,
        remaining: 0,
        limit: 100,
        reason: EVIL,
      }),
    ),
  )
  const commands = [
    ...['text', 'json', 'junit', 'prom'].map((format) => [
      'health',
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

test.each([
  ['done ##[error]x, ##vso[task.complete]y', 'done #\\u0023[error]x, #\\u0023vso[task.complete]y'],
  ['###[a] ##Vso[b]', '##\\u0023[a] #\\u0023Vso[b]'],
  ['  ::add-mask::x\n::error::y', '  \\::add-mask::x\n\\::error::y'],
  // Ordinary text stays as it is.
  ['## Title [x]\na::b ##a #[b] ## [c] ##vso', '## Title [x]\na::b ##a #[b] ## [c] ##vso'],
])('the text %j is written so that no CI takes a part of it for a command', (text, written) => {
  for (const isTerminal of [true, false]) expect(shown(text, isTerminal)).toBe(written)
})

test('a separator of Unicode begins no line for a CI, and does not spoil a JSON string', () => {
  expect(shown('\u2028::error::y\r::z', false)).toBe('\u2028\\::error::y\\u000d\\::z')
  expect(shown('{"line":"\u2028::"}', false)).toBe('{"line":"\u2028::"}')
})

test('no text can send a control character to a terminal, or a command to a CI log', () => {
  const marks = [
    '#',
    '[',
    '##vso[',
    '\\',
    '::',
    '\n',
    '\r',
    '\0',
    '\u001b',
    '\u007f',
    '\u0085',
    '\u009b',
    '\u2028',
    '\u202e',
  ]
  const unit = fc.oneof(anyText({ maxLength: 3 }), fc.constantFrom(...marks))
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      expect(dangers(shown(text, true).replaceAll('\r\n', '\n'))).toEqual([])
      // A document in JSON stays one, and says the same.
      for (const isTerminal of [true, false])
        expect(JSON.parse(shown(JSON.stringify(text), isTerminal))).toBe(text)
      const parsed: unknown = JSON.parse(inertJson(JSON.stringify(text)))
      expect(String(parsed)).not.toMatch(/[\0-\u0008\u000a-\u001f]/)
    }),
  )
})
