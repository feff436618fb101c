import { expect, test } from 'vitest'
import { folderWith } from '../support/folder.ts'
import { run as runIn } from '../support/run.ts'

const FILE =
  'MAILER_API_KEY=some-key-of-a-provider\nRATE_LIMIT_PER_MINUTE=many\nEMAIL_DISPATCH_SECRET=short\n'

/** What the process has is nothing to the commands about files alone. */
const OF_PROCESS = { LOG_LEVEL: 'error', SHAREDSTORE_REST_URL: 'https://limits.example.com' }

const run = async (args: string[], files: Record<string, string> = { 'my, env.env': FILE }) =>
  runIn(args, { cwd: await folderWith(files), env: args[0] === 'env' ? OF_PROCESS : {} })

test('junit: errors are failures, warnings only with --strict, and nothing found is one passed case', async () => {
  const counts = async (args: string[], files?: Record<string, string>) => {
    const { stdout } = await run(args, files)
    const [, tests, failures] =
      /<testsuites name="platformctl" tests="(\d+)" failures="(\d+)"/.exec(stdout) ?? []
    expect(stdout.match(/<testcase /g)).toHaveLength(Number(tests))
    expect(stdout.match(/<failure /g) ?? []).toHaveLength(Number(failures))
    return [Number(tests), Number(failures)]
  }
  expect(await counts(['env', 'check', 'my, env.env', '--format', 'junit'])).toEqual([4, 2])
  expect(await counts(['env', 'check', 'my, env.env', '--format', 'junit', '--strict'])).toEqual([4, 4])
  expect(await counts(['env', 'check', 'empty.env', '--format', 'junit'], { 'empty.env': '' })).toEqual([
    1, 0,
  ])
})

test.each(['env check a.env', 'preflight --env-file a.env'])(
  'a baseline of %s accepts the warnings it knows, no other, and never an error',
  async (words) => {
    const command = words.split(' ')
    const warned = 'RATE_LIMIT_PER_MINUTE=many\n'
    const reported = async (text: string) =>
      (await run([...command, '--format', 'json'], { 'a.env': text })).stdout
    const check = async (text: string, known: string) =>
      (
        await run([...command, '--strict', '--baseline', 'known.json'], {
          'a.env': text,
          'known.json': known,
        })
      ).code
    expect(await check(warned, await reported(warned))).toBe(0)
    expect(JSON.parse(await reported(warned)).services).toEqual(['web', 'api', 'agent'])
    expect(await check(`${warned}STORE_POOL_SIZE=few\n`, await reported(warned))).toBe(1)
    // A line that cannot be read has no name: as many are accepted as there were.
    const unread = 'not a line\n'
    expect(await check(unread, await reported(unread))).toBe(0)
    expect(await check(unread.repeat(2), await reported(unread))).toBe(1)
    const broken = 'MAILER_API_KEY=some-key-of-a-provider\n'
    expect(await check(broken, await reported(broken))).toBe(1)
    const files = { 'a.env': `${warned}STORE_POOL_SIZE=few\n`, 'known.json': await reported(warned) }
    const { code, stdout } = await run([...command, '--baseline', 'known.json'], files)
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('0 errors, 1 warning;') })
    expect(stdout).not.toContain('RATE_LIMIT_PER_MINUTE')
  },
)

test.each(['nothing', '{}', 'not json'])(
  'a baseline of %j is refused in one sentence, exit 2',
  async (text) => {
    const files = text === 'nothing' ? { 'a.env': '' } : { 'a.env': '', 'known.json': text }
    const { code, stdout, stderr } = await run(
      ['env', 'check', 'a.env', '--baseline', 'known.json'],
      files as Record<string, string>,
    )
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/cannot use known\.json as a baseline: .*\.\n$/)
  },
)

test('a diff names what differs and the groups that change, never a value; its exit code says whether anything does', async () => {
  const files = {
    'a.env': 'LOG_LEVEL=info\nSTORE_URL=sqlite:./a.sqlite\nOWN_THING=canary\n',
    'b.env':
      'LOG_LEVEL=warn\nHEALTH_DEEP_TOKEN=a-token-of-some-length\nOWN_THING=b\nBUILD_STAMP=\nTRUST_PROXY="  "\n',
    'own.env': 'LOG_LEVEL=info\nSTORE_URL=sqlite:./a.sqlite\nOWN_THING=b\n',
  }
  const { code, stdout } = await run(['env', 'diff', 'a.env', 'b.env', '--format', 'json'], files)
  expect(code).toBe(1)
  expect(stdout).not.toContain('canary')
  expect(JSON.parse(stdout)).toMatchObject({
    version: 1,
    groups: [
      { name: 'store', first: 'configured', second: 'absent' },
      { name: 'health', first: 'absent', second: 'configured' },
    ],
    variables: [
      { name: 'HEALTH_DEEP_TOKEN', state: 'only in the second' },
      { name: 'LOG_LEVEL', state: 'different values', known: true },
      { name: 'OWN_THING', state: 'different values', known: false },
      { name: 'STORE_URL', state: 'only in the first' },
    ],
  })
  expect(
    (await run(['env', 'diff', 'a.env', 'b.env'], files)).stdout.replaceAll(/ {3,}/g, '  ').split('\n'),
  ).toEqual([
    'store  configured → absent',
    'health  absent → configured',
    '',
    '+ HEALTH_DEEP_TOKEN  only in the second',
    '~ LOG_LEVEL  different values',
    '~ OWN_THING  different values, not in the contract',
    '− STORE_URL  only in the first',
    '',
    '4 of 6 variables differ',
    '',
  ])
  // A program may read a name that no group knows.
  expect(await run(['env', 'diff', 'a.env', 'own.env'], files)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /^~ OWN_THING +different values, not in the contract\n\n1 of 3 variables differ\n$/,
    ),
  })
  expect((await run(['env', 'diff', 'a.env', 'a.env'], files)).code).toBe(0)
})
