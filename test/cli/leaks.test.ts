import { generateKeyPairSync } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { runProgram } from '../../src/cli/program.ts'
import type { Variable } from '../../src/core/env/contract.ts'
import { DIALECTS } from '../../src/core/env/dialects/dialect.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { validateAll } from '../../src/env.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'
import { loopbackLookup, startNameServer } from '../support/outside.ts'

/** Values that are wrong in a different way each, and recognisable wherever they come out. */
const SHAPES = [
  'CANARY%',
  'CANARY% with spaces',
  'https://user:CANARY%@service.invalid',
  'sk_live_CANARY%',
  '*CANARY%',
  'CANARY%@example.com',
  'smtp://user:CANARY%@host',
  '"CANARY%',
  '<CANARY%>',
  'price_CANARY%\u0007',
]
const wrong = ({ name }: Variable, index: number) =>
  `${name}=${SHAPES[index % SHAPES.length]?.replace('%', String(index))}`

/** On one line, as an env file has it. */
const DKIM_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString()
  .trim()
  .replaceAll('\n', '\\n')

/** Values that are right, so that what uses them gets as far as it can; every host is one that does not exist. */
function right({ name, kind, group, of }: Variable, index: number): string {
  // Messages name the address asked, but without its credentials.
  if (group === 'site' && kind === 'url') return `${name}=https://user:canary@service${index}.invalid`
  if (kind === 'enum') return `${name}=${of?.[0]}`
  if (name === 'MAILER_DKIM_KEY') return `${name}=${DKIM_KEY}`
  const values: Partial<Record<Variable['kind'], string>> = {
    url: `https://canary${index}.invalid/canary`,
    dsn: `https://canary@canary${index}.invalid/1`,
    'store-url': 'postgres://canary:canary@127.0.0.1:1/canary',
    'smtp-url': 'smtp://canary:canary@127.0.0.1:1',
    mailbox: 'canary <canary@canary.invalid>',
    email: 'canary@canary.invalid',
    origins: 'https://canary.invalid',
    price: 'price_canary',
    table: 'canary',
    integer: '7',
    proxies: '10.0.0.0/8',
    'log-level': 'error',
  }
  return `${name}=${values[kind] ?? `canary-${index}-of-a-length-that-resists`}`
}

const ENVIRONMENTS: Readonly<Record<string, readonly string[]>> = {
  wrong: VARIABLES.map(wrong),
  right: VARIABLES.map(right).filter((line) => !/^(?:MAILER_API_URL|DATASTORE_JWKS_URL)=/.test(line)),
  'right, the other way': VARIABLES.map(right)
    .filter((line) => !/^(?:MAILER_SMTP_URL|DATASTORE_JWT_SECRET)=/.test(line))
    .map((line) => (line.startsWith('MAILER_PROVIDER=') ? 'MAILER_PROVIDER=postmark' : line)),
}

const FORMATS = ['text', 'json', 'github', 'sarif', 'junit']
const COMMANDS: readonly (readonly string[])[] = [
  ...FORMATS.flatMap((format) => [
    ['preflight', '--env-file', 'a.env', '--notices', '--format', format],
    ['preflight', '--strict', '--format', format],
    ['preflight', '--env-file', 'a.env', '--deep', '--timeout', '2s', '--format', format],
    ['env', 'check', 'a.env', '--notices', '--format', format],
  ]),
  ...DIALECTS.map((dialect) => ['env', 'check', 'a.env', '--dialect', dialect]),
  ...['text', 'json'].flatMap((format) => [
    ['env', 'list', '--env-file', 'a.env', '--format', format],
    ['env', 'diff', 'a.env', 'b.env', '--format', format],
    ['env', 'dialects', 'a.env', '--format', format],
    ['health', '--env-file', 'a.env', '--timeout', '100ms', '--format', format],
  ]),
  ...VARIABLES.slice(0, 3).map(({ name }) => ['env', 'explain', name]),
  ['env', 'example'],
  ['env', 'types'],
  ['init'],
  ['email', 'build'],
  ['email', 'types'],
  ['env', 'schema'],
  ['env', 'schema', '--report'],
  ...['text', 'json', 'junit', 'prom'].map((format) => [
    ...['health', '--env-file', 'a.env', '--timeout', '100ms', '--deep', '--format', format],
  ]),
  ['health', 'explain'],
  ...['text', 'json'].flatMap((format) =>
    [
      ['env', 'verify', '--url', 'web=http://127.0.0.1:1'],
      ['dispatch'],
      ['dispatch', '--dry-run', '--local'],
      ['dispatch', '--drain', '--local'],
      ['course', 'status'],
      ['course', 'show', 'you@example.com'],
      ['course', 'erase', 'you@example.com', '--yes'],
      ['course', 'resolve', 'no-such-delivery', 'sent'],
      ['db', 'status'],
      ['db', 'migrate', '--plan'],
      ['db', 'migrate'],
      ['db', 'verify'],
      ['db', 'audit'],
      ['db', 'backup', 'store.backup'],
      ['db', 'restore', 'no-such.backup', '--force'],
      ['db', 'copy', '--to', 'sqlite:copy.sqlite'],
      ['db', 'journal', 'left.jsonl'],
      ['db', 'after-restore', '--without-journal'],
      ['billing', 'smoke'],
      ['analytics', 'summary'],
      ['email', 'feedback'],
      ['email', 'feedback', 'status'],
      ['course', 'resume'],
      ['course', 'set', 'you@example.com', '--language', 'de'],
      ['mail', 'pause', '--reason', 'wrong prices'],
      ['mail', 'queue'],
      ['mail', 'resume'],
      ['course', 'list'],
      ['course', 'export'],
      ['course', 'import', 'no-such.csv'],
      ['course', 'enrol', 'you@example.com'],
      ['course', 'cancel', 'you@example.com'],
      ['course', 'resend-confirmation', 'you@example.com'],
      ['email', 'suppressions', 'list'],
      ['email', 'suppressions', 'add', 'you@example.com', '--reason', 'asked'],
      ['email', 'suppressions', 'remove', 'you@example.com', '--reason', 'asked'],
      ['email', 'suppressions', 'import', 'no-such.csv'],
      ['email', 'suppressions', 'export'],
      ['alert', 'list', '--all'],
      ['status'],
    ].map((args) => [...args, '--env-file', 'a.env', '--format', format]),
  ),
  ['witness', '--platform', 'http://127.0.0.1:1', '--port', '0', '--env-file', 'a.env'],
  ['daemon', '--env-file', 'a.env', '--web-port', '0', '--api-port', '0', '--agent-port', '0'],
  ['email', 'send-test', 'welcome', '--to', 'you@example.com', '--env-file', 'a.env'],
  ...['text', 'json'].map((format) => ['email', 'list', '--format', format]),
  ...['html', 'text', 'eml'].map((as) => ['email', 'render', 'welcome', '--format', as]),
  ['email', 'preview', '--port', '0'],
  ['alert', 'test', '--env-file', 'a.env'],
  ['beat', 'backup', '--env-file', 'a.env'],
  ['alert', 'ack', 'no-such', '--env-file', 'a.env'],
  ['alert', 'resolve', 'no-such', '--reason', 'mended', '--env-file', 'a.env'],
  ['alert', 'silence', '15m', '--reason', 'deploy', '--env-file', 'a.env'],
  ['status', 'announce', 'Slow search', '--for', '2h', '--env-file', 'a.env'],
  ['status', 'update', 'no-such', 'Mended', '--env-file', 'a.env'],
  ['status', 'withdraw', 'no-such', '--env-file', 'a.env'],
  ['status', 'export', 'page', '--env-file', 'a.env'],
  ['email', 'lint'],
  ['deploy', 'init', 'systemd'],
  ['deploy', 'check', 'systemd'],
  ['completion', 'bash'],
  ['runbook', 'mail-refused'],
  ['demo', '--exit'],
]

/** These wait for a signal: they have had it. */
const WAITING = new Set(['daemon', 'demo', 'email preview', 'witness'])

test('no command of the tree is left out', async () => {
  const paths = (commands: Awaited<ReturnType<typeof documentedTree>>['commands']): string[] =>
    commands.flatMap((command) => [
      ...(command.commands.length === 0 || command.options.length > 0 ? [command.path.join(' ')] : []),
      ...paths(command.commands),
    ])
  const run = COMMANDS.map((args) => `${args.join(' ')} `)
  const { commands } = await documentedTree()
  expect(paths(commands).filter((path) => !run.some((args) => args.startsWith(`${path} `)))).toEqual([])
})

const nameServer = await startNameServer({})
const network = openNetwork({ lookup: loopbackLookup, nameServers: [nameServer.address] })
afterAll(nameServer.close)

const cases = Object.keys(ENVIRONMENTS).flatMap((values) =>
  COMMANDS.map((args) => ({ values, args, command: args.join(' ') })),
)

test.each(cases)(
  'values that are $values: no byte comes out of platformctl $command',
  async ({ values, args }) => {
    const lines = ENVIRONMENTS[values] ?? []
    const cwd = await emptyFolder()
    await writeFile(path.join(cwd, 'a.env'), lines.join('\n'))
    await writeFile(path.join(cwd, 'b.env'), lines.join('\n').replaceAll(/canary/gi, 'othercanary'))
    const env = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const { context, stdout, stderr } = testContext({
      cwd,
      // Where a daemon leaves its record: other tests look for daemons of this machine at the same time.
      env: { ...(!args.includes('a.env') && env), XDG_STATE_HOME: path.join(cwd, 'state') },
      network,
      ...((WAITING.has(args[0] ?? '') || WAITING.has(args.slice(0, 2).join(' '))) && {
        signal: AbortSignal.abort(),
      }),
    })
    await runProgram(args, context)
    expect(stdout() + stderr()).not.toBe('')
    // Every line of the log says its build, which is public.
    expect(stdout().replace(/"build":"[^"]*"/g, '') + stderr()).not.toMatch(/canary/i)
    for (const file of await readdir(cwd, { recursive: true, withFileTypes: true })) {
      if (!file.isFile() || /^[ab]\.env$/.test(file.name)) continue
      expect(await readFile(path.join(file.parentPath, file.name), 'latin1'), file.name).not.toMatch(
        /canary/i,
      )
    }
  },
)

test('valid values pass, and configure every group', () => {
  for (const values of ['right', 'right, the other way']) {
    const env = Object.fromEntries(
      (ENVIRONMENTS[values] ?? []).map((line) => [
        line.slice(0, line.indexOf('=')),
        line.slice(line.indexOf('=') + 1),
      ]),
    )
    const { ok, groups } = validateAll(env)
    expect(ok).toBe(true)
    expect(groups.every(({ state }) => state === 'configured')).toBe(true)
  }
})

test('input that cannot be read is refused without quoting it', async () => {
  const cwd = await emptyFolder()
  const inputs: Record<string, Uint8Array | string> = {
    'binary.env': 'MAILER_API_KEY=CANARY\0CANARY',
    'latin.env': new Uint8Array([...Buffer.from('MAILER_API_KEY=CANARY'), 0xff, 0xfe]),
    'huge.env': `MAILER_API_KEY=${'CANARY'.repeat(1_000_000)}`,
    'refused.env': 'MAILER API KEY=CANARY',
  }
  for (const [name, text] of Object.entries(inputs)) {
    await writeFile(path.join(cwd, name), text)
    for (const args of [
      ['preflight', '--env-file', name],
      ['env', 'check', name, '--dialect', 'docker'],
      ['env', 'diff', name, name],
      ['env', 'check', 'other.env', '--baseline', name],
    ]) {
      await writeFile(path.join(cwd, 'other.env'), '')
      const { context, stdout, stderr } = testContext({ cwd })
      await runProgram(args, context)
      expect(stdout() + stderr(), args.join(' ')).not.toMatch(/CANARY/)
    }
  }
})

test('a fault inside a command is reported with its kind and place, never with its text', async () => {
  const { context, stderr } = testContext({
    stdout: {
      write() {
        throw new RangeError('CANARY\n    at CANARY (canary.ts:1:1)')
      },
    },
  })
  expect(await runProgram(['preflight'], context)).toBe(70)
  expect(stderr()).toMatch(/internal fault/)
  expect(stderr()).toMatch(/^RangeError\n\s+at /m)
  expect(stderr()).not.toMatch(/canary/i)
})

const KEY =
  '-----BEGIN PRIVATE KEY-----\nCANARYCANARYCANARY\nCANARYCANARY==\nCANARY/CANARY+CANARY=\n-----END PRIVATE KEY-----'

test.each([
  ['a key of several lines in quotes', `GOOGLE_KEY="${KEY}"\n`],
  ['a key of several lines without quotes', `GOOGLE_KEY=${KEY}\nLOG_LEVEL=info\n`],
  [
    'a key that never ends',
    `GOOGLE_KEY=${KEY.slice(0, -30)}\nLOG_LEVEL=info\n`.replace(/^CANARYCANARY==$/m, 'CANARY'),
  ],
  ['a value that goes on in the next line', 'EMAIL_LINK_SECRET=abc-\\\nCANARY-CANARY\n'],
  ['a secret on a line of its own', 'EMAIL_LINK_SECRET\nCANARY\n'],
])('no line of %s is taken for a name that may be shown', async (_, text) => {
  const cwd = await emptyFolder()
  await writeFile(path.join(cwd, 'a.env'), text)
  await writeFile(path.join(cwd, 'b.env'), '')
  for (const args of [
    ['env', 'check', 'a.env', '--format', 'json'],
    ['env', 'check', 'a.env', '--dialect', 'systemd', '--notices'],
    ['env', 'check', 'a.env', '--dialect', 'dotenv'],
    ['env', 'dialects', 'a.env'],
    ['env', 'dialects', 'a.env', '--format', 'json'],
    ['env', 'diff', 'a.env', 'b.env'],
  ]) {
    const { context, stdout, stderr } = testContext({ cwd })
    await runProgram(args, context)
    expect(stdout() + stderr(), args.join(' ')).not.toMatch(/CANARY/)
  }
})
