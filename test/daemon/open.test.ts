import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { definePlatform } from '../../src/config.ts'
import { PROGRAM } from '../../src/core/audit.ts'
import { suppressionHash } from '../../src/core/course/links.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/core/durations.ts'
import { type Log, systemClock, systemRandom } from '../../src/core/host.ts'
import { suppressAddress } from '../../src/core/mail/feedback/suppressions.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { openStore } from '../../src/core/store/open.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { openLearning } from '../support/learning.ts'
import { openTestStore } from '../support/stores.ts'
import { testTransport } from '../support/test-transport.ts'

const subscribe = (email: string) =>
  new Request('http://web.example/api/email/subscribe', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ email }),
  })

test('a used-up budget of confirmations is told again only after an hour in which it was not asked for', async () => {
  const events: string[] = []
  const note: Log['info'] = (event) => void events.push(event)
  const time = { monotonic: 0 }
  const platform = openLearning({
    env: {
      EMAIL_CONFIRMATIONS_PER_DAY: '1',
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_FROM: 'course@example.com',
      MAILER_API_URL: 'http://127.0.0.1:9',
    },
    mailer: testTransport(async () => ({ kind: 'sent', id: '1' })),
    clock: { ...systemClock, monotonic: () => time.monotonic },
    log: { debug: note, info: note, warn: note, error: note },
  })
  onTestFinished(() => platform.close())
  const told = () => events.filter((event) => event === 'confirmations_exhausted').length
  const mail = async () => (await platform.health('web')).probes.mail?.state
  let n = 0
  const ask = async (later: number) => {
    time.monotonic += later
    n += 1
    await platform.web.fetch(subscribe(`person-${n}@example.com`))
    return told()
  }
  expect(await ask(0)).toBe(0)
  expect(await mail()).toBe('ok')
  expect(await ask(0)).toBe(1)
  expect(await mail()).toBe('degraded')
  expect(await ask(HOUR_MS - 1)).toBe(1)
  expect(await ask(HOUR_MS - 1)).toBe(1)
  time.monotonic += HOUR_MS
  expect(await mail()).toBe('ok')
  expect(await ask(0)).toBe(2)
})

test('nothing is kept of an address that a build before erased under one of the secrets of links', async () => {
  const [before, now] = ['a-link-secret-of-before-in-32-bytes', 'a-link-secret-of-today-in-32-bytes']
  const store = await openTestStore(undefined)
  const platform = openLearning({ env: { EMAIL_LINK_SECRET: `${now},${before}` }, store })
  onTestFinished(() => platform.close())
  const list = await platform.mailService.suppressionList()
  const by = { operator: PROGRAM, clock: systemClock, random: systemRandom }
  for (const [name, key] of Object.entries({ ada: before, bob: now })) {
    const identity = `${name}@example.com`
    const suppressionHashOf = suppressionHash(key, identity)
    await store.course.erase({
      ...{ identity, spellings: [identity], recipients: [], suppressionHash: suppressionHashOf, now: 1 },
    })
    expect(await suppressAddress(list, { ...by, identity, cause: 'manual', reason: 'asked' })).toBe('erased')
  }
})

test('why the provider refuses the sender is known until a message goes through, and no message stays in flight', async () => {
  const outcomes: Outcome[] = [
    { kind: 'transient', scope: 'sender', reason: 'the key is refused' },
    { kind: 'transient', scope: 'message', reason: 'not now' },
    { kind: 'permanent', hardBounce: false, reason: 'too large' },
    { kind: 'sent', id: '1' },
    { kind: 'transient', scope: 'connection', reason: 'busy' },
  ]
  const inFlight: number[] = []
  const platform = openLearning({
    env: {},
    mailer: testTransport(async () => {
      inFlight.push(platform.mailService.sending())
      const outcome = outcomes.shift()
      if (outcome === undefined) throw new TypeError('a fault of the host’s own')
      return outcome
    }),
  })
  onTestFinished(() => platform.close())
  const refused: (string | false | undefined)[] = []
  for (let n = 0; n < 6; n += 1) {
    await platform.sendEmail({
      template: 'welcome',
      to: `person-${n}@example.com`,
      slots: { startUrl: 'https://www.example.com/' },
      about: String(n),
    })
    refused.push(platform.mailService.refused())
    expect(platform.mailService.sending()).toBe(0)
  }
  const refusal = 'the key is refused'
  expect(refused).toEqual([refusal, refusal, refusal, false, false, false])
  expect(inFlight).toEqual([1, 1, 1, 1, 1, 1])
})

test('a provider that takes no message for three people in a row refuses, whatever it says; a dead address counts for nothing', async () => {
  const no: Outcome = { kind: 'transient', scope: 'message', reason: 'the mail API answered 503' }
  const unclear: Outcome = { kind: 'unknown', reason: 'the connection broke' }
  const never: Outcome = { kind: 'permanent', hardBounce: false, reason: 'the mail API answered 418' }
  const dead: Outcome = { kind: 'permanent', hardBounce: true, reason: 'no such mailbox' }
  const busy: Outcome = { kind: 'transient', scope: 'connection', reason: 'slow down' }
  const refusal: Outcome = { ...busy, scope: 'sender', isUnclear: true, reason: 'the mail API answered 422' }
  let next: Outcome = no
  const platform = openLearning({ env: {}, mailer: testTransport(async () => next) })
  onTestFinished(() => platform.close())
  let about = 0
  const after = async (name: string, outcome: Outcome) => {
    next = outcome
    about += 1
    const slots = { startUrl: 'https://www.example.com/' }
    const to = `${name}@example.com`
    await platform.sendEmail({ template: 'welcome', to, slots, about: String(about) })
    return platform.mailService.refused()
  }
  expect(await after('ada', no)).toBeUndefined()
  expect(await after('ada', no)).toBeUndefined()
  expect(await after('bob', never)).toBeUndefined()
  expect(await after('bob', no)).toBeUndefined()
  expect(await after('cyd', dead)).toBeUndefined()
  expect(await after('dan', busy)).toBeUndefined()
  expect(await after('eve', { kind: 'sent', id: '1' })).toBe(false)
  expect(await after('ada', no)).toBe(false)
  expect(await after('bob', unclear)).toBe(false)
  expect(await after('fay', never)).toBe(never.reason)
  expect(await after('gus', { kind: 'sent', id: '2' })).toBe(false)
  // Perhaps for the recipient: an address that a visitor made up is no refusal of everybody.
  for (let attempt = 0; attempt < 9; attempt += 1) expect(await after('ada', refusal)).toBe(false)
  expect(await after('bob', no)).toBe(false)
  expect(await after('cyd', refusal)).toBe(refusal.reason)
})

test('a provider that lets nothing through for ten minutes refuses, whatever it says; one that is busy for a moment does not', async () => {
  let next: Outcome = {
    kind: 'transient',
    scope: 'connection',
    reason: 'the mail provider limits our rate (429)',
  }
  let now = 0
  const platform = openLearning({
    env: {},
    clock: { ...systemClock, monotonic: () => now },
    mailer: testTransport(async () => next),
  })
  onTestFinished(() => platform.close())
  const { mailService } = platform
  let about = 0
  const at = async (minutes: number) => {
    now = minutes * MINUTE_MS
    about += 1
    const slots = { startUrl: 'https://www.example.com/' }
    await platform.sendEmail({ template: 'welcome', to: 'ada@example.com', slots, about: String(about) })
    return mailService.refused()
  }
  expect([await at(0), await at(0), await at(0), await at(9)]).toEqual(Array(4).fill(undefined))
  next = { kind: 'sent', id: '1' }
  expect(await at(10)).toBe(false)
  next = { kind: 'transient', scope: 'connection', reason: 'the mail provider’s address is wrong (404)' }
  expect([await at(11), await at(31)]).toEqual([false, false])
  expect(await at(32)).toBe('the mail provider’s address is wrong (404)')
  next = { kind: 'sent', id: '2' }
  expect(await at(33)).toBe(false)
})

test('mails that cannot be composed are no refusal, however long nothing else is sent', async () => {
  let now = 0
  const clock = { ...systemClock, monotonic: () => now }
  const transport = testTransport(async () => ({ kind: 'sent', id: '1' }))
  const platform = openLearning({ env: {}, clock, mailer: transport })
  onTestFinished(() => platform.close())
  const { mailer, refused } = platform.mailService
  const to = { name: undefined, address: 'ada@example.com' }
  for (const about of ['1', '2', '3', '4']) {
    const mail = { template: 'no-such-mail', slots: {}, to, about, date: new Date(0) }
    expect((await mailer.send(mail)).kind).toBe('not_composed')
    expect(refused()).toBeUndefined()
    now += 20 * MINUTE_MS
  }
})

test('the answer to a program names the file among its mails that does not compile', async () => {
  const mails = await emptyFolder()
  await writeFile(
    path.join(mails, 'hello.md'),
    '---\nsubject: Hello\nslots:\n  name: text\n---\nHello {{name}}\n',
  )
  const platform = openPlatform({
    env: {},
    mailer: testTransport(async () => ({ kind: 'sent', id: '1' })),
    platform: definePlatform({ preset: 'base', name: 'Kiln', mails }),
  })
  onTestFinished(() => platform.close())
  const sent = platform.mail.send('hello', { to: 'ada@example.com', slots: { name: 'Ada' } })
  expect(await sent).toEqual({ sent: false, reason: expect.stringMatching(/hello\.md:4: the slot name/) })
})

test('where mail is not configured nothing refuses it', async () => {
  const platform = openLearning({ env: {} })
  onTestFinished(() => platform.close())
  expect(platform.mailService.refused()).toBe(false)
})

test('of two messages in flight one is left when the other is answered', async () => {
  const held: ((outcome: Outcome) => void)[] = []
  const platform = openLearning({
    env: {},
    mailer: testTransport(() => new Promise((resolve) => held.push(resolve))),
  })
  onTestFinished(() => platform.close())
  const slots = { startUrl: 'https://www.example.com/' }
  const sends = ['ada', 'bob'].map((name) =>
    platform.sendEmail({ template: 'welcome', to: `${name}@example.com`, slots, about: name }),
  )
  await expect.poll(() => held.length).toBe(2)
  expect(platform.mailService.sending()).toBe(2)
  held[0]?.({ kind: 'sent', id: '1' })
  await Promise.race(sends)
  expect(platform.mailService.sending()).toBe(1)
  held[1]?.({ kind: 'sent', id: '2' })
  await Promise.all(sends)
  expect(platform.mailService.sending()).toBe(0)
})

test('all parts are closed whatever becomes of one, and every caller is told the fault', async () => {
  const folder = await emptyFolder()
  const store = await openStore(undefined)
  onTestFinished(() => store.close())
  const platform = openLearning({
    env: {
      STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'visits',
    },
    store: {
      ...store,
      sending: { ...store.sending, count: () => Promise.reject(new RangeError('the count is lost')) },
    },
    mailer: testTransport(async () => ({ kind: 'sent', id: '1' })),
  })
  await platform.analytics?.()
  expect(await readdir(folder)).toContain('store-analytics.sqlite-wal')
  const mail = {
    template: 'welcome',
    to: 'ada@example.com',
    slots: { startUrl: 'https://www.example.com/' },
    about: 'a',
  }
  expect(await platform.sendEmail(mail)).toMatchObject({ sent: true })
  const closing = [platform.close(), platform.close()]
  for (const one of closing) await expect(one).rejects.toThrow('the count is lost')
  expect(await readdir(folder)).toEqual(['store-analytics.sqlite'])
})

test('links that were signed before the secret was set, or with its previous value, still unsubscribe', async () => {
  const STORE_URL = `sqlite:${path.join(await emptyFolder(), 'store.sqlite')}`
  const [first, second] = ['a-first-link-secret-of-32-bytes-ab', 'a-second-link-secret-of-32-bytes-a']
  const opened = (secret: string) => {
    const links: string[] = []
    const platform = openLearning({
      env: { STORE_URL, ...(secret && { EMAIL_LINK_SECRET: secret }) },
      mailer: testTransport(async ({ headers, text }) => {
        links.push(headers['List-Unsubscribe'] ?? /https?:\S+token=\S+/.exec(text)?.[0] ?? '')
        return { kind: 'sent', id: '1' }
      }),
    })
    onTestFinished(() => platform.close())
    return { platform, links }
  }
  const linkOf = async (secret: string, email: string) => {
    const { platform, links } = opened(secret)
    await platform.web.fetch(subscribe(email))
    await expect.poll(() => links.length).toBe(1)
    await platform.web.fetch(new Request(links[0] ?? '', { headers: { Accept: 'text/html' } }))
    await platform.dispatch()
    await platform.close()
    return (links[1] ?? '').slice(1, -1)
  }
  const people = ['none@example.com', 'first@example.com', 'second@example.com']
  const links = [
    await linkOf('', people[0] ?? ''),
    await linkOf(first, people[1] ?? ''),
    await linkOf(`${second},${first}`, people[2] ?? ''),
  ]
  const { platform } = opened(`${second},${first}`)
  for (const [index, link] of links.entries()) {
    await platform.web.fetch(new Request(link, { method: 'POST' }))
    const [course] = await platform.courses.list({ email: people[index] ?? '' })
    expect(course?.state, people[index]).toBe('unsubscribed')
  }
})

test.each<unknown>([undefined, {}, { env: null }])(
  'opening with %j names the option that is missing',
  (options) => {
    expect(() => openPlatform(options as Parameters<typeof openPlatform>[0])).toThrow(
      'openPlatform needs the option env',
    )
  },
)

test.each<unknown>([{ kind: 'person', subject: '', email: 'ada@example.com' }, { kind: 'robot' }, {}, null])(
  'the identity %j of a host is nobody, and a service that is not served has no health',
  async (identity) => {
    // A host without types may give anything.
    const platform = openPlatform({ env: {}, identify: async () => identity as undefined })
    onTestFinished(() => platform.close())
    const asked = new Request('http://web.example/api/email', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"template":"welcome","inputs":{}}',
    })
    expect((await platform.web.fetch(asked)).status).toBe(401)
    await expect(platform.health('kiln')).rejects.toThrow('does not serve kiln')
  },
)

test('once it announced its stop, health fails on every service', async () => {
  const platform = openLearning({ env: {} })
  onTestFinished(() => platform.close())
  platform.announceStop()
  for (const service of ['web', 'api', 'agent'] as const)
    expect((await platform.health(service)).state, service).toBe('failing')
})
