import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { loadPaint, shown } from '../../src/cli/context.ts'
import { openStage } from '../../src/cli/demo/stage.ts'
import { courseStatusText } from '../../src/cli/output/course-text.ts'
import { healthJson, healthProm, healthText } from '../../src/cli/output/health.ts'
import { healthJunit } from '../../src/cli/output/junit.ts'
import { jsonText } from '../../src/cli/output/text.ts'
import type { RemoteHealth } from '../../src/core/health/prober.ts'
import { verdictOf } from '../../src/core/health/verdict.ts'
import { CAUSES, type CauseCode } from '../../src/core/network/causes.ts'
import { openStore } from '../../src/core/store/open.ts'
import { testContext } from '../support/context.ts'
import { emptyFolder } from '../support/folder.ts'
import { ASKS } from '../support/learning.ts'
import { run } from '../support/run.ts'

const phases = { total: 12.4, tcp: 0.4, firstByte: 8.1 }

function answered(service: 'web' | 'api', probes: Record<string, object>): RemoteHealth {
  const states = Object.values(probes).map((probe) => ('state' in probe ? probe.state : 'ok'))
  return {
    service,
    url: `https://${service}.example.com`,
    phases,
    certificate: { validTo: '2027-01-01T00:00:00.000Z', daysLeft: 40 },
    reached: true,
    report: {
      service,
      state: states.includes('failing') ? 'failing' : 'ok',
      build: '2026.11.21-4fcbc9c',
      startedAt: '',
      time: '',
      latencyMs: 3,
      // The shape of a report as `readReport` gives it.
      probes: probes as Extract<RemoteHealth, { reached: true }>['report']['probes'],
    },
  }
}

function silent(service: string, cause: CauseCode): RemoteHealth {
  const { meaning, fix } = CAUSES[cause]
  return {
    service,
    url: `https://${service}.example.com`,
    phases,
    reached: false,
    cause,
    reason: meaning,
    fix,
  }
}

const skipped = { state: 'skipped', checked: false, reason: 'not configured' }
const TROUBLE = [
  silent('web', 'unauthorised'),
  answered('api', {
    circuit: { state: 'ok', checked: true, latencyMs: 0.4 },
    job_store: {
      state: 'failing',
      checked: true,
      latencyMs: 2000,
      reason: 'the server accepted the connection and did not answer within two seconds',
    },
    hardware_a: { state: 'ok', checked: false },
    limiter: skipped,
    cloudb: skipped,
    cloudqpu: skipped,
  }),
  silent('agent', 'connect_refused'),
]

function capture(
  results: readonly RemoteHealth[],
  columns: number,
  paint: Awaited<ReturnType<typeof loadPaint>>,
) {
  const verdict = verdictOf(results, { strict: false, expectBuild: undefined, asks: ASKS })
  return healthText(verdict, verdict.outcome === 'passed', paint, columns)
}

function expectToFit(text: string, columns: number): void {
  for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(columns)
}

test.each([60, 80, 120])('health at %d columns', async (columns) => {
  const plain = capture(TROUBLE, columns, await loadPaint(false))
  await expect(plain).toMatchFileSnapshot(`captures/health-${columns}.txt`)
  expectToFit(plain, columns)
  expect(stripVTControlCharacters(capture(TROUBLE, columns, await loadPaint(true)))).toBe(plain)
})

test.each(['json', 'prom', 'junit'] as const)('health as %s', async (format) => {
  const verdict = verdictOf(TROUBLE, { strict: false, expectBuild: undefined, asks: ASKS })
  const texts = {
    json: () => jsonText(healthJson(verdict, false, 0)),
    prom: () => healthProm(verdict, false),
    junit: () => healthJunit(verdict, false),
  }
  await expect(texts[format]()).toMatchFileSnapshot(`captures/health-${format}.txt`)
})

test('preflight of a file at 80 columns', async () => {
  const cwd = fileURLToPath(new URL('../fixtures/env-files/', import.meta.url))
  const args = ['preflight', '--env-file', 'nextjs.env']
  const { stdout } = await run(args, { cwd, env: { SHAREDSTORE_REST_TOKEN: 'half-of-a-pair' }, columns: 80 })
  await expect(stdout).toMatchFileSnapshot('captures/preflight-80.txt')
})

test('a check that passes with a warning ends without a tick', async () => {
  const api = answered('api', {})
  const other = api.reached ? { ...api, report: { ...api.report, build: 'b2' } } : api
  const last = async (...results: readonly RemoteHealth[]) =>
    capture(results, 200, await loadPaint(false))
      .trimEnd()
      .split('\n')
      .at(-1)
  expect(await last(answered('web', {}), other)).toMatch(/^◐ different builds run: web .*, api b2$/)
  expect(await last(answered('web', {}), api)).toBe('✔ all 2 services are ok')
})

test.each([
  [1, 'certificate valid for 1 more day'],
  [2, 'certificate valid for 2 more days'],
])('health says of a certificate with %i days left: %s', async (daysLeft, said) => {
  const web = { ...answered('web', {}), certificate: { validTo: '', daysLeft } }
  expect(capture([web], 200, await loadPaint(false))).toMatch(new RegExp(`${said}$`, 'm'))
})

test('health shows what was not checked in gray, and never as ok', async () => {
  const text = shown(
    capture(
      [answered('web', { mail: { state: 'ok', checked: false }, store: { state: 'ok', checked: true } })],
      80,
      await loadPaint(true),
    ),
    true,
  )
  const lines = text.split('\n')
  const [gray, green] = ['\u001b[2m', '\u001b[32m']
  expect(lines.find((line) => line.includes('mail'))).toContain(`${gray}· mail     not checked`)
  expect(lines.find((line) => line.includes('store'))).toContain(`${green}● store    ok`)
})

test.each([60, 80, 120])(
  'the help of the program and of each command fits into %d columns',
  async (columns) => {
    const commands = ['', 'preflight', 'env', 'health', 'dispatch', 'course', 'db', 'email', 'daemon', 'demo']
    for (const command of commands) {
      const { stdout } = await run([command, '--help'].filter(Boolean), { columns })
      expectToFit(stdout.replaceAll(/^ {2}platformctl .*$/gm, ''), columns)
      // An example stays on its line, to be copied.
      if (command === 'preflight')
        expect(stdout).toContain('--deep --send-test   and send a test alert on each channel\n')
    }
  },
)

test.each([60, 80, 120])(
  'the demo wraps at words at %d columns, and keeps a command whole',
  async (columns) => {
    const { context, stderr } = testContext()
    const write = context.stderr.write.bind(context.stderr)
    const stage = await openStage({ ...context, stderr: { write, columns } }, () => {})
    stage.done('three services on an SQLite file, and an inbox with a real SMTP server')
    stage.open([['status', 'http://127.0.0.1:3000/', 'what runs and what does not, with sample history']])
    const command =
      'platformctl daemon --env-file platform.env --web-port 3001 --api-port 8001 --agent-port 8101'
    stage.finale(
      'seven lessons in 3 s, each sent once',
      [[command, 'Run the services:']],
      'http://127.0.0.1:8025',
    )
    await expect(stderr()).toMatchFileSnapshot(`captures/demo-${columns}.txt`)
    for (const line of stderr().split('\n'))
      if (!line.includes(command)) expect(line.length, line).toBeLessThanOrEqual(columns)
  },
)

test.each(['env explain MAILER_FROM', 'health explain', 'preflight'])(
  '%s on a terminal that does not know its width writes what it writes to a pipe',
  async (command) => {
    const [onTerminal, piped] = await Promise.all(
      [{ columns: 0 }, {}].map((parts) => run(command.split(' '), parts)),
    )
    expect(onTerminal).toEqual(piped)
  },
)

test.each([60, 80, 120])('env list and email list at %d columns', async (columns) => {
  for (const command of ['env list', 'email list']) {
    const { stdout: text } = await run(command.split(' '), { columns })
    await expect(text).toMatchFileSnapshot(`captures/${command.replace(' ', '-')}-${columns}.txt`)
    expectToFit(text, columns)
  }
})

/** What is shown of a delivery that waits for a decision. */
const PROBLEM = {
  id: 'sub-1',
  address: 'ada@example.com',
  state: 'confirmed',
  sentDays: [1],
  messageId: 'm1@example.com',
  problem: { kind: 'parked', reason: '550 refused', since: 0 },
}

test.each([60, 80, 120])('course status at %d columns', async (columns) => {
  const now = Date.UTC(2026, 10, 21, 9)
  const text = courseStatusText({
    now,
    columns,
    counts: {
      byCourse: { quantum: { unconfirmed: 12, confirmed: 1340, unsubscribed: 8 } },
      byState: { unconfirmed: 12, confirmed: 1340, unsubscribed: 8 },
      byLessons: [40, 0, 0, 0, 0, 0, 0, 1300],
      dueNow: 3,
      waiting: 2,
      nextTryAt: now + 300_000,
      oldestDueAt: now - 3 * 3_600_000,
      dueByHour: [1, 0, 8, ...Array.from({ length: 21 }, () => 0)],
      parked: 1,
      unknown: 0,
    },
    problems: [PROBLEM as never],
  })
  await expect(text).toMatchFileSnapshot(`captures/course-status-${columns}.txt`)
  expectToFit(text, columns)
})

test.each([60, 80, 120])('db status at %d columns', async (columns) => {
  const cwd = await emptyFolder()
  const store = await openStore({ kind: 'sqlite', file: path.join(cwd, 'platform.sqlite') })
  await store.course.requestConfirmation({
    course: 'quantum',
    identity: 'ada@example.com',
    address: 'ada@example.com',
    id: 'ada',
    tokenHash: 'ada',
    now: Date.UTC(2026, 10, 21),
  })
  await store.close()
  // The newest schema and its size change with each migration, and are no matter of looks.
  const text = (await run(['db', 'status', '--data', '.'], { cwd, columns })).stdout
    .replaceAll(cwd, '/var/lib/platformctl')
    .replace(/\d+(?= \(up to date\))/, '15')
    .replace(/[\d.]+(?= kB,)/, '192.5')
    .replace(/\n +(?=\/var)/, ' ')
  await expect(text).toMatchFileSnapshot(`captures/db-status-${columns}.txt`)
  expectToFit(text, columns)
})
