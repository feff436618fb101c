import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { silentLog, systemClock } from '../../src/core/host.ts'
import { secret } from '../../src/core/secret.ts'
import { handlersOf, openPlatform } from '../../src/daemon/platform.ts'
import { createPing, startSchedule } from '../../src/daemon/schedule.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { bodyOf } from '../support/accounts.ts'
import { testContext } from '../support/context.ts'
import { asking } from '../support/opened.ts'
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
  // With a token, since deep checks that nothing gates run once a second.
  const env = { EMAIL_DISPATCH_SECRET: SECRET, HEALTH_DEEP_TOKEN: SECRET }
  const opened = openPlatform({ env, platform, store, clock })
  onTestFinished(() => opened.close())
  const { ask } = asking(handlersOf(opened) as Parameters<typeof asking>[0])
  const headers = { authorization: `Bearer ${SECRET}` }
  const post = async (path: string, { token = SECRET, body = '' } = {}) => {
    const given = token === '' ? {} : { authorization: `Bearer ${token}` }
    const answer = await ask(path, { method: 'POST', body, headers: given })
    return { status: answer.status, body: await bodyOf(answer) }
  }
  const health = async () => bodyOf(await ask('/api/health?deep=1', { headers }))
  const probe = async (name: string) =>
    ((await health()).probes as Record<string, { state: string; reason?: string }>)[name]
  return { ask, post, probe, time, clock, store, address }
}

test('a heartbeat is well until its time and grace are over, and again when the job reports', async () => {
  const { post, probe, time } = await web()
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 26 * HOUR_MS
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 1
  expect(await probe('heartbeat-backup')).toMatchObject({
    state: 'failing',
    reason: 'it has never reported, and is expected since 2026-11-21 09:00 UTC',
  })
  expect(await post('/api/heartbeats/backup')).toEqual({
    status: 200,
    body: { heartbeat: 'backup', state: 'ok', nextBy: new Date(time.now + 26 * HOUR_MS).toISOString() },
  })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  time.now += 27 * HOUR_MS
  expect((await probe('heartbeat-backup'))?.reason).toBe('it last reported at 2026-11-22 11:00 UTC')
})

test('without a grace, a job may be late by a tenth of its time, and takes nothing out of rotation', async () => {
  const { ask, probe, time } = await web()
  await probe('heartbeat-sweep')
  time.now += 66 * 60_000
  expect(await probe('heartbeat-sweep')).toMatchObject({ state: 'ok' })
  time.now += 1
  expect(await probe('heartbeat-sweep')).toMatchObject({ state: 'failing' })
  expect((await ask('/api/health')).status).toBe(200)
})

test('a reported failure fails the job’s probe at once, until the next success', async () => {
  const { post, probe, time } = await web()
  expect((await post('/api/heartbeats/backup', { body: '{"exitCode":3}' })).body).toMatchObject({
    state: 'failed',
    nextBy: new Date(time.now + 26 * HOUR_MS).toISOString(),
  })
  expect(await probe('heartbeat-backup')).toMatchObject({
    state: 'failing',
    reason: 'it reported a failure (exit code 3) at 2026-11-21 09:00 UTC',
  })
  await post('/api/heartbeats/backup', { body: '{"exitCode":0}' })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
})

test('only a caller with the dispatch secret reports, only what the definition names, and only in its form', async () => {
  const { post } = await web()
  expect((await post('/api/heartbeats/backup', { token: '' })).status).toBe(401)
  expect(
    (await post('/api/heartbeats/backup', { token: 'guessed-by-somebody-who-has-no-secret' })).status,
  ).toBe(401)
  expect((await post('/api/heartbeats/nightly')).status).toBe(404)
  expect((await post('/api/heartbeats/backup', { body: '{"exitCode":"1"}' })).status).toBe(400)
})

test('beat reports to the web service, or with --local into the store', async () => {
  const { post, probe, clock, time, address } = await web()
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
  await post('/api/heartbeats/backup', { body: '{"exitCode":1}' })
  time.now += 60_000
  const STORE_URL = `sqlite:${address?.kind === 'sqlite' ? address.file : ''}`
  expect(await run(['backup', '--local'], { STORE_URL })).toMatchObject({ code: 0 })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'ok' })
  // A failing job, also where it is this process that writes.
  const job = ['--', process.execPath, '-e', 'process.exit(3)']
  expect(await run(['backup', '--local', ...job], { STORE_URL })).toMatchObject({ code: 3 })
  expect(await probe('heartbeat-backup')).toMatchObject({ state: 'failing' })
  // A job that could not be started, because its script was moved, has failed too.
  expect(await run(['sweep', '--local', '--', '/nowhere/sweep.sh'], { STORE_URL })).toMatchObject({
    code: 127,
  })
  expect((await probe('heartbeat-sweep'))?.reason).toContain('it reported a failure (exit code 127)')
  // The job runs and gives its exit code even if nothing can be reported.
  for (const words of [['backpu', '--local'], ['backup', '--url', url], ['backup']])
    expect(await run([...words, ...job])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`the heartbeat ${words[0]} was not recorded: `),
    })
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

test('CI silences alerts through the web service, from nothing to a day, in three digits or four of seconds', async () => {
  const { post, store } = await web()
  const deploy = JSON.stringify({ duration: '15m', reason: 'deploy of 4.3' })
  expect((await post('/api/alerts/silence', { token: '', body: deploy })).status).toBe(401)
  expect(await post('/api/alerts/silence', { body: deploy })).toEqual({
    status: 200,
    body: { until: new Date(START + 15 * 60_000).toISOString() },
  })
  expect(await store.incidents.silenceAt(START)).toMatchObject({ by: 'ci', reason: 'deploy of 4.3' })
  for (const [duration, ms] of [
    ['9999s', 9_999_000],
    ['999m', 999 * 60_000],
    ['24h', 24 * HOUR_MS],
    ['25h', undefined],
    ['0s', undefined],
    ['1000m', undefined],
    ['0', 0],
  ] as const) {
    const body = JSON.stringify({ duration, reason: 'x', by: duration })
    const { status } = await post('/api/alerts/silence', { body })
    expect(status, duration).toBe(ms === undefined ? 400 : 200)
    const held = { from: START, until: START + (ms ?? 0), reason: 'x', by: duration }
    // Of several the one that ends last holds.
    if (ms) expect(await store.incidents.silenceAt(START), duration).toEqual(held)
  }
  // One of no length ends the others.
  expect(await store.incidents.silenceAt(START)).toBeUndefined()
})

test('a report of a job has an exit code of 32 bits or none, in at most 4 KB', async () => {
  const { post } = await web()
  for (const [body, status] of [
    ['', 200],
    [' \n', 200],
    ['{"exitCode":4294967295}', 200],
    ['{"exitCode":4294967296}', 400],
    ['{"exitCode":-1}', 400],
    [`{"exitCode":1}${' '.repeat(4 * 1024 - 14)}`, 200],
    [`{"exitCode":1}${' '.repeat(4 * 1024 - 13)}`, 413],
  ] as const)
    expect((await post('/api/heartbeats/backup', { body })).status, body.slice(0, 30)).toBe(status)
})
