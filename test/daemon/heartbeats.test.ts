import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { silentLog, systemClock } from '../../src/core/host.ts'
import { secret } from '../../src/core/secret.ts'
import { openPlatform } from '../../src/daemon/platform.ts'
import { createPing, startSchedule } from '../../src/daemon/schedule.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { testContext } from '../support/context.ts'
import { serve } from '../support/servers.ts'
import { addressOf, openTestStore } from '../support/stores.ts'

const START = Date.UTC(2026, 10, 21, 9)
const HOUR_MS = 60 * 60 * 1000
const SECRET = 'a-dispatch-secret-of-thirty-two-bytes'
const platform = resolvePlatform(
  { heartbeats: { backup: { every: '1d', grace: '2h' }, sweep: { every: '1h', label: 'Nightly sweep' } } },
  { folder: '/' },
)

async function web() {
  const time = { now: START }
  const clock = { ...systemClock, now: () => time.now }
  const address = await addressOf('sqlite')
  const store = await openTestStore(address)
  const opened = openPlatform({ env: { EMAIL_DISPATCH_SECRET: SECRET }, platform, store, clock })
  onTestFinished(() => opened.close())
  const handler = opened.services.get('web')?.handler
  if (handler === undefined) throw new Error('there is no web service')
  const ask = async (path: string, { token = SECRET, body = '' } = {}) => {
    const init =
      path === '/api/health?deep=1'
        ? {}
        : { method: 'POST', body, headers: token === '' ? {} : { authorization: `Bearer ${token}` } }
    const answer = await handler.fetch(new Request(`http://any.example${path}`, init))
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const probe = async (name: string) =>
    ((await ask('/api/health?deep=1')).body.probes as Record<string, { state: string; reason?: string }>)[
      name
    ]
  return { ask, probe, time, clock, store, address }
}

test('a heartbeat is well until its time and grace are over, and again when the job reports', async () => {
  const { ask, probe, time } = await web()
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 26 * HOUR_MS
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 1
  expect(await probe('heartbeat-backup')).toMatchObject({
    state: 'failing',
    reason: 'it has never reported, and is expected since 2026-11-21 09:00 UTC',
  })
  expect(await ask('/api/heartbeats/backup')).toEqual({
    status: 200,
    body: { heartbeat: 'backup', state: 'ok', nextBy: new Date(time.now + 26 * HOUR_MS).toISOString() },
  })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 27 * HOUR_MS
  expect((await probe('heartbeat-backup'))?.reason).toBe('it last reported at 2026-11-22 11:00 UTC')
})

test('without a grace, a job may be late by a tenth of its time', async () => {
  const { probe, time } = await web()
  await probe('heartbeat-sweep')
  time.now += 66 * 60_000
  expect(await probe('heartbeat-sweep')).toMatchObject({ state: 'ok' })
  time.now += 1
  expect(await probe('heartbeat-sweep')).toMatchObject({ state: 'failing' })
})

test('a reported failure fails the job’s probe at once, until the next success', async () => {
  const { ask, probe } = await web()
  expect((await ask('/api/heartbeats/backup', { body: '{"exitCode":3}' })).body).toMatchObject({
    state: 'failed',
  })
  expect(await probe('heartbeat-backup')).toMatchObject({
    state: 'failing',
    reason: 'it reported a failure (exit code 3) at 2026-11-21 09:00 UTC',
  })
  await ask('/api/heartbeats/backup', { body: '{"exitCode":0}' })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
})

test('health without deep does not look at heartbeats: a late job takes nothing out of rotation', async () => {
  const { time, clock, store } = await web()
  const opened = openPlatform({ env: {}, platform, store, clock })
  onTestFinished(() => opened.close())
  time.now += 1000 * HOUR_MS
  const answer = await opened.services.get('web')?.handler.fetch(new Request('http://any.example/api/health'))
  expect(answer?.status).toBe(200)
})

test('only a caller with the dispatch secret reports, only what the definition names, and only in its form', async () => {
  const { ask } = await web()
  expect((await ask('/api/heartbeats/backup', { token: '' })).status).toBe(401)
  expect(
    (await ask('/api/heartbeats/backup', { token: 'guessed-by-somebody-who-has-no-secret' })).status,
  ).toBe(401)
  expect((await ask('/api/heartbeats/nightly')).status).toBe(404)
  expect((await ask('/api/heartbeats/backup', { body: '{"exitCode":"1"}' })).status).toBe(400)
})

test('CI silences alerts through the web service', async () => {
  const { ask, store } = await web()
  const body = JSON.stringify({ duration: '15m', reason: 'deploy of 4.3' })
  expect((await ask('/api/alerts/silence', { token: '', body })).status).toBe(401)
  expect((await ask('/api/alerts/silence', { body: '{"duration":"25h","reason":"x"}' })).status).toBe(400)
  expect(await ask('/api/alerts/silence', { body })).toEqual({
    status: 200,
    body: { until: new Date(START + 15 * 60_000).toISOString() },
  })
  expect(await store.incidents.silenceAt(START)).toMatchObject({ by: 'ci', reason: 'deploy of 4.3' })
})

test('beat reports to the web service, or with --local into the store', async () => {
  const { ask, probe, clock, time, address } = await web()
  const calls: string[] = []
  const url = await serve((request, response) => {
    calls.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    response.end(JSON.stringify({ nextBy: '2026-11-22T11:00:00.000Z' }))
  })
  const run = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { context, stdout, stderr } = testContext({ env, platform, clock })
    return { code: await runProgram(['beat', ...args], context), stdout: stdout(), stderr: stderr() }
  }
  expect(await run(['backup', '--url', url], { EMAIL_DISPATCH_SECRET: SECRET })).toEqual({
    code: 0,
    stdout: 'recorded backup; the next one is due by 2026-11-22T11:00:00.000Z\n',
    stderr: '',
  })
  expect(calls).toEqual([`POST /api/heartbeats/backup Bearer ${SECRET}`])
  await ask('/api/heartbeats/backup', { body: '{"exitCode":1}' })
  time.now += 60_000
  const STORE_URL = `sqlite:${address?.kind === 'sqlite' ? address.file : ''}`
  expect(await run(['backup', '--local'], { STORE_URL })).toMatchObject({ code: 0 })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  // A failing job, also where it is this process that writes.
  const job = ['--', process.execPath, '-e', 'process.exit(3)']
  expect(await run(['backup', '--local', ...job], { STORE_URL })).toMatchObject({ code: 3 })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'failing' })
  expect(await run(['backpu', '--local'], { STORE_URL })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('it has backup, sweep'),
  })
  expect(await run(['backup', '--url', url])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('EMAIL_DISPATCH_SECRET is not set'),
  })
})

test('an outside watcher is called once after each completed hour, again when it does not answer', async () => {
  const paths: string[] = []
  const answers = [503, 200]
  const url = await serve((request, response) => {
    paths.push(`${request.method} ${request.url}`)
    response.writeHead(answers.shift() ?? 200).end()
  })
  const watcher = createPing(
    { clock: { ...systemClock, sleep: async () => {} }, log: silentLog },
    secret(`${url}/ping/4a1f`),
  )
  const store = await openTestStore(await addressOf('sqlite'))
  const schedule = (done: 'done' | 'stopped') =>
    startSchedule({
      store,
      clock: { now: () => START },
      log: silentLog,
      run: async () => done,
      onDone: watcher.ping,
    })
  await schedule('stopped').stop()
  expect(paths).toEqual([])
  await schedule('done').stop()
  await expect.poll(() => paths).toEqual(['GET /ping/4a1f', 'GET /ping/4a1f'])
  await schedule('done').stop()
  await watcher.stop()
  expect(paths).toHaveLength(2)
})

test.each([
  ['0', 200, 0],
  ['1s', 200, 1000],
  ['24h', 200, 24 * HOUR_MS],
  ['25h', 400, undefined],
  ['0s', 400, undefined],
  ['999m', 200, 999 * 60_000],
  ['1000m', 400, undefined],
  ['9999s', 200, 9_999_000],
])('a silence of %s is answered %d, and holds that long', async (duration, status, ms) => {
  const { ask, store } = await web()
  const answer = await ask('/api/alerts/silence', {
    body: JSON.stringify({ duration, reason: 'x', by: 'me' }),
  })
  expect(answer.status).toBe(status)
  expect(await store.incidents.silenceAt(START)).toEqual(
    ms === undefined || ms === 0 ? undefined : { from: START, until: START + ms, reason: 'x', by: 'me' },
  )
})

test.each([
  ['', 200],
  [' \n', 200],
  ['{"exitCode":4294967295}', 200],
  ['{"exitCode":4294967296}', 400],
  ['{"exitCode":-1}', 400],
  [`{"exitCode":1}${' '.repeat(4 * 1024 - 14)}`, 200],
  [`{"exitCode":1}${' '.repeat(4 * 1024 - 13)}`, 413],
])('a report of a job with the body %.30j is answered %d', async (body, status) => {
  const { ask } = await web()
  expect((await ask('/api/heartbeats/backup', { body })).status).toBe(status)
})
