import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'

const FILE =
  'MAILER_API_KEY=some-key-of-a-provider\nRATE_LIMIT_PER_MINUTE=many\nEMAIL_DISPATCH_SECRET=short\n'

async function run(args: string[], files: Record<string, string> = { 'my, env.env': FILE }) {
  const cwd = await emptyFolder()
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(cwd, name), text)
  const { context, stdout, stderr } = testContext({ cwd })
  return { code: await runProgram(args, context), stdout: stdout(), stderr: stderr(), cwd }
}

test('github: a command a finding, at its place, with what would end a property escaped', async () => {
  const { code, stdout } = await run(['env', 'check', 'my, env.env', '--format', 'github'])
  expect(code).toBe(1)
  const lines = stdout.trim().split('\n')
  expect(lines).toHaveLength(4)
  for (const line of lines)
    expect(line).toMatch(/^::(?:error|warning) file=my%2C env\.env,line=\d+,col=1,title=[a-z-]+::[^\r\n]+$/)
})

test('sarif: one run, a rule for each id, every result with its rule, level and region', async () => {
  const { stdout } = await run(['env', 'check', 'my, env.env', '--format', 'sarif'])
  const { version, runs } = JSON.parse(stdout) as {
    version: string
    runs: {
      tool: { driver: { rules: { id: string }[] } }
      results: {
        ruleId: string
        ruleIndex: number
        level: string
        locations: {
          physicalLocation: { artifactLocation: { uri: string }; region: { startLine: number } }
        }[]
      }[]
    }[]
  }
  expect(version).toBe('2.1.0')
  const [only] = runs
  expect(runs).toHaveLength(1)
  expect(only?.results).toHaveLength(4)
  for (const result of only?.results ?? []) {
    expect(only?.tool.driver.rules[result.ruleIndex]?.id).toBe(result.ruleId)
    expect(['error', 'warning', 'note']).toContain(result.level)
    expect(result.locations[0]?.physicalLocation.artifactLocation.uri).toBe('my%2C%20env.env')
    expect(result.locations[0]?.physicalLocation.region.startLine).toBeGreaterThan(0)
  }
})

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
    expect(await check(`${warned}STORE_POOL_SIZE=few\n`, await reported(warned))).toBe(1)
    const broken = 'MAILER_API_KEY=some-key-of-a-provider\n'
    expect(await check(broken, await reported(broken))).toBe(1)
  },
)

test('a baseline with a byte order mark, as some shells write it, is read', async () => {
  const warned = { 'a.env': 'RATE_LIMIT_PER_MINUTE=many\n' }
  const known = (await run(['env', 'check', 'a.env', '--format', 'json'], warned)).stdout
  const files = { ...warned, 'known.json': `\uFEFF${known}` }
  expect((await run(['env', 'check', 'a.env', '--strict', '--baseline', 'known.json'], files)).code).toBe(0)
})

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

test('a diff names what differs and the groups that change, and its exit code says whether anything does', async () => {
  const files = {
    'a.env': 'LOG_LEVEL=info\nSTORE_URL=sqlite:./a.sqlite\nOWN_THING=a\n',
    'b.env': 'LOG_LEVEL=warn\nHEALTH_DEEP_TOKEN=a-token-of-some-length\nOWN_THING=b\n',
    'own.env': 'LOG_LEVEL=info\nSTORE_URL=sqlite:./a.sqlite\nOWN_THING=b\n',
  }
  const { code, stdout } = await run(['env', 'diff', 'a.env', 'b.env', '--format', 'json'], files)
  expect(code).toBe(1)
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
  // A program may read a name that no group knows.
  expect(await run(['env', 'diff', 'a.env', 'own.env'], files)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /^~ OWN_THING +different values, not in the contract\n\n1 of 3 variables differ\n$/,
    ),
  })
  expect((await run(['env', 'diff', 'a.env', 'a.env'], files)).code).toBe(0)
})
