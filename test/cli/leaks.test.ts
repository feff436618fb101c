import { generateKeyPairSync } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { documentedTree } from '../../scripts/command-tree.ts'
import { allNodes } from '../../src/cli/command.ts'
import type { Variable } from '../../src/core/env/contract.ts'
import { DIALECTS } from '../../src/core/env/dialects/dialect.ts'
import { openNetwork } from '../../src/core/live/network.ts'
import { validateAll } from '../../src/env.ts'
import { folderWith } from '../support/folder.ts'
import { VARIABLES } from '../support/learning.ts'
import { loopbackLookup, startNameServer } from '../support/outside.ts'
import { run } from '../support/run.ts'

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

/** What a command line is given besides its env file and its format, where it needs something or acts in several ways. */
const GIVEN: Readonly<Record<string, readonly string[]>> = {
  preflight: ['--notices', '--deep --timeout 2s'],
  'env check': ['a.env --notices', ...DIALECTS.map((dialect) => `a.env --dialect ${dialect}`)],
  'env dialects': ['a.env'],
  'env diff': ['a.env b.env'],
  'env explain': VARIABLES.slice(0, 3).map(({ name }) => name),
  'env schema': ['', '--report'],
  'env verify': ['--url web=http://127.0.0.1:1'],
  health: ['--timeout 100ms', '--timeout 100ms --deep'],
  dispatch: ['', '--dry-run --local', '--drain --local'],
  'course show': ['you@example.com'],
  'course erase': ['you@example.com --yes'],
  'course resolve': ['no-such-delivery sent'],
  'course set': ['you@example.com --language de'],
  'course import': ['no-such.csv'],
  'course enrol': ['you@example.com'],
  'course cancel': ['you@example.com'],
  'course resend-confirmation': ['you@example.com'],
  'db migrate': ['', '--plan'],
  'db backup': ['store.backup'],
  'db restore': ['no-such.backup --force'],
  'db copy': ['--to sqlite:copy.sqlite'],
  'db journal': ['left.jsonl'],
  'db after-restore': ['--without-journal'],
  'mail pause': ['--reason prices'],
  'email suppressions add': ['you@example.com --reason asked'],
  'email suppressions remove': ['you@example.com --reason asked'],
  'email suppressions import': ['no-such.csv'],
  'email send-test': ['welcome --to you@example.com'],
  'email render': ['welcome'],
  'email preview': ['--port 0'],
  witness: ['--platform http://127.0.0.1:1 --port 0'],
  daemon: ['--web-port 0 --api-port 0 --agent-port 0'],
  beat: ['backup'],
  'alert ack': ['no-such'],
  'alert resolve': ['no-such --reason mended'],
  'alert silence': ['15m --reason deploy'],
  'status announce': ['Slow --for 2h'],
  'status update': ['no-such Mended'],
  'status withdraw': ['no-such'],
  'status export': ['page'],
  'deploy init': ['systemd'],
  'deploy check': ['systemd'],
  completion: ['bash'],
  runbook: ['mail-refused'],
  demo: ['--exit'],
}

/** These wait for a signal: they have had it. */
const WAITING = new Set(['daemon', 'demo', 'email preview', 'witness'])

/**
 * Every command of the tree that does something, in every format, with the values in an env file where it takes one; but
 * `email lint`, which compiles all mails and reads no variable.
 */
const commands = allNodes(await documentedTree())
  .filter(
    ({ path, commands, options }) =>
      path.length > 0 && path.join() !== 'email,lint' && (commands.length === 0 || options.length > 0),
  )
  .flatMap(({ path: words, options }) => {
    const name = words.join(' ')
    const has = (option: string) => options.find((one) => one.name === option)
    const formats = has('--format')?.words ?? []
    // A store that cannot be reached is one sentence in any format.
    const shown = has('--data') && formats.length === 2 ? ['json'] : formats
    return (GIVEN[name] ?? ['']).map((given) => ({
      isWaiting: WAITING.has(name),
      args: [...words, ...given.split(' ').filter(Boolean), ...(has('--env-file') ? ['-e', 'a.env'] : [])],
      formats:
        shown.length === 0 || given.includes('--dialect')
          ? [[]]
          : shown.map((format) => ['--format', format]),
    }))
  })

const nameServer = await startNameServer({})
const network = openNetwork({ lookup: loopbackLookup, nameServers: [nameServer.address] })
afterAll(nameServer.close)

const environment = (values: string) =>
  Object.fromEntries(
    (ENVIRONMENTS[values] ?? []).map((line) => [
      line.slice(0, line.indexOf('=')),
      line.slice(line.indexOf('=') + 1),
    ]),
  )

// The other way differs in where mail goes and accounts come from, which no format shows differently: it is there for
// the environment of the process.
const cases = Object.keys(ENVIRONMENTS).flatMap((values) =>
  commands.flatMap(({ formats, args, isWaiting }) =>
    (values.includes('other') ? formats.slice(0, 1) : formats).map((format) => {
      const words = values.includes('other') ? args.filter((word) => !/^(?:-e|a\.env)$/.test(word)) : args
      const all = args.includes('-e') ? [...words, ...format] : [...args, ...format]
      return { values, isWaiting, args: all, command: all.join(' ') }
    }),
  ),
)

test.each(cases)(
  'values that are $values: no byte comes out of platformctl $command',
  async ({ values, args, isWaiting }) => {
    const text = (ENVIRONMENTS[values] ?? []).join('\n')
    const cwd = await folderWith({ 'a.env': text, 'b.env': text.replaceAll(/canary/gi, 'othercanary') })
    const { stdout, stderr } = await run(args, {
      cwd,
      // Where a daemon leaves its record: other tests look for daemons of this machine at the same time.
      env: { ...(!args.includes('a.env') && environment(values)), XDG_STATE_HOME: path.join(cwd, 'state') },
      network,
      ...(isWaiting && { signal: AbortSignal.abort() }),
    })
    expect(stdout + stderr).not.toBe('')
    // Every line of the log says its build, which is public.
    expect(stdout.replace(/"build":"[^"]*"/g, '') + stderr).not.toMatch(/canary/i)
    for (const file of await readdir(cwd, { recursive: true, withFileTypes: true })) {
      if (!file.isFile() || /^[ab]\.env$/.test(file.name)) continue
      const written = await readFile(path.join(file.parentPath, file.name), 'latin1')
      expect(written, file.name).not.toMatch(/canary/i)
    }
  },
)

test.each(['right', 'right, the other way'])(
  'values that are %s pass, and configure every group',
  (values) => {
    const { ok, groups } = validateAll(environment(values))
    expect(ok).toBe(true)
    expect(groups.every(({ state }) => state === 'configured')).toBe(true)
  },
)

test('input that cannot be read is refused without quoting it', async () => {
  const inputs = {
    'binary.env': 'MAILER_API_KEY=CANARY\0CANARY',
    'latin.env': new Uint8Array([...Buffer.from('MAILER_API_KEY=CANARY'), 0xff, 0xfe]),
    'huge.env': `MAILER_API_KEY=${'CANARY'.repeat(1_000_000)}`,
    'refused.env': 'MAILER API KEY=CANARY',
  }
  const cwd = await folderWith({ ...inputs, 'other.env': '' })
  for (const name of Object.keys(inputs))
    for (const args of [
      ['preflight', '--env-file', name],
      ['env', 'check', name, '--dialect', 'docker'],
      ['env', 'diff', name, name],
      ['env', 'check', 'other.env', '--baseline', name],
    ]) {
      const { stdout, stderr } = await run(args, { cwd })
      expect(stdout + stderr, args.join(' ')).not.toMatch(/CANARY/)
    }
})

test('a fault inside a command is reported with its kind and place, never with its text', async () => {
  const write = () => {
    throw new RangeError('CANARY\n    at CANARY (canary.ts:1:1)')
  }
  const { code, stderr } = await run(['preflight'], { stdout: { write } })
  expect(code).toBe(70)
  expect(stderr).toMatch(/internal fault/)
  expect(stderr).toMatch(/^RangeError\n\s+at /m)
  expect(stderr).not.toMatch(/canary/i)
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
  const cwd = await folderWith({ 'a.env': text, 'b.env': '' })
  for (const args of [
    ['env', 'check', 'a.env', '--format', 'json'],
    ['env', 'check', 'a.env', '--dialect', 'systemd', '--notices'],
    ['env', 'check', 'a.env', '--dialect', 'dotenv'],
    ['env', 'dialects', 'a.env'],
    ['env', 'dialects', 'a.env', '--format', 'json'],
    ['env', 'diff', 'a.env', 'b.env'],
  ]) {
    const { stdout, stderr } = await run(args, { cwd })
    expect(stdout + stderr, args.join(' ')).not.toMatch(/CANARY/)
  }
})
