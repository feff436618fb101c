import { once } from 'node:events'
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openInbox } from '../../src/cli/demo/inbox.ts'
import { readRecord, writeRecord } from '../../src/core/daemon-record.ts'
import { DAY_MS, HOUR_MS } from '../../src/core/durations.ts'
import { systemClock } from '../../src/core/host.ts'
import { openHistory, openMaintenance } from '../../src/core/store/open.ts'
import { ListenError } from '../../src/daemon/listen.ts'
import type { DaemonOptions } from '../../src/daemon/options.ts'
import { resolvePlatform } from '../../src/platform/resolve.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { startLearningDaemon } from '../support/daemon.ts'
import { emptyFolder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { incidentWith, openIncident } from '../support/incidents.ts'
import { askIn, enrolIn } from '../support/learning.ts'
import { keptLog, opened } from '../support/opened.ts'
import { alertWebhook, serve, serveBodies } from '../support/servers.ts'
import { standingClock } from '../support/standing-clock.ts'
import { addressOf, openTestStore, postgresServer } from '../support/stores.ts'
import { audited } from '../support/subscribers.ts'

const START = Date.UTC(2026, 10, 21, 9)
const MAILER = {
  MAILER_API_KEY: 'a-key-of-the-mail-provider',
  MAILER_FROM: 'Course <course@example.com>',
}

/** A daemon in a folder of its own, and the lines that it logged. */
async function started(options: Partial<DaemonOptions> = {}) {
  const dataFolder = options.dataFolder ?? (await emptyFolder())
  const { log, lines, told } = keptLog()
  const daemon = await startLearningDaemon({ env: {}, log, ...options, dataFolder })
  onTestFinished(() => daemon.close())
  return { ...daemon, dataFolder, lines, said: (event: string) => told(event)[0] }
}

/** The store that the daemon of this folder has, opened beside it. */
const storeIn = (dataFolder: string) =>
  openTestStore({ kind: 'sqlite', file: path.join(dataFolder, 'platform.sqlite') })

/** A port that somebody else has. */
async function takenPort(): Promise<number> {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  return (taken.address() as AddressInfo).port
}

/** A history that notes that it was closed. */
async function closable(fails = false) {
  const history = await openHistory(undefined)
  const it = { closed: 0 }
  return {
    it,
    history: {
      ...history,
      close: async () => {
        it.closed += 1
        await history.close()
        if (fails) throw new TypeError('the file is gone')
      },
    },
  }
}

test('a port that is taken is told with its service, and what was opened before it is given back', async () => {
  const taken = await takenPort()
  const [first, { it, history }] = [await freePort(), await closable()]
  const start = () => started({ services: ['web', 'api'], ports: { web: first, api: taken }, history })
  const fault = await start().catch((error: unknown) => error)
  expect(fault).toBeInstanceOf(ListenError)
  expect(fault).toMatchObject({ service: 'api', port: taken, cause: { code: 'EADDRINUSE' } })
  expect(it.closed).toBe(1)
  expect((await started({ ports: { web: first } })).urls).toEqual({ web: `http://127.0.0.1:${first}` })
})

test.each(['the daemon', 'a program'])(
  '%s opens as many connections to PostgreSQL as STORE_POOL_SIZE says, and no more',
  async (who) => {
    const address = await addressOf('postgres')
    if (address?.kind !== 'postgres') throw new TypeError('it is a server')
    const url = address.url.reveal()
    const env = { STORE_URL: url, STORE_POOL_SIZE: '3' }
    const { web } = who === 'a program' ? opened({ env }).platform : (await started({ env })).urls
    const subscribe = async (n: number) => {
      const headers = { 'Content-Type': 'application/json' }
      const asked = { method: 'POST', headers, body: JSON.stringify({ email: `p${n}@example.com` }) }
      const send = typeof web === 'object' ? web.fetch : fetch
      const at = typeof web === 'object' ? 'http://web.example' : web
      return (await send(new Request(`${at}/api/email/subscribe`, asked))).status
    }
    const statuses = await Promise.all(Array.from({ length: 24 }, (_, n) => subscribe(n)))
    expect(new Set(statuses)).toEqual(new Set([202]))
    const { rows } = await (await postgresServer()).query(
      url,
      'SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    )
    // The record of health has one of its own, once it was written.
    expect([3, 4]).toContain(rows[0]?.n)
  },
)

test('an address of IPv6 stands in brackets', async () => {
  const { urls } = await started({ host: '::1' })
  expect(urls.web).toMatch(/^http:\/\/\[::1\]:\d+$/)
  expect((await fetch(`${urls.web}/api/health`)).status).toBe(200)
})

test('a service is looked for where it listens here, unless the environment names another place', async () => {
  const asked: unknown[] = []
  const elsewhere = await serve((incoming, response) => {
    asked.push(incoming.url)
    response.writeHead(500).end()
  })
  const { urls } = await started({
    services: ['web', 'api', 'agent'],
    env: { API_URL: '  ', AGENT_URL: elsewhere },
  })
  const { probes } = (await (await fetch(`${urls.web}/api/health?deep=1`)).json()) as {
    probes: Record<string, { state: string }>
  }
  expect(probes.api?.state).not.toBe('skipped')
  expect(probes.api?.state).not.toBe('failing')
  expect(probes.agent?.state).toBe('failing')
  expect(asked.length).toBeGreaterThan(0)
})

test('the record in the data folder says what runs here, and afterwards when it stopped', async () => {
  const time = { now: START }
  const daemon = await started({
    services: ['web', 'api'],
    env: { BUILD_STAMP: 'b7' },
    envFiles: ['/etc/platform.env'],
    clock: { ...systemClock, now: () => time.now },
  })
  const own = {
    version: 1,
    pid: process.pid,
    startedAt: '2026-11-21T09:00:00.000Z',
    build: 'b7',
    store: { kind: 'sqlite', location: path.join(daemon.dataFolder, 'platform.sqlite') },
    envFiles: ['/etc/platform.env'],
    schedule: false,
    urls: daemon.urls,
  }
  expect(readRecord(daemon.dataFolder)).toMatchObject(own)
  expect(readRecord(daemon.dataFolder)?.stoppedAt).toBeUndefined()
  time.now += 60_000
  await daemon.close()
  expect(readRecord(daemon.dataFolder)).toMatchObject({ ...own, stoppedAt: '2026-11-21T09:01:00.000Z' })
})

test('the configuration names env files and files of secrets that were written or deleted since the start, and calls an own address no setting', async () => {
  const folder = await emptyFolder()
  const files = ['prod.env', 'dispatch-secret', 'kept'].map((name) => path.join(folder, name))
  const [env = '', secret = '', kept = ''] = files
  for (const file of files) await writeFile(file, '')
  const HEALTH_DEEP_TOKEN = 'a-token-of-more-than-24-characters'
  const { urls } = await started({
    services: ['web', 'api'],
    env: { HEALTH_DEEP_TOKEN, BUILD_STAMP: 'b7' },
    isFromFile: (name) => name === 'HEALTH_DEEP_TOKEN',
    envFiles: [env],
    secretFiles: [secret, kept],
    clock: { ...systemClock, now: () => Date.now() + HOUR_MS },
  })
  const headers = { Authorization: `Bearer ${HEALTH_DEEP_TOKEN}` }
  const later = Date.now() / 1000 + 2 * 60 * 60
  await utimes(env, later, later)
  await rm(secret)
  const answer = await fetch(`${urls.web}/api/configuration?nonce=${'0'.repeat(32)}`, { headers })
  const { changedFiles, variables } = (await answer.json()) as {
    changedFiles: string[]
    variables: { name: string; source: string }[]
  }
  expect(changedFiles).toEqual([env, secret])
  expect(Object.fromEntries(variables.map(({ name, source }) => [name, source]))).toMatchObject({
    HEALTH_DEEP_TOKEN: 'file',
    BUILD_STAMP: 'environment',
    API_URL: 'default',
    MAILER_FROM: 'unset',
  })
})

test('a daemon that starts the fifth time within fifteen minutes tells it with its first look', async () => {
  const { url: hook, told } = await alertWebhook()
  const dataFolder = await emptyFolder()
  const { clock } = standingClock(START)
  for (let start = 1; start <= 5; start += 1) {
    const daemon = await started({ dataFolder, clock, env: { ALERT_WEBHOOK_URL: hook } })
    if (start < 5) await daemon.close()
    expect(told).toEqual([])
  }
  await expect.poll(() => told).toEqual([expect.stringMatching(/^incident\.opened restart_loop: /)])
})

/** Checks that a daemon makes a minute apart. */
async function minutes(count: number, { waits, pass }: ReturnType<typeof standingClock>) {
  for (let minute = 0; minute < count; minute += 1) {
    await expect.poll(waits, { interval: 5 }).toBe(true)
    // What this check tells is on its way.
    await new Promise((resolve) => setTimeout(resolve, 10))
    pass(60_000)
  }
}

test('while alerts are paused in its store, a daemon tells of the pause and of nothing else', async () => {
  const { url: hook, told } = await alertWebhook()
  const time = standingClock(START)
  const dataFolder = await emptyFolder()
  const store = await storeIn(dataFolder)
  const streams = ['alert'] as const
  await store.sending.pause({ streams, reason: 'a new pager', now: START, audit: audited('pause', START) })
  const api = await serve((_, response) => response.writeHead(500).end())
  await started({ dataFolder, clock: time.clock, env: { ALERT_WEBHOOK_URL: hook, API_URL: api } })
  await minutes(4, time)
  const causes = async () => (await store.incidents.list(9)).map(({ cause }) => cause)
  await expect.poll(causes).toContain('api')
  await expect.poll(() => told).toEqual(['incident.opened mail_paused: alert: a new pager'])
})

test('a daemon whose schedule hangs in a mail for longer than any mail server may take raises an alert', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { url: hook, told } = await alertWebhook()
  const asked = Promise.withResolvers<() => void>()
  const mail = await serve((incoming, response) => {
    incoming.resume()
    return incoming.method === 'POST' ? asked.resolve(() => response.end('{}')) : response.end('{}')
  })
  const time = standingClock(START)
  const dataFolder = await emptyFolder()
  await enrolIn(await storeIn(dataFolder), 'ada', START - 1000)
  const env = { ...MAILER, MAILER_API_URL: mail, ALERT_WEBHOOK_URL: hook }
  await started({ dataFolder, clock: time.clock, schedule: true, env })
  const answer = await asked.promise
  vi.advanceTimersByTime(22 * 60_000)
  await minutes(3, time)
  await expect.poll(() => told).toEqual(['incident.opened schedule_stalled: no progress for 22 minutes'])
  answer()
})

test('a daemon whose answers are errors alerts of it, although every probe is well', async () => {
  const { url: hook, told } = await alertWebhook()
  const time = standingClock(START)
  const mail = await serve((_, response) => response.end('{}'))
  const env = { ...MAILER, MAILER_API_URL: mail, ALERT_WEBHOOK_URL: hook }
  const { urls, dataFolder } = await started({ clock: time.clock, env })
  const other = new Database(path.join(dataFolder, 'platform.sqlite'))
  other.exec('DROP TABLE subscription')
  other.close()
  const headers = { 'Content-Type': 'application/json' }
  for (const name of ['ada', 'bob', 'eve', 'fay', 'gus']) {
    const body = JSON.stringify({ email: `${name}@example.com` })
    const answer = await fetch(`${urls.web}/api/email/subscribe`, { method: 'POST', headers, body })
    expect(answer.status).toBe(503)
  }
  await minutes(3, time)
  const failed = '5 of 5 requests to /api/email/subscribe were answered with an error (5xx)'
  await expect.poll(() => told).toEqual([`incident.opened requests_failing: within ten minutes ${failed}`])
})

test('a daemon that cannot read a certificate since its start does not end the alert about it', async () => {
  const { url: hook, told } = await alertWebhook()
  const time = standingClock(START)
  const dataFolder = await emptyFolder()
  const { incidents } = await storeIn(dataFolder)
  await openIncident(incidents, incidentWith({ cause: 'certificate_expiring', openedAt: START }))
  const env = { ALERT_WEBHOOK_URL: hook, API_URL: 'https://127.0.0.1:1' }
  await started({ dataFolder, clock: time.clock, env })
  await minutes(6, time)
  await expect.poll(() => told.join()).toContain('incident.opened api: ')
  expect(await incidents.list(9)).toContainEqual(
    expect.objectContaining({ cause: 'certificate_expiring', closedAt: undefined }),
  )
})

test('processes of a service each, with one folder, count as one start a deploy', async () => {
  const { url: hook, told } = await alertWebhook()
  const dataFolder = await emptyFolder()
  const { clock } = standingClock(START)
  for (const deploy of [1, 2, 3]) {
    const daemons: Awaited<ReturnType<typeof started>>[] = []
    for (const service of ['agent', 'api', 'web'])
      daemons.push(
        await started({ dataFolder, clock, services: [service], env: { ALERT_WEBHOOK_URL: hook } }),
      )
    expect(readRecord(dataFolder)?.starts).toHaveLength(deploy)
    // Whichever of them ends last.
    for (const daemon of deploy === 1 ? daemons.toReversed() : daemons) await daemon.close()
  }
  expect(told).toEqual([])
})

test('a data folder or a folder of pointers that cannot be written is logged, and the daemon serves', async () => {
  const dataFolder = await emptyFolder()
  await mkdir(path.join(dataFolder, 'daemon.json'))
  const pointerFolder = path.join(dataFolder, 'platform.sqlite/daemons')
  const { urls, said } = await started({ dataFolder, pointerFolder })
  for (const event of ['record_not_written', 'pointer_not_written'])
    expect(said(event)).toMatchObject({ fault: expect.stringMatching(/^E[A-Z]+$/) })
  expect((await fetch(`${urls.web}/api/health`)).status).toBe(200)
})

test('visitors’ events that cannot be opened keep no daemon from starting, and are stored again once they can be', async () => {
  const dataFolder = await emptyFolder()
  const file = path.join(dataFolder, 'platform-analytics.sqlite')
  await writeFile(file, 'no database'.repeat(1000))
  const STORE_URL = `sqlite:${path.join(dataFolder, 'platform.sqlite')}`
  const env = { STORE_URL, ANALYTICS_DATASTORE_TABLE: 'events' }
  const { urls, said } = await started({ dataFolder, env })
  expect(said('analytics_not_opened')).toMatchObject({ level: 'error' })
  const analytics = async () => {
    const answer = await fetch(`${urls.web}/api/health?deep=1`)
    return ((await answer.json()) as { probes: { analytics: object } }).probes.analytics
  }
  expect(await analytics()).toMatchObject({ state: 'degraded', reason: 'its store cannot be read' })
  await rm(file)
  await expect.poll(analytics, { timeout: 10_000 }).toMatchObject({ state: 'ok', checked: true })
})

test('a daemon warns at its start of another that runs the same services with its folder, and of no other', async () => {
  const { dataFolder, close, said } = await started()
  expect(said('folder_shared')).toBeUndefined()
  await close()
  const own = readRecord(dataFolder)
  if (own === undefined) throw new TypeError('there is a record')
  const { stoppedAt: _, ...running } = own
  const startBeside = async (urls: typeof own.urls, host = own.host) => {
    writeRecord(dataFolder, { ...running, host, pid: process.ppid, urls })
    const second = await started({ dataFolder })
    await second.close()
    return second.said('folder_shared')?.process
  }
  expect(await startBeside({ worker: 'http://127.0.0.1:1' })).toBeUndefined()
  // The numbers of processes of a container that was replaced say nothing here.
  expect(await startBeside(running.urls, 'replaced')).toBeUndefined()
  expect(await startBeside(running.urls)).toBe(process.ppid)
})

test('a daemon warns at its start of people in a course that the definition no longer has', async () => {
  const dataFolder = await emptyFolder()
  const store = await storeIn(dataFolder)
  for (const name of ['ada', 'bob']) await enrolIn(store, name, START)
  const [first] = learning.courses
  const courses = first ? [{ ...first, id: 'another' }, first] : []
  const whole = await started({ dataFolder, platform: { ...learning, courses } })
  await whole.close()
  const { close, said } = await started({ dataFolder, platform: { ...learning, courses: [] } })
  await expect
    .poll(() => said('course_removed')?.message)
    .toBe(
      '2 people are in quantum, which the definition does not have: put it back, or cancel their enrolments',
    )
  await close()
  expect(whole.said('course_removed')).toBeUndefined()
})

test('a daemon warns at its start that its store is another than the last one of its folder had, a new or an old one', async () => {
  const dataFolder = await emptyFolder()
  const warned = async (STORE_URL?: string) => {
    const { close, said } = await started({ dataFolder, env: STORE_URL === undefined ? {} : { STORE_URL } })
    await close()
    return { new: said('store_new')?.before, changed: said('store_changed')?.before }
  }
  expect(await warned()).toEqual({})
  const first = path.join(dataFolder, 'platform.sqlite')
  const next = path.join(dataFolder, 'next.sqlite')
  // The container that migrates has made it.
  const maintenance = await openMaintenance({ kind: 'sqlite', file: next })
  await maintenance.migrate()
  await maintenance.close()
  expect(await warned(`sqlite:${next}`)).toEqual({ new: first })
  expect(await warned(`sqlite:${next}`)).toEqual({})
  // STORE_URL was lost: what is in the old store was sent long ago.
  expect(await warned()).toEqual({ changed: next })
})

test('it stops in order: health fails for the whole grace time, then nothing listens, then its files are closed', async () => {
  const { clock, pass } = standingClock(START)
  const { it, history } = await closable()
  const { urls, close, lines } = await started({ clock, history })
  const health = async () => (await fetch(`${urls.web}/api/health`)).status
  expect(await health()).toBe(200)
  const closing = close({ graceMs: 5000 })
  await expect.poll(health).toBe(503)
  pass(4999)
  expect(await health()).toBe(503)
  expect(it.closed).toBe(0)
  pass(1)
  await closing
  await expect(health()).rejects.toThrow()
  expect(it.closed).toBe(1)
  const events = lines.map(({ event }) => event)
  expect(events.slice(events.indexOf('stopping'))).toContain('stopped')
  expect(events).not.toContain('stop_failed')
  // That the daemon stops is no fault of a probe: nothing of it is recorded or told.
  expect(events).not.toContain('health_changed')
})

test('a part that does not end cleanly is told, and the others end all the same', async () => {
  const { history } = await closable(true)
  const { urls, close, said, dataFolder } = await started({ history })
  await close()
  expect(said('stop_failed')).toMatchObject({ fault: 'TypeError' })
  await expect(fetch(`${urls.web}/api/health`)).rejects.toThrow()
  // The write-ahead log of the store is gone with its last connection.
  expect((await readdir(dataFolder)).filter((name) => name.startsWith('platform.sqlite'))).toEqual([
    'platform.sqlite',
  ])
})

test('with the schedule each hour is run where web is served, what is old is forgotten, and the watcher is called', async () => {
  const pings: unknown[] = []
  const watcher = await serve((incoming, response) => {
    pings.push(incoming.url)
    response.end()
  })
  const dataFolder = await emptyFolder()
  const store = await storeIn(dataFolder)
  const now = Date.UTC(2026, 10, 21, 9)
  const claim = (id: string, at: number) => store.paymentEvents.claim({ id, type: 'x', now: at, leaseMs: 1 })
  for (const [id, at] of [
    ['old', now - 91 * DAY_MS],
    ['young', now - 89 * DAY_MS],
  ] as const) {
    await claim(id, at)
    await store.paymentEvents.settle({ id, handled: true, now: at })
  }
  const options = {
    dataFolder,
    schedule: true,
    env: { HEARTBEAT_PING_URL: `${watcher}/alive` },
    clock: { ...systemClock, now: () => now },
  }
  const other = await started({ ...options, services: ['api'], dataFolder: await emptyFolder() })
  expect(readRecord(other.dataFolder)?.schedule).toBe(false)
  const daemon = await started(options)
  expect(readRecord(dataFolder)?.schedule).toBe(true)
  await expect.poll(() => pings).toEqual(['/alive'])
  expect(daemon.said('schedule_hour')).toMatchObject({ hour: '2026-11-21T09' })
  expect(other.said('schedule_hour')).toBeUndefined()
  expect([await claim('old', now), await claim('young', now)]).toEqual(['claimed', 'handled'])
})

test('a request that is being read when the daemon stops is answered, and what it sends is sent', async () => {
  const inbox = await openInbox({ pagePort: 0 })
  onTestFinished(() => inbox.close())
  const { urls, close, said } = await started({ env: { ...MAILER, MAILER_SMTP_URL: inbox.smtpUrl } })
  const body = JSON.stringify({ email: 'ada@example.com' })
  const asked = request(`${urls.web}/api/email/subscribe`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Content-Length': body.length, Expect: '100-continue' },
  })
  const answered = new Promise<number | undefined>((resolve, reject) => {
    asked.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
  })
  asked.flushHeaders()
  await once(asked, 'continue')
  const closing = close()
  asked.end(body)
  expect(await answered).toBe(202)
  await closing
  expect(inbox.mails.map(({ to }) => to)).toEqual(['ada@example.com'])
  expect(said('stop_failed')).toBeUndefined()
})

test('an alert in flight when the daemon stops is waited for and recorded', async () => {
  const held = Promise.withResolvers<void>()
  let told = 0
  const hook = await serve(async (incoming, response) => {
    incoming.resume()
    told += 1
    await held.promise
    response.end()
  })
  const api = await serve((_, response) => response.writeHead(500).end())
  const { clock, waits, pass } = standingClock(START)
  const { close, dataFolder } = await started({ clock, env: { ALERT_WEBHOOK_URL: hook, API_URL: api } })
  while (told === 0) {
    await expect.poll(waits, { interval: 5 }).toBe(true)
    pass(5000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const closing = close()
  held.resolve()
  await closing
  const store = await storeIn(dataFolder)
  const [{ id } = { id: '' }] = await store.incidents.list(1)
  expect((await store.incidents.messages([id])).map(({ outcome }) => outcome)).toEqual(['sent'])
})

test('an hour that was cut short by a stop is not handled, and a call of the watcher is ended', async () => {
  const held = Promise.withResolvers<void>()
  const [sent, called] = [0, 1].map(() => Promise.withResolvers<void>())
  let cut = false
  const mail = await serve(async (incoming, response) => {
    incoming.resume()
    sent?.resolve()
    await held.promise
    response.end('{"id":"1"}')
  })
  const watcher = await serve((_, response) => {
    called?.resolve()
    response.on('close', () => {
      cut = true
    })
  })
  const dataFolder = await emptyFolder()
  const store = await storeIn(dataFolder)
  const now = Date.now()
  const options = {
    dataFolder,
    schedule: true,
    env: { ...MAILER, HEARTBEAT_PING_URL: watcher, MAILER_API_URL: mail },
    clock: { ...systemClock, now: () => now },
  }
  const hour = new Date(now).toISOString().slice(0, 13)
  const claimed = () => store.claimHour({ hour, leaseMs: 1 })
  await enrolIn(store, 'ada', now - 2 * HOUR_MS)
  const first = await started(options)
  await sent?.promise
  const closing = first.close()
  held.resolve()
  await closing
  expect(await claimed()).toBe('claimed')
  await store.endHour(hour, false)
  const second = await started(options)
  await called?.promise
  await second.close()
  // Sooner than the call gives up by itself.
  await expect.poll(() => cut, { timeout: 2000 }).toBe(true)
  expect(await claimed()).toBe('handled')
})

test('from the start the metrics say when health was to be recorded, and a daemon that stopped leaves no timer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const { history } = await closable()
  // The first round is never written.
  const stuck = { ...history, record: () => Promise.reject(new Error('disk full')) }
  const now = Date.UTC(2026, 10, 21, 9)
  const { urls, close } = await started({ history: stuck, clock: { ...systemClock, now: () => now } })
  const text = await (await fetch(`${urls.web}/metrics`)).text()
  expect(text).toContain(`platformctl_history_recorded_timestamp_seconds ${now / 1000}\n`)
  expect(vi.getTimerCount()).toBeGreaterThan(0)
  await close()
  expect(vi.getTimerCount()).toBe(0)
})

/** What an address of alerts is told by a start that is refused. */
async function refused(
  dataFolder: string,
  { env = {}, starts = 3, ...options }: Partial<DaemonOptions> & { readonly starts?: number },
) {
  const { url: hook, told } = await alertWebhook()
  for (let start = 0; start < starts; start += 1)
    await expect(
      started({ dataFolder, env: { ALERT_WEBHOOK_URL: hook, ...env }, ...options }),
    ).rejects.toThrow(/half-configured|refused the connection|not the address|could not be taken|belongs to/)
  return told.map((one) => one.replace(/^incident\.opened \w+: (.*); the daemon refused to start$/, '$1'))
}

test('a refused start raises its alert at once, also when the store cannot be opened', async () => {
  const [sound, broken] = [await emptyFolder(), await emptyFolder()]
  await mkdir(path.join(broken, 'platform.sqlite'))
  const env = { PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef' }
  for (const folder of [sound, broken])
    expect(await refused(folder, { env, starts: 1 })).toEqual(['half-configured: payments'])
})

test('a daemon that cannot start for its store sends one alert, also if a supervisor restarts it, and none if that cannot be recorded', async () => {
  const folder = await emptyFolder()
  const env = { STORE_URL: `postgres://ada@127.0.0.1:${await freePort()}/school` }
  expect(await refused(path.join(folder, 'new'), { env })).toEqual([
    'The PostgreSQL of STORE_URL refused the connection: check that it runs, and its host and port',
  ])
  await writeFile(path.join(folder, 'file'), '')
  const told = (data: string, run?: string) =>
    refused(path.join(folder, data), { env, ...(run && { pointerFolder: path.join(folder, run) }) })
  expect(await told('new-too', 'file/run')).toHaveLength(1)
  expect(await told('file/data')).toEqual([])
  expect(await told('file/data', 'run')).toHaveLength(1)
})

test('a daemon whose STORE_URL is misspelt alerts once, and opens no other store for it', async () => {
  const dataFolder = await emptyFolder()
  const env = { STORE_URL: 'postgress://ada:canary@127.0.0.1/school' }
  expect(await refused(dataFolder, { env })).toEqual([
    expect.stringMatching(/^STORE_URL is not the address of a store, /),
  ])
  expect(await readdir(dataFolder)).toEqual(['alerts.json', 'daemon.json'])
})

test('a start that is refused because its store is another platform’s alerts nobody', async () => {
  const dataFolder = await emptyFolder()
  const named = (name: string) => ({ platform: resolvePlatform({ preset: 'base', name }, { folder: '/' }) })
  await (await started({ dataFolder, ...named('Kiln School') })).close()
  const glaze = named('Glaze School')
  expect(await refused(dataFolder, { ...glaze, starts: 1 })).toEqual([])
  // Nor is one that is refused before it opens a store noted in that one, whose daemon would tell of it.
  const env = { MAILER_FROM: 'Glaze <glaze@example.com>' }
  expect(await refused(dataFolder, { ...glaze, env, starts: 1 })).toEqual([])
})

test('a JOB_STORE_URL of another program, which the platform does not have or has as text, refuses no start', async () => {
  const env = { JOB_STORE_URL: 'redis://queue.internal/0' }
  const own = { unlocks: 'a', absent: 'b', variables: { JOB_STORE_URL: { kind: 'text' } } } as const
  for (const groups of [{}, { own }]) {
    const platform = resolvePlatform({ preset: 'base', groups }, { folder: '/' })
    expect((await started({ platform, env })).lines).not.toContainEqual(
      expect.objectContaining({ level: 'error' }),
    )
  }
})

test('a start whose port is taken is told once, however often it is repeated', async () => {
  const ports = { web: await takenPort() }
  expect(await refused(await emptyFolder(), { ports })).toEqual([
    `the port ${ports.web} of web could not be taken`,
  ])
})

const AWAY = async (): Promise<Partial<DaemonOptions>> => ({
  env: { STORE_URL: `postgres://ada@127.0.0.1:${await freePort()}/school` },
})

test('a start that its store refuses for hours reminds of it every four', async () => {
  const { url: hook, told } = await alertWebhook()
  const { clock, pass } = standingClock(START)
  const options = { dataFolder: await emptyFolder(), clock }
  const { env } = await AWAY()
  for (const hours of [0, 3, 1, 3, 1]) {
    pass(hours * HOUR_MS)
    await expect(started({ ...options, env: { ...env, ALERT_WEBHOOK_URL: hook } })).rejects.toThrow()
  }
  const kinds = told.map((one) => one.split(' ')[0])
  expect(kinds).toEqual(['incident.opened', 'incident.reminder', 'incident.reminder'])
})

test('a start that is refused while alerts are paused tells nobody', async () => {
  const { url: hook, told } = await alertWebhook()
  const dataFolder = await emptyFolder()
  const store = await storeIn(dataFolder)
  const now = Date.now()
  const paused = { streams: ['alert'], now, audit: audited('pause', now, 'alert') } as const
  await store.sending.pause({ ...paused, reason: 'a drill' })
  const env = { ALERT_WEBHOOK_URL: hook, HARDWARE_A_TOKEN: 'token-0123456789' }
  await expect(started({ dataFolder, services: ['api'], env })).rejects.toThrow()
  expect(told).toEqual([])
  await store.sending.resume({ ...paused, audit: audited('resume', now, 'alert') })
  await expect(started({ dataFolder, services: ['api'], env })).rejects.toThrow()
  expect(told).toHaveLength(1)
})

test.each<[service: string, why: string, fault: () => Promise<Partial<DaemonOptions>>, said: string[]]>([
  [
    'api',
    'a port that is taken',
    async () => ({ ports: { api: await takenPort() } }),
    ['The daemon does not start', 'The daemon has not been refused since'],
  ],
  [
    'api',
    'half a group',
    async () => ({ env: { HARDWARE_A_TOKEN: 'token-0123456789' } }),
    ['The environment is half-configured', 'The environment stopped no start since'],
  ],
  ['api', 'a store that is away', AWAY, ['The daemon does not start', 'Store (web) works again']],
  ['web', 'a store that is away', AWAY, ['The daemon does not start', 'Store (web) works again']],
])('a daemon of %s ends what was told of its refusal for %s', async (service, why, fault, said) => {
  const told: { readonly title: string; readonly text: string }[] = []
  const hook = await serveBodies((body, response) => {
    told.push(JSON.parse(body).data)
    response.end()
  })
  const time = standingClock(START)
  const options = { clock: time.clock, services: [service], dataFolder: await emptyFolder() }
  const start = (more: Partial<DaemonOptions> = {}) =>
    started({ ...options, ...more, env: { ALERT_WEBHOOK_URL: hook, ...more.env } })
  const { env, ...refused } = await fault()
  const site = { NEXT_PUBLIC_SITE_URL: 'https://kiln.example' }
  await expect(start({ ...refused, env: { ...env, ...site } })).rejects.toThrow()
  // Without its store nothing is served, and nobody can record that they look at it.
  const isDown = why === 'a store that is away'
  const parts = [/means: the platform is down/, /Acknowledge: .* --data \//, /Status page: https:/]
  expect(parts.map((part) => part.test(told[0]?.text ?? ''))).toEqual([isDown, !isDown, !isDown])
  await start()
  await minutes(12, time)
  const titles = () => told.map(({ title }) => title)
  await expect.poll(titles).toEqual(said.map((one) => `platformctl: ${one}`))
})

test.each([
  ['web', 0],
  ['api', 1],
])(
  'a daemon of %s without a schedule leaves %i of the people who never confirmed, each hour, also where another table cannot be cleared',
  async (service, left) => {
    const { clock, pass, waits } = standingClock(START)
    const dataFolder = await emptyFolder()
    const store = await storeIn(dataFolder)
    await askIn(store, 'ada', clock.now() - 31 * DAY_MS)
    const daemon = await started({ dataFolder, clock, services: [service] })
    const other = new Database(path.join(dataFolder, 'platform.sqlite'))
    other.exec('DROP TABLE mail_minute')
    other.close()
    for (let minutes = 0; minutes <= 62; minutes += 1) {
      await expect.poll(waits, { interval: 5 }).toBe(true)
      for (let steps = 0; steps < 12; steps += 1) pass(5000)
    }
    await expect.poll(async () => (await store.course.counts(clock.now())).byState.unconfirmed).toBe(left)
    expect(daemon.lines.filter(({ event }) => event === 'forgetting_failed')).toHaveLength(1 - left)
  },
)
