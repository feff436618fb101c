import { execFileSync } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { loadEnvironment, readTextFile } from '../../src/cli/environment.ts'
import { writeReport } from '../../src/cli/report.ts'
import { LIVE_FINDINGS } from '../../src/core/env/explanations.ts'
import type { Finding } from '../../src/core/finding.ts'
import { systemClock } from '../../src/core/host.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { run } from '../support/run.ts'

test.skipIf(process.platform === 'win32')(
  'a pipe is read to its end, also of a writer that pauses',
  async () => {
    const cwd = await emptyFolder()
    execFileSync('mkfifo', [path.join(cwd, 'pipe')])
    const writer = openSync(path.join(cwd, 'pipe'), 'r+')
    writeSync(writer, 'API_URL=http://a\n')
    const rest = ['AGENT_URL=http://b\n', undefined]
    // It pauses whenever the reader has read all.
    const sleep = async () => {
      const [part] = rest.splice(0, 1)
      if (part === undefined) closeSync(writer)
      else writeSync(writer, part)
    }
    const { context } = testContext({ cwd, clock: { ...systemClock, sleep } })
    expect(await readTextFile(context, 'pipe')).toBe('API_URL=http://a\nAGENT_URL=http://b\n')
  },
)

test('a value of a file is told as unused where the process has another one, and not where it has the same', async () => {
  const cwd = await folderWith({ '.env': 'API_URL=http://a\nAGENT_URL=http://b\n' })
  const { context } = testContext({ cwd, env: { API_URL: 'http://a', AGENT_URL: 'http://c' } })
  const { env, findings, origin } = await loadEnvironment(context, ['.env'])
  expect(findings.map(({ id, present }) => `${id} ${present.join()}`)).toEqual(['shadowed-value AGENT_URL'])
  // What the process sets comes from no line of a file.
  expect([origin('API_URL'), origin('AGENT_URL')]).toEqual([undefined, undefined])
  expect([env.API_URL, env.AGENT_URL]).toEqual(['http://a', 'http://c'])
  const alone = await loadEnvironment(context, ['.env'], { withProcess: false })
  expect([alone.findings, alone.env.AGENT_URL]).toEqual([[], 'http://b'])
})

test('a later file unsets what an earlier one sets', async () => {
  const cwd = await folderWith({ first: 'API_URL=http://a\n', second: 'API_URL=\n', third: 'API_URL=\n' })
  const load = (...files: string[]) => loadEnvironment(testContext({ cwd }).context, files)
  const { env, findings } = await load('first', 'second')
  expect(env.API_URL).toBe('')
  expect(findings).toMatchObject([{ id: 'shadowed-value', location: { file: 'first' } }])
  // Of three files, the two that are overridden are each named with the one that wins over it.
  const cause = (file: string) => expect.stringContaining(`: line 1 of ${file} sets it too`)
  expect((await load('first', 'second', 'third')).findings).toMatchObject([
    { location: { file: 'first' }, cause: cause('second') },
    { location: { file: 'second' }, cause: cause('third') },
  ])
})

test('a variable that is empty or white space in the process hides no value of a file', async () => {
  const cwd = await folderWith({ '.env': 'API_URL=http://a\nAGENT_URL=http://b\n' })
  const { context } = testContext({ cwd, env: { API_URL: '', AGENT_URL: ' \t' } })
  const { env, findings } = await loadEnvironment(context, ['.env'])
  expect([env.API_URL, env.AGENT_URL, findings]).toEqual(['http://a', 'http://b', []])
})

test('the readers that are named are asked about each file', async () => {
  const cwd = await folderWith({ first: 'API_URL=http://a\n', second: 'BUILD_STAMP=$2b$10$abcdef\n' })
  const found = async (readers?: readonly ['node', 'systemd']) =>
    (await loadEnvironment(testContext({ cwd }).context, ['first', 'second'], { readers })).findings
  expect(await found()).toMatchObject([{ id: 'reader-difference', location: { file: 'second' } }])
  expect(await found(['node', 'systemd'])).toEqual([])
})

test('a file with more faulty lines than a call has arguments is reported line by line', async () => {
  const cwd = await folderWith({ '.env': 'x\n'.repeat(130_000) })
  const { context } = testContext({ cwd })
  const { findings } = await loadEnvironment(context, ['.env'])
  expect(findings.filter(({ id }) => id === 'unreadable-line')).toHaveLength(130_000)
})

test('a finding about a secret from a file points to the line that names the file', async () => {
  const cwd = await folderWith({ '.env': '\nMAILER_API_KEY_FILE=key\n', key: 'changeme' })
  const { context } = testContext({ cwd })
  const { origin } = await loadEnvironment(context, ['.env'])
  expect(origin('MAILER_API_KEY')?.location).toEqual({ file: '.env', line: 2, column: 1 })
})

test('a report shows what is not configured only when asked, in every format', async () => {
  for (const format of ['text', 'json', 'github', 'sarif', 'junit']) {
    const preflight = ['preflight', '--format', format]
    expect((await run(preflight)).stdout).not.toContain('group-absent')
    const all = await run([...preflight, '--notices', '--strict'])
    expect([all.code, all.stdout]).toEqual([0, expect.stringContaining('group-absent')])
  }
})

test('the errors of a report come first, wherever they were found', async () => {
  const cwd = await folderWith({ '.env': 'API_URL=no address\nMAILER_API_KEY_FILE=/nowhere/key\n' })
  const { code, stdout } = await run(['preflight', '-e', '.env', '--format', 'json', '--notices'], { cwd })
  expect(code).toBe(1)
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  const severities = findings.map(({ severity }) => severity)
  expect(new Set(severities)).toEqual(new Set(['error', 'warning', 'notice']))
  const rank = { error: 0, warning: 1, notice: 2 }
  expect(severities).toEqual(severities.toSorted((a, b) => rank[a] - rank[b]))
})

/** Where the other side was not reached, or refused us. */
const REMOTE = [
  'live-name',
  'live-name-server',
  'live-unreachable',
  'live-unauthorised',
  'configuration-unreached',
]

test.each([...new Set([...REMOTE, ...Object.keys(LIVE_FINDINGS)])])(
  'the exit code of %s alone, and beside another error',
  async (id) => {
    const { context } = testContext({})
    const code = (...ids: string[]) => {
      const findings = ids.map((one) => ({
        id: one,
        severity: 'error',
        services: ['web'],
        present: [],
        missing: [],
        cause: 'c',
        fix: 'f',
      }))
      const report = { version: 1, ok: false, services: ['web'], groups: [], findings } as never
      return writeReport(context, 'preflight', report, { format: 'json' })
    }
    expect(await code(id)).toBe(REMOTE.includes(id) ? 3 : 1)
    expect(await code(id, 'mail-without-sender')).toBe(1)
  },
)

test('a baseline accepts the warnings that it has, in whatever order they name variables, and no error', async () => {
  const finding = (parts: Partial<Finding> = {}): Finding => ({
    id: 'one',
    severity: 'warning',
    services: ['web'],
    group: 'mail',
    present: ['B', 'A'],
    missing: [],
    cause: 'c',
    fix: 'f',
    ...parts,
  })
  const known = JSON.stringify({ findings: [{ id: 'one', present: ['A', 'B'] }] })
  const { context } = testContext({ cwd: await folderWith({ known: `\ufeff${known}` }) })
  const code = (...findings: Finding[]) => {
    const report = { version: 1, ok: true, services: ['web'], groups: [], findings } as never
    return writeReport(context, 'preflight', report, { format: 'json', strict: true, baseline: 'known' })
  }
  expect(await code(finding())).toBe(0)
  expect(await code(finding({ present: ['A'] }))).toBe(1)
  expect(await code(finding({ id: 'two' }))).toBe(1)
  expect(await code(finding({ severity: 'error' }))).toBe(1)
})

test('a file is checked by itself: only preflight is about a service in production, which tells nobody of a failure', async () => {
  const cwd = await folderWith({ '.env': 'DEPLOY_ENVIRONMENT=production\n' })
  const env = { MAILER_REPLY_TO: 'help@example.com' }
  const [preflight, check] = await Promise.all(
    ['preflight -e .env', 'env check .env'].map((words) => run(words.split(' '), { cwd, env })),
  )
  expect(preflight).toMatchObject({ code: 1, stdout: expect.stringContaining('no-alert-channel') })
  expect(check?.code).toBe(0)
  expect(check?.stdout).not.toMatch(/no-alert-channel|MAILER_REPLY_TO/)
})
