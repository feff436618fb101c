import { renameSync } from 'node:fs'
import { readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HOUR_MS } from '../../src/core/durations.ts'
import { systemClock } from '../../src/core/host.ts'
import { LEASE_MS } from '../../src/core/lease.ts'
import type { Message, Outcome } from '../../src/core/mail/mailer.ts'
import { openPlatform, type PlatformOptions } from '../../src/daemon/index.ts'
import { bodyOf } from '../support/accounts.ts'
import { emptyFolder, folderWith } from '../support/folder.ts'
import { asking, keptLog, newStoreUrl } from '../support/opened.ts'
import { serve } from '../support/servers.ts'
import { openTestStore } from '../support/stores.ts'
import { keepingTransport, testTransport } from '../support/test-transport.ts'

/** A platform as a program opens it, closed with the test. */
function open(env: PlatformOptions['env'] = {}, options: Partial<Omit<PlatformOptions, 'platform'>> = {}) {
  const kept = keptLog()
  const platform = openPlatform({ env, log: kept.log, ...options })
  onTestFinished(() => platform.close())
  const asked = asking(platform)
  const subscribe = (email = 'ada@example.com') => asked.post('/api/email/subscribe', { email })
  return { platform, ...kept, ...asked, subscribe }
}
const ada = async () => ({ kind: 'person', subject: 'ada', email: 'ada@example.com' }) as const
const WELCOME = { template: 'welcome', inputs: {} }

test('two platforms in one process share nothing', async () => {
  const secretOf = (build: string) => `a-dispatch-secret-of-${build}-and-more-bytes`
  const openBuild = async (RATE_LIMIT_PER_MINUTE: string, BUILD_STAMP: string) =>
    open({
      STORE_URL: await newStoreUrl(),
      EMAIL_DISPATCH_SECRET: secretOf(BUILD_STAMP),
      RATE_LIMIT_PER_MINUTE,
      BUILD_STAMP,
    })
  const [first, second] = [await openBuild('2', 'first'), await openBuild('300', 'second')]
  await first.subscribe()
  await first.subscribe('eve@example.com')
  expect((await first.subscribe()).status).toBe(429)
  expect((await second.subscribe()).status).toBe(202)
  const builds = [first, second].map(async ({ platform }) => (await platform.health('web')).build)
  expect(await Promise.all(builds)).toEqual(['first', 'second'])
  const dispatch = (build: string) =>
    second.post('/api/email/dispatch', {}, { Authorization: `Bearer ${secretOf(build)}` })
  expect((await dispatch('first')).status).toBe(401)
  expect((await dispatch('second')).status).toBe(200)
  await first.platform.close()
  expect((await second.subscribe('grace@example.com')).status).toBe(202)
  expect((await second.platform.health('web', { deep: true })).probes.store).toMatchObject({ state: 'ok' })
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
  const clock = Object.freeze(new HostClock())
  const { platform, ask, post } = open(
    { STORE_URL: await newStoreUrl() },
    { clock, mailer, log, identify: ada },
  )
  await platform.courses.enrol({ email: 'ada@example.com' })
  expect(await platform.dispatch()).toMatchObject({ sent: 1 })
  expect(await platform.health('web', { deep: true })).toMatchObject({ time: '2026-05-01T00:00:00.000Z' })
  expect((await post('/api/email', WELCOME)).status).toBe(200)
  expect((await ask('/api/health', { service: 'api' })).status).toBe(200)
  const slots = { exam: 'Gates', score: '87 %', resultUrl: 'https://www.example.com/' }
  const mail = { template: 'exam-passed', to: 'ada@example.com', slots, key: 'exam.1' }
  expect(await platform.sendEmail(mail)).toMatchObject({ sent: true })
  expect(mailer.sent.map(({ date }) => date.toISOString().slice(0, 10))).toEqual(Array(3).fill('2026-05-01'))
  expect(log.events).not.toContain('request_failed')
})

test.each([
  ['throws', () => JSON.parse('<html>')],
  ['rejects', async () => JSON.parse('<html>')],
])('a log of a host that %s changes no answer, and ends no program', async (_, tell) => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const mailer = testTransport(async ({ key }) => ({ kind: 'sent', id: key }))
  const { platform, subscribe, ask } = open({ STORE_URL: await newStoreUrl() }, { mailer, log })
  expect((await ask('/api/health')).status).toBe(200)
  expect((await subscribe()).status).toBe(202)
  await platform.courses.enrol({ email: 'bob@example.com' })
  expect(await platform.dispatch()).toMatchObject({ sent: 1 })
  const welcome = { to: 'ada@example.com', slots: { startUrl: 'https://www.example.com/' }, durable: true }
  expect(await platform.mail.send('welcome', welcome)).toMatchObject({ sent: true })
  await platform.close()
  expect(unhandled).toEqual([])
})

test('parts passed in by a host are used, and left open for the host to close', async () => {
  const store = await openTestStore({ kind: 'sqlite', file: path.join(await emptyFolder(), 'own.sqlite') })
  const sent: Message[] = []
  let closed = 0
  const mailer = testTransport(async (message) => {
    sent.push(message)
    return { kind: 'sent', id: 'own-1' }
  })
  const close = async () => {
    closed += 1
  }
  const { platform, post, subscribe, told } = open(
    { STORE_URL: 'sqlite:/nowhere/that/is/opened.sqlite' },
    { store, mailer: { ...mailer, close }, identify: ada },
  )
  expect(await bodyOf(await post('/api/email', WELCOME))).toMatchObject({ sent: true, queued: true })
  await expect.poll(() => sent.map(({ to }) => to.address)).toEqual(['ada@example.com'])
  expect(told('request')).toHaveLength(1)
  expect(await store.course.find('ada@example.com')).toBeUndefined()
  await subscribe()
  await platform.courses.enrol({ email: 'bob@example.com' })
  expect(await platform.dispatch({ signal: AbortSignal.abort() })).toMatchObject({ sent: 0, remaining: 1 })
  expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'ok' })
  await Promise.all([platform.close(), platform.close()])
  expect(sent).toHaveLength(2)
  expect(await store.course.find('ada@example.com')).toMatchObject({ state: 'unconfirmed' })
  expect(closed).toBe(0)
})

test.each(['postgress://ada:canary@db/x', 'sqlite:', 'postgres://u:p@127.0.0.1:1/x'])(
  'a store that is misspelt or refuses (%s) is replaced by no other: the answer is 503, and health fails',
  async (STORE_URL) => {
    const { platform, subscribe, told } = open({ STORE_URL })
    const answer = await subscribe()
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await bodyOf(answer)).toMatchObject({ code: 'store_unavailable' })
    await expect(platform.dispatch()).rejects.toMatchObject({ code: 'store_unavailable' })
    expect((await platform.health('web')).probes.store).toMatchObject({ state: 'failing' })
    expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
    expect(told('store_in_memory')).toEqual([])
  },
)

test('a misspelt address of the job store fails its probe, and leaves the store alone', async () => {
  const { platform, subscribe } = open({ STORE_URL: await newStoreUrl(), JOB_STORE_URL: 'postgress://db/x' })
  expect((await platform.health('api')).probes.job_store).toMatchObject({ state: 'failing' })
  expect((await subscribe()).status).toBe(202)
})

test.each(['no other store', 'a store of jobs'])(
  'a program without a log, with %s, is warned once that subscriptions end with it, of wrong secrets, however many come, and of faults of its own',
  async (other) => {
    const told: (Error & { readonly code?: string })[] = []
    const note = (warning: Error) => void told.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const platform = openPlatform({
      env: {
        EMAIL_DISPATCH_SECRET: 'a-secret-of-these-tests-only-0123456789',
        ...(other === 'a store of jobs' && { JOB_STORE_URL: await newStoreUrl() }),
      },
      identify: () => Promise.reject(new TypeError('no')),
    })
    onTestFinished(() => platform.close())
    await platform.courses.enrol({ course: 'quantum', email: 'ada@example.com' })
    const { post } = asking(platform)
    for (let n = 0; n < 5; n += 1) {
      const Authorization = `Bearer wrong-${n}`
      expect((await post('/api/email/dispatch', {}, { Authorization })).status).toBe(401)
    }
    for (const _ of 'twice') expect((await post('/api/email', WELCOME)).status).toBe(503)
    // The process tells of warnings in a later turn.
    await new Promise(setImmediate)
    for (const event of ['secret_refused', 'identify_fault'])
      expect(told.filter(({ code }) => code === event)).toHaveLength(1)
    expect(told.filter(({ code }) => code === 'store_in_memory')).toMatchObject([
      {
        name: 'platformctl',
        message: 'STORE_URL is not set: subscriptions are kept in memory and end with the process',
      },
    ])
  },
)

test('the store of a platform of another name is refused: the answer is 503, health fails, and the log names both', async () => {
  const env = { STORE_URL: await newStoreUrl() }
  const first = openPlatform({ env, platform: { preset: 'base', name: 'Kiln School' } as const })
  expect((await first.health('web', { deep: true })).probes.store).toMatchObject({ state: 'ok' })
  await first.close()
  const { platform, subscribe, lines } = open(env)
  expect((await subscribe()).status).toBe(503)
  expect((await platform.health('web')).probes.store).toMatchObject({
    state: 'failing',
    reason: expect.stringContaining('belongs to a platform of another name'),
  })
  expect(lines.find(({ level }) => level === 'error')?.message).toMatch(
    /"Kiln School", and this is "platformctl"/,
  )
})

test('a store that cannot be opened is answered with 503, and used once it can be opened', async () => {
  const STORE_URL = await newStoreUrl()
  const file = STORE_URL.replace('sqlite:', '')
  await writeFile(file, 'no database'.repeat(100))
  const mailer = testTransport(async ({ key }) => ({ kind: 'sent', id: key }))
  const it = open({ STORE_URL, MAILER_FROM: 'Course <course@example.com>' }, { mailer })
  const refused = await it.subscribe()
  expect(it.told('store_not_opened')[0]?.message).toMatch(/store\.sqlite is not an SQLite file/)
  expect([refused.status, await bodyOf(refused)]).toMatchObject([503, { code: 'store_unavailable' }])
  const unsubscribed = await it.post('/api/email/unsubscribe?s=a.1&t=b', {})
  expect([unsubscribed.status, unsubscribed.headers.get('Retry-After')]).toEqual([503, '1'])
  const slots = { startUrl: 'https://www.example.com/' }
  expect(await it.platform.mail.send('welcome', { to: 'ada@example.com', slots })).toMatchObject({
    sent: false,
    reason: expect.stringContaining('The store cannot be opened'),
  })
  await rm(file)
  expect((await it.subscribe()).status).toBe(202)
})

test.each([1.5, -1, Number.NaN])(
  'a dispatch with a limit of %s is refused as the caller’s mistake',
  async (limit) => {
    const { platform } = open({ STORE_URL: await newStoreUrl() })
    await expect(platform.dispatch({ limit })).rejects.toThrow(RangeError)
  },
)

test('a lesson that a crash left in hand is due again once the program’s own clock says so', async () => {
  const STORE_URL = await newStoreUrl()
  const { promise: hanging, resolve: release } = Promise.withResolvers<Outcome>()
  let now = Date.UTC(2030, 0, 1)
  const asked: string[] = []
  const openAs = (name: string, outcome: Promise<Outcome> | Outcome) => {
    const mailer = testTransport(async () => {
      asked.push(name)
      return outcome
    })
    return open({ STORE_URL }, { mailer, clock: { ...systemClock, now: () => now } }).platform
  }
  const crashed = openAs('crashed', hanging)
  await crashed.courses.enrol({ email: 'ada@example.com' })
  const lost = crashed.dispatch()
  await expect.poll(() => asked).toEqual(['crashed'])
  const other = openAs('other', { kind: 'sent', id: 'one' })
  now += LEASE_MS - 1
  expect(await other.dispatch()).toMatchObject({ sent: 0 })
  now += 1
  expect(await other.dispatch()).toMatchObject({ sent: 1 })
  release({ kind: 'sent', id: 'one' })
  await lost
})

test('a dispatch call also waits for queued mails, because no process may stay that could send them later', async () => {
  const env = { STORE_URL: await newStoreUrl() }
  let now = Date.UTC(2030, 0, 1)
  const clock = { ...systemClock, now: () => now }
  const refused = Promise.withResolvers<void>()
  const busy = testTransport(async () => {
    refused.resolve()
    return { kind: 'transient', scope: 'connection', reason: 'busy' }
  })
  const first = open(env, { mailer: busy, clock })
  await first.subscribe()
  await refused.promise
  await first.platform.close()
  now += HOUR_MS
  const sent: string[] = []
  const mailer = testTransport(async ({ to }) => {
    // No sooner than the lessons' part of the call is over.
    await expect.poll(() => later.told('dispatched')).toHaveLength(1)
    for (let turn = 0; turn < 50; turn += 1) await nextTurn()
    sent.push(to.address)
    return { kind: 'sent', id: 'one' }
  })
  const later = open(env, { mailer, clock })
  expect(await later.platform.dispatch()).toMatchObject({ sent: 0 })
  expect(sent).toEqual(['ada@example.com'])
})

test('an unsubscribe of one click works where the host has read the body of its request before', async () => {
  const messages: Message[] = []
  const email = 'ada@example.com'
  const { platform } = open({ STORE_URL: await newStoreUrl() }, { mailer: keepingTransport(messages) })
  await platform.courses.enrol({ email })
  await platform.dispatch()
  const link = /<(.*)>/.exec(messages[0]?.headers['List-Unsubscribe'] ?? '')?.[1] ?? ''
  const body = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' })
  const request = new Request(link, { method: 'POST', body })
  await request.text()
  // A form of the page may say the opposite, as that the lessons go on in another language.
  const headers = { origin: new URL(link).origin }
  const form = new Request(link, { method: 'POST', headers, body: new URLSearchParams({ preferences: '1' }) })
  await form.text()
  expect((await platform.web.fetch(form)).status).toBe(400)
  expect(await platform.courses.list({ email })).toMatchObject([{ state: 'confirmed' }])
  expect((await platform.web.fetch(request)).status).toBe(200)
  expect(await platform.courses.list({ email })).toMatchObject([{ state: 'unsubscribed' }])
})

test('a dispatch call whose caller gives up waits for queued mails no longer', async () => {
  const begun = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const slow = testTransport(async () => {
    begun.resolve()
    await answer.promise
    return { kind: 'sent', id: 'one' }
  })
  const { platform, subscribe, told } = open({ STORE_URL: await newStoreUrl() }, { mailer: slow })
  await subscribe()
  await begun.promise
  const caller = new AbortController()
  let answered: unknown
  const dispatched = platform.dispatch({ signal: caller.signal }).then((result) => {
    answered = result
  })
  await expect.poll(() => told('dispatched')).toHaveLength(1)
  expect(answered).toBeUndefined()
  caller.abort()
  await expect.poll(() => answered, { timeout: 5000 }).toMatchObject({ sent: 0 })
  answer.resolve()
  await dispatched
})

test('what was sent is counted once the platform is closed, however soon that is', async () => {
  const STORE_URL = await newStoreUrl()
  const mailer = testTransport(async () => ({ kind: 'sent', id: 'one' }))
  const { platform } = open({ STORE_URL }, { mailer })
  await platform.courses.enrol({ email: 'ada@example.com' })
  await platform.dispatch()
  await platform.close()
  const store = await openTestStore({ kind: 'sqlite', file: STORE_URL.replace('sqlite:', '') })
  expect(await store.sending.days(0)).toMatchObject([{ kind: 'sent', source: 'test', count: 1 }])
})

test('a mail that is sent at once while the platform is closed is waited for and recorded, so its key sends no second one', async () => {
  const env = { STORE_URL: await newStoreUrl() }
  const slots = { exam: 'Gates', score: '87 %', resultUrl: 'https://www.example.com/' }
  const mail = { to: 'ada@example.com', slots, key: 'exam.1' }
  const handed = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<Outcome>()
  const slow = testTransport(() => {
    handed.resolve()
    return answered.promise
  })
  const first = open(env, { mailer: slow }).platform
  const sending = first.mail.send('exam-passed', mail)
  await handed.promise
  let isClosed = false
  const closing = first.close().then(() => {
    isClosed = true
  })
  for (let turn = 0; turn < 50; turn += 1) await nextTurn()
  expect(isClosed).toBe(false)
  answered.resolve({ kind: 'sent', id: 'one' })
  await closing
  expect(await sending).toEqual({ sent: true, id: 'one' })
  const again = open(env, { mailer: testTransport(async () => ({ kind: 'sent', id: 'two' })) })
  expect(await again.platform.mail.send('exam-passed', mail)).toEqual({ sent: true, id: 'one' })
})

test('a mail that forty requests ask for at once holds up none of them, and is waited for by the close', async () => {
  const handed = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<Outcome>()
  const mailer = testTransport(() => {
    handed.resolve()
    return answered.promise
  })
  let asked = 0
  const identify = () => {
    asked += 1
    return ada()
  }
  const { platform, post } = open({}, { mailer, identify })
  const headers = { Authorization: 'Bearer of-ada' }
  const sending = Array.from({ length: 40 }, () => post('/api/email', WELCOME, headers))
  await handed.promise
  await expect.poll(() => asked).toBe(40)
  let isClosed = false
  const closing = platform.close().then(() => {
    isClosed = true
  })
  for (let turn = 0; turn < 50; turn += 1) await nextTurn()
  expect(isClosed).toBe(false)
  answered.resolve({ kind: 'sent', id: 'one' })
  await closing
  for (const answer of await Promise.all(sending))
    expect(await bodyOf(answer)).toEqual({ sent: true, id: 'one' })
})

test('a mail that is sent in the moment of the close is sent and recorded', async () => {
  const env = { STORE_URL: await newStoreUrl() }
  const mailer = testTransport(async () => ({ kind: 'sent', id: 'one' }))
  const { platform } = open(env, { mailer })
  const slots = { startUrl: 'https://www.example.com/' }
  const sending = platform.mail.send('welcome', { to: 'ada@example.com', slots })
  await platform.close()
  expect(await sending).toEqual({ sent: true, id: 'one' })
})

test('mail by a transport of the program’s own leaves from MAILER_FROM, which is all that it needs of the group', async () => {
  const messages: Message[] = []
  const mailer = testTransport(async (message) => {
    messages.push(message)
    return { kind: 'sent', id: 'one' }
  })
  const env = { MAILER_FROM: 'School <hello@school.example>', MAILER_REPLY_TO: 'help@school.example' }
  const { platform } = open(env, { mailer })
  const slots = { startUrl: 'https://www.example.com/' }
  const mail = { to: 'ada@example.com', slots }
  expect(await platform.mail.send('welcome', mail)).toMatchObject({ sent: true })
  // A sender of its own changes nothing about where answers go.
  await platform.mail.send('welcome', { ...mail, from: 'desk@school.example' })
  expect(messages.pop()).toMatchObject({
    ...{ from: { address: 'desk@school.example' }, replyTo: { address: 'help@school.example' } },
  })
  expect(messages).toMatchObject([
    {
      from: { name: 'School', address: 'hello@school.example' },
      replyTo: { address: 'help@school.example' },
      messageId: expect.stringMatching(/@school\.example/),
    },
  ])
  for (const deep of [true, false])
    expect((await platform.health('web', { deep })).probes.mail?.state).toBe('ok')
})

test('a transport of the program’s own takes the place of the configured one, and what it says is passed on without secrets and addresses', async () => {
  const reason = '401 for the key key-of-the-provider, to bob@example.com'
  const mailer = testTransport(async () => ({ kind: 'transient', scope: 'message', reason }))
  const provider = { MAILER_API_URL: 'http://127.0.0.1:9', MAILER_FROM: 'course@example.com' }
  const { platform } = open({ MAILER_API_KEY: 'key-of-the-provider', ...provider }, { mailer })
  const mail = { to: 'bob@example.com', slots: { startUrl: 'https://www.example.com/' } }
  const answer = await platform.mail.send('welcome', mail)
  expect(answer).toEqual({ sent: false, reason: '401 for the key [secret], to [address]' })
})

test('after it was closed a platform answers 503 instead of failing, and opens nothing', async () => {
  const used = open({ STORE_URL: await newStoreUrl() })
  expect((await used.subscribe()).status).toBe(202)
  await used.platform.close()
  await used.platform.close()
  const after = await used.subscribe()
  expect([after.status, await bodyOf(after)]).toMatchObject([503, { code: 'store_unavailable' }])
  const folder = await emptyFolder()
  const unused = open({ STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}` })
  await unused.platform.close()
  expect((await unused.subscribe()).status).toBe(503)
  expect(await readdir(folder)).toEqual([])
})

test.each(['a text', undefined, null])(
  'a host’s own store that rejects with %j gets an answer of the platform',
  async (fault) => {
    const store = await openTestStore(undefined)
    const confirm = () => Promise.reject(fault)
    const { ask } = open({}, { store: { ...store, course: { ...store.course, confirm } } })
    const answer = await ask(`/api/email/confirm?token=${'a'.repeat(32)}`)
    expect([answer.status, await bodyOf(answer)]).toMatchObject([500, { code: 'internal' }])
  },
)

test.each<[string, string, () => Promise<undefined>]>([
  ['throws', 'SyntaxError', () => JSON.parse('<html>')],
  ['rejects', 'TypeError', () => Promise.reject(new TypeError('fetch failed'))],
  ['rejects with no error', 'unknown', () => Promise.reject(undefined)],
  ['never ends', 'TimeoutError', () => new Promise(() => {})],
])(
  'a host’s identify that %s answers 503 within ten seconds, and the log says why: %s',
  async (_, fault, answerOf) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const asked = Promise.withResolvers<void>()
    const identify = () => {
      asked.resolve()
      return answerOf()
    }
    const { post, told, lines } = open({}, { identify })
    const answering = post('/api/email', WELCOME)
    await asked.promise
    await vi.advanceTimersByTimeAsync(10_000)
    const answer = await answering
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '60'])
    expect(await bodyOf(answer)).toMatchObject({ code: 'unavailable' })
    expect(told('identify_fault')).toMatchObject([{ level: 'error', fault }])
    expect(JSON.stringify(lines)).not.toMatch(/html|fetch failed/)
  },
)

test.each<unknown>([{ kind: 'person', subject: '', email: 'ada@example.com' }, { kind: 'robot' }, {}, null])(
  'the identity %j of a host is nobody',
  async (identity) => {
    // A host without types may give anything.
    const { post } = open({}, { identify: async () => identity as undefined })
    expect((await post('/api/email', WELCOME)).status).toBe(401)
  },
)

test.each<unknown>([undefined, {}, { env: null }])(
  'opening with %j names the option that is missing',
  (options) => {
    expect(() => openPlatform(options as Parameters<typeof openPlatform>[0])).toThrow(
      'openPlatform needs the option env',
    )
  },
)

test('a service may be named mail: its handler stands beside the mails that code sends; and web may have another path of health', async () => {
  const services = { web: { health: '/up' }, mail: { port: 4000 } }
  const platform = openPlatform({ env: {}, platform: { preset: 'base', services } as const })
  onTestFinished(() => platform.close())
  const answer = await platform.mail.fetch(new Request('http://mail.example/api/health'))
  expect([answer.status, await bodyOf(answer)]).toMatchObject([200, { service: 'mail' }])
  const own = await platform.web.fetch(new Request('http://web.example/up'))
  expect([own.status, await bodyOf(own)]).toMatchObject([200, { service: 'web' }])
  // Its 503 is no fault of its own, which the rules about requests know by its route.
  const local = { incoming: { rawHeaders: [], socket: { remoteAddress: '127.0.0.1' } } }
  const metrics = await platform.web.fetch(new Request('http://web.example/metrics'), local)
  expect(await metrics.text()).toContain('route="/up (health)",status="200"')
  const mail = { to: 'ada@example.com', slots: { startUrl: 'https://www.example.com/' } }
  expect(await platform.mail.send('welcome', mail)).toMatchObject({ sent: false })
})

test('without mail configured a durable mail is refused with the reason, and waits for no mailer that comes later', async () => {
  const env = { STORE_URL: await newStoreUrl() }
  const slots = { startUrl: 'https://www.example.com/' }
  const mail = { to: 'ada@example.com', slots, key: 'welcome.1', durable: true }
  const refused = await open(env).platform.mail.send('welcome', mail)
  expect(refused).toEqual({ sent: false, reason: 'mail is not configured' })
  const messages: Message[] = []
  await open(env, { mailer: keepingTransport(messages) }).platform.dispatch()
  expect(messages).toEqual([])
})

test('a platform with a folder of its own makes its mails when it is opened: what is wrong is said then, with the file', async () => {
  const folder = await folderWith({ 'kiln/1-clay.md': '# No subject' })
  const { log, told } = keptLog()
  const platform = { preset: 'base', folder, courses: { kiln: { lessons: 'kiln' } } } as const
  const opened = openPlatform({ env: {}, log, platform, mailer: keepingTransport([]) })
  onTestFinished(() => opened.close())
  await expect.poll(() => told('mails_not_compiled')).toHaveLength(1)
  expect(told('mails_not_compiled')[0]?.message).toContain(`${path.join(folder, 'kiln', '1-clay.md')}:1: `)
})

test('a folder of lessons that is renamed before the first mail is named with that mail', async () => {
  const folder = await folderWith({ 'kiln/de/1-clay.md': '', 'kiln/1-clay.md': '' })
  const platform = { preset: 'base', folder, courses: { kiln: { lessons: 'kiln' } } } as const
  const opened = openPlatform({ env: {}, platform, mailer: keepingTransport([]) })
  onTestFinished(() => opened.close())
  renameSync(path.join(folder, 'kiln/de'), path.join(folder, 'kiln/nl'))
  const mail = { to: 'ada@example.com', slots: { startUrl: 'https://www.example.com/' } }
  expect(await opened.mail.send('welcome', mail)).toEqual({
    sent: false,
    reason: expect.stringContaining(path.join(folder, 'kiln')),
  })
})

test('once a platform is closed its provider of mail is asked no more', async () => {
  let asked = 0
  const provider = await serve((_, response) => {
    asked += 1
    response.end('{"id":"one"}')
  })
  const env = { MAILER_API_KEY: 'key', MAILER_API_URL: provider, MAILER_FROM: 'course@example.com' }
  const { platform } = open(env)
  const mail = { to: 'ada@example.com', slots: { startUrl: 'https://www.example.com/' } }
  expect(await platform.mail.send('welcome', mail)).toMatchObject({ sent: true })
  await platform.close()
  expect(await platform.mail.send('welcome', mail)).toMatchObject({ sent: false })
  expect(asked).toBe(1)
})

test('a service that is not served has no health', async () => {
  await expect(open().platform.health('kiln')).rejects.toThrow('does not serve kiln')
})
