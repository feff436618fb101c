import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'

test('an unknown command is wrong usage: exit 2, a sentence on standard error, nothing on standard output', async () => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram(['nope'], context)).toBe(2)
  expect(stderr()).toMatch(/unknown command 'nope'/)
  expect(stdout()).toBe('')
})

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
  [['health', '--format', 'jsn'], "unknown format 'jsn'. Did you mean json?"],
  [['health', '--url', 'wbe=http://127.0.0.1:1'], "unknown service 'wbe'. Did you mean web?"],
  [['preflight', '--service', 'agnet'], "unknown service 'agnet'. Did you mean agent?"],
])('a mistyped name is answered with the nearest one, in one form: %j', async (argv, sentence) => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram(argv, context)).toBe(2)
  expect(stderr()).toBe(`platformctl: ${sentence}\n`)
  expect(stdout()).toBe('')
})

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
    const { context, stdout, stderr } = testContext()
    expect(await runProgram(argv, context)).toBe(2)
    expect(stderr()).toMatch(
      /^platformctl: (?:(?:--[a-z-]+|<[a-z]+>) is empty|nothing follows --): is the shell variable unset\?\n$/,
    )
    expect(stdout()).toBe('')
  },
)

test('a fault is wrapped at words on a terminal, and a command in it stays on one line', async () => {
  const { context, stderr } = testContext()
  const [narrow, wide] = [{ ...context.stderr, columns: 50 }, context.stderr]
  const args = ['billing', 'smoke']
  const failing = { ...context, stderr: narrow }
  expect(await runProgram(args, failing)).toBe(2)
  expect(stderr()).toBe(
    'platformctl: payments are not configured, or only\npartly: run platformctl preflight to see what is\nmissing.\n',
  )
  const other = testContext()
  await runProgram(['course', 'resolve', '--data', '/nowhere'], {
    ...other.context,
    stderr: { ...other.context.stderr, columns: 40 },
  })
  for (const line of other.stderr().trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(45)
  expect(wide.columns).toBeUndefined()
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

test.each([
  [['help', 'nope'], 'nope'],
  [['nope', '--help'], 'nope'],
  [['help', 'env', 'nope'], 'nope'],
  [['env', 'nope', '-h'], 'nope'],
])('help on what is no command is wrong usage too: %j', async (argv, word) => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram(argv, context)).toBe(2)
  expect(stderr()).toContain(`unknown command '${word}'`)
  expect(stdout()).toBe('')
})

test('help goes down to a sub-command, by either form', async () => {
  const [asked, flagged] = [testContext(), testContext()]
  expect(await runProgram(['help', 'env', 'check'], asked.context)).toBe(0)
  expect(await runProgram(['env', 'check', '--help'], flagged.context)).toBe(0)
  expect(flagged.stdout()).toMatch(/Usage: platformctl env check/)
  expect(asked.stdout()).toBe(flagged.stdout())
})

test.each([
  [['demo', '--address', 'nobody'], '--address: an address has the form name@example.com.'],
  [['email', 'send-test', 'welcome', '--to', 'nobody'], '--to: an address has the form name@example.com.'],
])('rejects a malformed address as wrong usage before anything starts: %j', async (argv, sentence) => {
  const { context, stdout, stderr } = testContext()
  expect(await runProgram(argv, context)).toBe(2)
  expect(stderr()).toBe(`platformctl: ${sentence}\n`)
  expect(stdout()).toBe('')
})

test('the help of preflight says its defaults as one would type them', async () => {
  const { context, stdout } = testContext()
  await runProgram(['preflight', '--help'], context)
  expect(stdout()).toContain('(default: 15s)')
  expect(stdout()).not.toContain('[]')
})
