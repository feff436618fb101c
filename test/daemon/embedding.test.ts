import { once } from 'node:events'
import { readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LEASE_MS } from '../../src/core/delivery/lease.ts'
import { silentLog, systemClock } from '../../src/core/host.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import { openStore } from '../../src/core/store/open.ts'
import { type Log, openPlatform, type Platform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { testTransport } from '../support/test-transport.ts'

const json = { 'Content-Type': 'application/json' }
const post = (platform: Platform, target: string, body: unknown, headers: Record<string, string> = {}) =>
  platform.web.fetch(
    new Request(`http://web.example${target}`, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: JSON.stringify(body),
    }),
  )
const ada = async () => ({ kind: 'person', subject: 'ada', email: 'ada@example.com' }) as const

test('two platforms in one process share nothing', async () => {
  const open = async (limit: string, build: string) => {
    const platform = openPlatform({
      env: {
        STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
        RATE_LIMIT_PER_MINUTE: limit,
        BUILD_STAMP: build,
        EMAIL_DISPATCH_SECRET: `a-dispatch-secret-of-${build}-and-more-bytes`,
      },
    })
    onTestFinished(() => platform.close())
    return platform
  }
  const [first, second] = [await open('2', 'first'), await open('300', 'second')]
  await post(first, '/api/email/subscribe', { email: 'ada@example.com' })
  await post(first, '/api/email/subscribe', { email: 'eve@example.com' })
  expect((await post(first, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(429)
  expect((await post(second, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(202)
  expect([(await first.health('web')).build, (await second.health('web')).build]).toEqual(['first', 'second'])
  const withSecretOf = (build: string) => ({
    Authorization: `Bearer a-dispatch-secret-of-${build}-and-more-bytes`,
  })
  expect((await post(second, '/api/email/dispatch', {}, withSecretOf('first'))).status).toBe(401)
  expect((await post(second, '/api/email/dispatch', {}, withSecretOf('second'))).status).toBe(200)

  await first.close()
  expect((await post(second, '/api/email/subscribe', { email: 'grace@example.com' })).status).toBe(202)
  expect((await second.health('web', { deep: true })).probes.store).toMatchObject({ state: 'ok' })
})

test('parts of a host may be objects of classes, whose methods need their own object', async () => {
  class HostClock {
    #now = Date.parse('2026-05-01T00:00:00Z')
    now() {
      return this.#now
    }
    monotonic() {
      return this.#now
    }
    async sleep(ms: number) {
      this.#now += ms
    }
  }
  class HostMailer {
    readonly kind = 'host'
    readonly sent: Message[] = []
    async send(message: Message) {
      this.sent.push(message)
      return { kind: 'sent', id: message.messageId } as const
    }
    async verify() {}
    async close() {}
  }
  class HostLog {
    readonly events: string[] = []
    debug(event: string) {
      this.events.push(event)
    }
    info(event: string) {
      this.debug(event)
    }
    warn(event: string) {
      this.debug(event)
    }
    error(event: string) {
      this.debug(event)
    }
  }
  const [mailer, log] = [new HostMailer(), new HostLog()]
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}` },
    clock: Object.freeze(new HostClock()),
    mailer,
    log,
    identify: ada,
  })
  onTestFinished(() => platform.close())
  await platform.courses.enrol({ email: 'ada@example.com' })
  expect(await platform.dispatch()).toMatchObject({ sent: 1 })
  expect(await platform.health('web', { deep: true })).toMatchObject({ time: '2026-05-01T00:00:00.000Z' })
  expect((await post(platform, '/api/email', { template: 'welcome', inputs: {} })).status).toBe(200)
  expect((await platform.api.fetch(new Request('http://api.example/api/health'))).status).toBe(200)
  const slots = { exam: 'Gates', score: '87 %', resultUrl: 'https://www.example.com/' }
  const mail = { template: 'exam-passed', to: 'ada@example.com', slots, key: 'exam.1' }
  expect(await platform.sendEmail(mail)).toMatchObject({ sent: true })
  expect(mailer.sent.map(({ date }) => date.toISOString().slice(0, 10))).toEqual(Array(3).fill('2026-05-01'))
  expect(log.events).not.toContain('request_failed')
})

test('parts passed in by a host are used, and left open for the host to close', async () => {
  const store = await openStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'own.sqlite') })
  onTestFinished(() => store.close())
  const sent: Message[] = []
  const events: string[] = []
  let closed = 0
  const note: Log['info'] = (event) => void events.push(event)
  const platform = openPlatform({
    env: { STORE_URL: 'sqlite:/nowhere/that/is/opened.sqlite' },
    store,
    mailer: {
      kind: 'own',
      send: async (message) => {
        sent.push(message)
        return { kind: 'sent', id: 'own-1' }
      },
      verify: async () => {},
      close: async () => {
        closed += 1
      },
    },
    identify: ada,
    log: { debug: note, info: note, warn: note, error: note },
  })
  const answer = await post(platform, '/api/email', { template: 'welcome', inputs: {} })
  expect(await answer.json()).toMatchObject({ sent: true, queued: true })
  await expect.poll(() => sent.map(({ to }) => to.address)).toEqual(['ada@example.com'])
  expect(events).toContain('request')
  expect(await store.course.find('ada@example.com')).toBeUndefined()
  await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  await platform.courses.enrol({ email: 'bob@example.com' })
  expect(await platform.dispatch({ signal: AbortSignal.abort() })).toMatchObject({ sent: 0, remaining: 1 })
  expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'ok' })
  await Promise.all([platform.close(), platform.close()])
  expect(sent).toHaveLength(2)
  expect(await store.course.find('ada@example.com')).toMatchObject({ state: 'unconfirmed' })
  expect(closed).toBe(0)
})

test.each(['postgress://ada:canary@db/x', 'sqlite:'])(
  'a misspelt address of a store (%s) opens no other one: the answer is 503, and health fails',
  async (misspelt) => {
    const events: string[] = []
    const note: Log['info'] = (event) => void events.push(event)
    const log: Log = { debug: note, info: note, warn: note, error: note }
    const platform = openPlatform({ env: { STORE_URL: misspelt }, log })
    onTestFinished(() => platform.close())
    const answer = await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(await answer.json()).toMatchObject({ code: 'store_unavailable' })
    await expect(platform.dispatch()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await platform.health('web')).probes.store).toMatchObject({ state: 'failing' })
    expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
    expect(events).not.toContain('store_in_memory')
  },
)

test('a program without STORE_URL and without a log is warned that subscriptions end with it', async () => {
  const warned = once(process, 'warning')
  const platform = openPlatform({ env: {} })
  onTestFinished(() => platform.close())
  await platform.courses.enrol({ course: 'quantum', email: 'ada@example.com' })
  const [warning] = await warned
  expect(warning).toMatchObject({
    name: 'platformctl',
    code: 'store_in_memory',
    message: 'STORE_URL is not set: subscriptions are kept in memory and end with the process',
  })
})

test('a program without a log is told of wrong secrets once, however many come', async () => {
  const told: Error[] = []
  const note = (warning: Error) => void told.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const platform = openPlatform({ env: { EMAIL_DISPATCH_SECRET: 'a-secret-of-these-tests-only-0123456789' } })
  onTestFinished(() => platform.close())
  for (let n = 0; n < 5; n += 1) {
    const Authorization = `Bearer wrong-${n}`
    expect((await post(platform, '/api/email/dispatch', {}, { Authorization })).status).toBe(401)
  }
  // The process tells of warnings in a later turn.
  await new Promise(setImmediate)
  expect(told.filter((warning) => 'code' in warning && warning.code === 'secret_refused')).toHaveLength(1)
})

test('the store of a platform of another name is refused: the answer is 503, health fails, and the log names both', async () => {
  const env = { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}` }
  const kiln = { preset: 'base', name: 'Kiln School' } as const
  const email = { email: 'ada@example.com' }
  const first = openPlatform({ env, platform: kiln })
  expect((await first.health('web', { deep: true })).probes.store).toMatchObject({ state: 'ok' })
  await first.close()
  const errors: string[] = []
  const log = { ...silentLog, error: (_: string, message: string) => void errors.push(message) }
  const other = openPlatform({ env, log })
  onTestFinished(() => other.close())
  expect((await post(other, '/api/email/subscribe', email)).status).toBe(503)
  expect((await other.health('web')).probes.store).toMatchObject({
    state: 'failing',
    reason: expect.stringContaining('belongs to a platform of another name'),
  })
  expect(errors[0]).toMatch(/"Kiln School", and this is "platformctl"/)
})

test('a store that cannot be opened is answered with 503, and used once it can be opened', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  await writeFile(file, 'no database'.repeat(100))
  const said: string[] = []
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${file}`, MAILER_FROM: 'Course <course@example.com>' },
    mailer: testTransport(async ({ key }) => ({ kind: 'sent', id: key })),
    log: {
      ...silentLog,
      error: (event, message) => void (event === 'store_not_opened' && said.push(message)),
    },
  })
  onTestFinished(() => platform.close())
  const subscribe = () => post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  const refused = await subscribe()
  expect(said[0]).toMatch(/store\.sqlite is not an SQLite file/)
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'store_unavailable' }])
  const unsubscribed = await post(platform, '/api/email/unsubscribe?s=a.1&t=b', {})
  expect([unsubscribed.status, unsubscribed.headers.get('Retry-After')]).toEqual([503, '1'])
  await expect(platform.dispatch()).rejects.toMatchObject({ code: 'store_unavailable' })
  const slots = { startUrl: 'https://www.example.com/' }
  expect(await platform.mail.send('welcome', { to: 'ada@example.com', slots })).toMatchObject({
    sent: false,
    reason: expect.stringContaining('The store cannot be opened'),
  })
  await rm(file)
  expect((await subscribe()).status).toBe(202)
})

test('a PostgreSQL that refuses connections is answered with 503', async () => {
  const platform = openPlatform({ env: { STORE_URL: 'postgres://u:p@127.0.0.1:1/x' }, log: silentLog })
  onTestFinished(() => platform.close())
  const refused = await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'store_unavailable' }])
})

test.each([1.5, -1, Number.NaN])(
  'a dispatch with a limit of %s is refused as the caller’s mistake',
  async (limit) => {
    const platform = openPlatform({
      env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}` },
    })
    onTestFinished(() => platform.close())
    await expect(platform.dispatch({ limit })).rejects.toThrow(RangeError)
  },
)

test('a misspelt address of the job store fails its probe, and leaves the store alone', async () => {
  const platform = openPlatform({
    env: {
      STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`,
      JOB_STORE_URL: 'postgress://db/x',
    },
  })
  onTestFinished(() => platform.close())
  expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
  expect((await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(202)
})

test('a lesson that a crash left in hand is due again once the program’s own clock says so', async () => {
  const STORE_URL = `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`
  const { promise: hanging, resolve: release } = Promise.withResolvers<Outcome>()
  let now = Date.UTC(2030, 0, 1)
  const asked: string[] = []
  const open = (name: string, outcome: Promise<Outcome> | Outcome) => {
    const mailer = testTransport(async () => {
      asked.push(name)
      return outcome
    })
    const platform = openPlatform({ env: { STORE_URL }, mailer, clock: { ...systemClock, now: () => now } })
    onTestFinished(() => platform.close())
    return platform
  }
  const crashed = open('crashed', hanging)
  await crashed.courses.enrol({ email: 'ada@example.com' })
  const lost = crashed.dispatch()
  await expect.poll(() => asked).toEqual(['crashed'])
  const other = open('other', { kind: 'sent', id: 'one' })
  now += LEASE_MS - 1
  expect(await other.dispatch()).toMatchObject({ sent: 0 })
  now += 1
  expect(await other.dispatch()).toMatchObject({ sent: 1 })
  release({ kind: 'sent', id: 'one' })
  await lost
})

test('what was sent is counted once the platform is closed, however soon that is', async () => {
  const file = path.join(await emptyFolder(), 'store.sqlite')
  const mailer = testTransport(async () => ({ kind: 'sent', id: 'one' }))
  const platform = openPlatform({ env: { STORE_URL: `sqlite:${file}` }, mailer })
  await platform.courses.enrol({ email: 'ada@example.com' })
  await platform.dispatch()
  await platform.close()
  const store = await openStore({ kind: 'sqlite', file })
  onTestFinished(() => store.close())
  expect(await store.sending.days(0)).toMatchObject([{ kind: 'sent', source: 'test', count: 1 }])
})

test('after it was closed a platform answers 503 instead of failing', async () => {
  const platform = openPlatform({
    env: { STORE_URL: `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}` },
  })
  const subscribe = () => post(platform, '/api/email/subscribe', { email: 'ada@example.com' })
  expect((await subscribe()).status).toBe(202)
  await platform.close()
  await platform.close()
  const after = await subscribe()
  expect(after.status).toBe(503)
  expect(await after.json()).toMatchObject({ code: 'store_unavailable' })
})

test.each(['a text', undefined, null])(
  'a host that throws %j gets an answer of the platform',
  async (fault) => {
    const platform = openPlatform({ env: {}, identify: () => Promise.reject(fault) })
    onTestFinished(() => platform.close())
    const answer = await post(platform, '/api/email', { template: 'welcome', inputs: {} })
    expect([answer.status, await answer.json()]).toMatchObject([500, { code: 'internal' }])
  },
)

test('a platform that was closed before its first request opens nothing for a later one', async () => {
  const folder = await emptyFolder()
  const platform = openPlatform({ env: { STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}` } })
  await platform.close()
  expect((await post(platform, '/api/email/subscribe', { email: 'ada@example.com' })).status).toBe(503)
  expect(await readdir(folder)).toEqual([])
})
