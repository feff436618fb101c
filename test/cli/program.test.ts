import { expect, test } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { failure } from '../../src/cli/context.ts'
import { reportFault } from '../../src/cli/program.ts'
import { PlatformError } from '../../src/core/errors.ts'
import { testContext } from '../support/context.ts'
import { run } from '../support/run.ts'

test.each([
  [['deom'], "unknown command 'deom'. Did you mean demo?"],
  [['env', 'chekc'], "unknown command 'chekc'. Did you mean check?"],
  [['demo', '--exti'], "unknown option '--exti'. Did you mean --exit?"],
  [['email', 'render', 'weclome'], "unknown template 'weclome'. Did you mean welcome?"],
  [
    ['email', 'render', 'subscription'],
    "unknown template 'subscription'. Did you mean subscription-confirmation?",
  ],
  [['email', 'render', 'welcome', '--format', 'txt'], "unknown format 'txt'. Did you mean text?"],
  [
    ['env', 'explain', 'cors-wildcrad'],
    "unknown variable, group or finding 'cors-wildcrad'. Did you mean cors-wildcard?",
  ],
  [
    ['env', 'explain', 'MAILR_FORM'],
    "unknown variable, group or finding 'MAILR_FORM'. Did you mean MAILER_FROM?",
  ],
  [['health', 'explain', 'tls_expird'], "unknown cause code 'tls_expird'. Did you mean tls_expired?"],
  [['nope'], "unknown command 'nope'. Add --help for usage."],
  [['demo', '--nope'], "unknown option '--nope'. Add --help for usage."],
  [['demo', '--address', 'nobody'], '--address: an address has the form name@example.com.'],
  [['email', 'send-test', 'welcome', '--to', 'nobody'], '--to: an address has the form name@example.com.'],
  [['completion', 'dash'], "unknown shell 'dash'. Choose one of bash, zsh, fish."],
  [['health', '--format', 'jsn'], "unknown format 'jsn'. Did you mean json?"],
  [['health', '--url', 'wbe=http://127.0.0.1:1'], "unknown service 'wbe'. Did you mean web?"],
  [['preflight', '--service', 'agnet'], "unknown service 'agnet'. Did you mean agent?"],
  [['preflight', '--send-test'], '--send-test is a live check, so it needs --deep.'],
  [['dispatch', '--dry-run'], '--dry-run looks into the store, so it needs --local.'],
  [['dispatch', '--local', '--url', 'http://127.0.0.1:1'], 'choose one of --local and --url.'],
  [['beat', 'backup', '--local', '--url', 'http://127.0.0.1:1'], 'choose one of --local and --url.'],
  [['env', 'check'], "missing required argument 'file'. Add --help for usage."],
  [
    ['env', 'list', 'a.env'],
    "too many arguments for 'list'. Expected 0 arguments but got 1: a.env. Add --help for usage.",
  ],
  [['preflight', '-e'], "option '-e, --env-file <file>' argument missing. Add --help for usage."],
  [
    ['env', 'verify', '--url', 'web=http://127.0.0.1:1'],
    "required option '-e, --env-file <file>' not specified. Add --help for usage.",
  ],
])(
  'wrong usage %j is exit 2 and one sentence, with the nearest name for a mistyped one',
  async (argv, sentence) => {
    expect(await run(argv)).toEqual({ code: 2, stdout: '', stderr: `platformctl: ${sentence}\n` })
  },
)

test.each([
  [['preflight', '--env-file', '']],
  [['preflight', '--baseline=']],
  [['daemon', '--data', '']],
  [['db', 'restore', 'a.sqlite', '--data', ' ']],
  [['health', '--expect-build', '']],
  [['health', '--token-env', '']],
  [['deploy', 'init', 'docker', '--out', '']],
  [['status', 'export', '']],
  [['db', 'backup', ' ']],
  [['env', 'check', '']],
  // Nothing ran, and a heartbeat would say that all is well.
  [['beat', 'backup', '--local', '--']],
])(
  '%j: an empty value is an unset shell variable, and never the working directory or no value',
  async (argv) => {
    const { code, stdout, stderr } = await run(argv)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(
      /^platformctl: (?:(?:--[a-z-]+|<[a-z]+>) is empty|nothing follows --): is the shell variable unset\?\n$/,
    )
  },
)

test('a fault is wrapped at words on a terminal, and a command in it stays on one line', async () => {
  let said = ''
  const stderr = { columns: 50, write: (text: string) => (said += text) }
  expect((await run(['billing', 'smoke'], { stderr })).code).toBe(2)
  expect(said).toBe(
    'platformctl: payments are not configured, or only\npartly: run platformctl preflight to see what is\nmissing.\n',
  )
})

test('without arguments it shows its help on standard output, and --version the version alone', async () => {
  const help = { code: 0, stdout: expect.stringMatching(/^Usage: platformctl /), stderr: '' }
  for (const argv of [[], ['help'], ['--help']]) expect(await run(argv)).toEqual(help)
  // A command that only has commands was not told which.
  const unnamed = {
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^Usage: platformctl env (?![\s\S]*\nplatformctl: )/),
  }
  expect(await run(['env'])).toEqual(unnamed)
  expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${packageJson.version}\n` })
})

test.each([
  [['help', 'nope'], 'nope'],
  [['nope', '--help'], 'nope'],
  [['help', 'env', 'nope'], 'nope'],
  [['env', 'nope', '-h'], 'nope'],
])('help on what is no command is wrong usage too: %j', async (argv, word) => {
  const told = await run(argv)
  expect(told).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(`unknown command '${word}'`) })
})

test.each(['demo', 'env check'])('help %s and --help of it are the same text', async (command) => {
  const asked = await run(['help', ...command.split(' ')])
  expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining(`Usage: platformctl ${command}`) })
  expect(await run([...command.split(' '), '--help'])).toEqual(asked)
})

test('the help of preflight says its defaults as one would type them', async () => {
  const { stdout } = await run(['preflight', '--help'])
  expect(stdout).toContain('(default: 15s)')
  expect(stdout).not.toContain('[]')
})

const coded = (code: string) => Object.assign(new Error('canary'), { code })

test.each([
  ['a full disk', coded('SQLITE_FULL'), 3, /: the store cannot be used: its disk is full\.\n$/],
  [
    'a server that is away',
    new PlatformError('store_unavailable', 'Later.', { cause: coded('ECONNREFUSED') }),
    3,
    /: the store cannot be used: its server cannot be reached\.\n$/,
  ],
  // It says what may be lost.
  [
    'a store that closed itself',
    new PlatformError('store_unavailable', 'Start anew.', { cause: coded('SQLITE_FULL'), final: true }),
    3,
    /: Start anew\.\n$/,
  ],
  ['a fault of ours in SQLite', coded('SQLITE_MISUSE'), 70, /: internal fault; /],
  ['a refusal of several lines', failure('one\n::error::two'), 1, /: one\\n::error::two\n$/],
])('%s ends a command with its exit code and a sentence, whatever its text', (_, fault, code, sentence) => {
  const { context, stdout, stderr } = testContext()
  expect(reportFault(fault, context)).toBe(code)
  expect(stderr()).toMatch(sentence)
  expect(stdout() + stderr()).not.toContain('canary')
})
