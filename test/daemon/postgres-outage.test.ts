import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Clock, silentLog, systemRandom } from '../../src/core/host.ts'
import { startDaemon } from '../../src/daemon/start.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { emptyFolder } from '../support/folder.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { serveBodies } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'

const START = Date.UTC(2026, 10, 21, 9, 30, 5)
const SOON = { timeout: 30_000, interval: 10 }

interface Told {
  readonly id: string
  readonly what: string
  readonly text: string
}

/** Not the one that other files share: a test makes all of it read-only. */
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** A database that a test can make read-only or unreachable, and daemons on it. */
async function outage() {
  const url = await server.createDatabase()
  const { pathname } = new URL(url)
  const told: Told[] = []
  const hook = await serveBodies((body, response, request) => {
    const { type, data } = JSON.parse(body)
    told.push({
      id: String(request.headers['webhook-id']),
      what: `${data.cause} ${type}`,
      text: `${data.title}\n${data.text}`,
    })
    response.end()
  })
  const time = standingClock(START)
  const start = (dataFolder: string, clock: Clock = time.clock) =>
    startDaemon({
      env: { STORE_URL: url, ALERT_WEBHOOK_URL: hook },
      platform: learning,
      services: ['web', 'api', 'agent'],
      host: '127.0.0.1',
      ports: { web: 0, api: 0, agent: 0 },
      dataFolder,
      schedule: false,
      clock,
      random: systemRandom,
      log: silentLog,
    })
  const pass = async (ms: number, clocks: readonly ReturnType<typeof standingClock>[] = [time]) => {
    const waiting = () => Promise.all(clocks.map(({ waits }) => expect.poll(waits, SOON).toBe(true)))
    for (let passed = 0; passed < ms; passed += 5000) {
      await waiting()
      for (const one of clocks) one.pass(5000)
    }
    await waiting()
  }
  const readOnly = async (state: 'on' | 'off') => {
    await server.query(url, `ALTER SYSTEM SET default_transaction_read_only = ${state}`)
    await server.query(url, 'SELECT pg_reload_conf()')
    await expect
      .poll(async () => (await server.query(url, 'SHOW default_transaction_read_only')).rows[0])
      .toEqual({ default_transaction_read_only: state })
  }
  onTestFinished(() => readOnly('off'))
  const admin = Object.assign(new URL(url), { pathname: '/postgres' }).href
  const reachable = async (state: boolean) => {
    const name = pathname.slice(1)
    await server.query(admin, `ALTER DATABASE ${name} ALLOW_CONNECTIONS ${state}`)
    if (!state)
      await server.query(
        admin,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      )
  }
  /** Each message once: a receiver recognizes a repeat by its id. */
  const received = () => [...new Map(told.map((one) => [one.id, one])).values()]
  return { time, start, pass, readOnly, reachable, received, told }
}

/** What is on its way when the time has passed arrives in real time. */
const expectTold = (received: () => readonly Told[], whats: readonly string[]) =>
  expect.poll(() => received().map(({ what }) => what)).toEqual(whats)

test.each([1, 2])(
  'a PostgreSQL that becomes read-only under %i daemons is one alert, says what is true of it, and ends without a restart',
  { timeout: 120_000 },
  async (daemons) => {
    const { start, pass, readOnly, received } = await outage()
    const clocks = Array.from({ length: daemons }, () => standingClock(START))
    const running = await Promise.all(clocks.map(async ({ clock }) => start(await emptyFolder(), clock)))
    for (const daemon of running) onTestFinished(() => daemon.close())
    const web = running[0]?.urls.web ?? ''
    await pass(60_000, clocks)
    await readOnly('on')
    await pass(180_000, clocks)
    await expectTold(received, ['store incident.opened'])
    const text = received()[0]?.text ?? ''
    expect(text).toContain('Cause: its server accepts no writes: it is a replica, or was set to read-only.')
    expect(text).not.toMatch(/\bfile\b|remount/)
    const health = await fetch(`${web}/api/health?deep=1`)
    expect(health.status).toBe(503)
    expect(JSON.stringify(await health.json())).not.toMatch(/\bfile\b|remount/)
    const subscribe = () =>
      fetch(`${web}/api/email/subscribe`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ email: 'ada@example.com' }),
      })
    expect((await subscribe()).status).toBe(503)
    await readOnly('off')
    expect((await subscribe()).status).toBe(202)
    await pass(300_000, clocks)
    expect((await fetch(`${web}/api/health?deep=1`)).status).toBe(200)
    await expectTold(received, ['store incident.opened', 'store incident.closed'])
  },
)

test('a daemon that restarts while its store fails repeats no alert, and tells the end once', async () => {
  const { time, start, pass, readOnly, reachable, received, told } = await outage()
  const folder = await emptyFolder()
  const first = await start(folder)
  await pass(60_000)
  await reachable(false)
  await pass(180_000)
  await expectTold(() => told, ['store incident.opened'])
  await first.close()
  // It cannot start, and each attempt says so in its log alone.
  for (let attempt = 0; attempt < 2; attempt += 1) {
    time.pass(15 * 60_000)
    await expect(start(folder)).rejects.toThrow('PostgreSQL')
  }
  expect(told).toHaveLength(1)
  // After four hours the failing start reminds.
  time.pass(4 * 60 * 60_000)
  await expect(start(folder)).rejects.toThrow('PostgreSQL')
  expect(told.slice(1).map(({ what }) => what)).toEqual(['store incident.reminder'])
  await reachable(true)
  await readOnly('on')
  // One that only reads lets it start.
  const second = await start(folder)
  await pass(180_000)
  await second.close()
  await readOnly('off')
  const third = await start(folder)
  onTestFinished(() => third.close())
  await pass(240_000)
  expect(told.slice(2).map(({ what }) => what)).toEqual(['store incident.closed'])
  const incidents = received().map(({ id }) => id.split('.')[1])
  expect(new Set(incidents).size).toBe(1)
}, 120_000)

test('a daemon that finds its store failing when it starts tells that once, and the end of it', async () => {
  const { start, pass, reachable, told } = await outage()
  await reachable(false)
  const folder = await emptyFolder()
  for (let attempt = 0; attempt < 3; attempt += 1) await expect(start(folder)).rejects.toThrow('PostgreSQL')
  await expectTold(() => told, ['store incident.opened'])
  expect(told[0]?.text).toMatch(
    /The daemon does not start\nCause: The PostgreSQL of STORE_URL .*the daemon refused to start\.\n.*\nWhat it means: the platform is down/,
  )
  expect(told[0]?.text).not.toMatch(/Acknowledge|Status page/)
  await reachable(true)
  const daemon = await start(folder)
  onTestFinished(() => daemon.close())
  await pass(240_000)
  expect(told.slice(1).map(({ what }) => what)).toEqual(['store incident.closed'])
}, 120_000)
