import { readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { definePlatform } from '../../src/config.ts'
import { PROGRAM } from '../../src/core/audit.ts'
import { suppressionHash } from '../../src/core/course/links.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/core/durations.ts'
import { systemClock, systemRandom } from '../../src/core/host.ts'
import { suppressAddress } from '../../src/core/mail/feedback/suppressions.ts'
import type { Outcome } from '../../src/core/mail/mailer.ts'
import { openPlatform } from '../../src/daemon/index.ts'
import { emptyFolder } from '../support/folder.ts'
import { openLearning } from '../support/learning.ts'
import { newStoreUrl, opened } from '../support/opened.ts'
import { openTestStore } from '../support/stores.ts'
import { testTransport } from '../support/test-transport.ts'

/** A platform whose provider answers so, and what is known of it after each mail to somebody. */
function sending(send: () => Outcome | Promise<Outcome>, monotonic = () => 0) {
  const { platform } = opened({
    mailer: testTransport(async () => send()),
    clock: { ...systemClock, monotonic },
  })
  const { refused, sending: inFlight } = platform.mailService
  let about = 0
  const mail = (name: string) => {
    about += 1
    const slots = { startUrl: 'https://www.example.com/' }
    const to = `${name}@example.com`
    return platform.sendEmail({ template: 'welcome', to, slots, about: String(about) })
  }
  const after = async (name = 'ada') => {
    await mail(name)
    return refused()
  }
  return { platform, mail, after, inFlight }
}

test('a used-up budget of confirmations is told again only after an hour in which it was not asked for', async () => {
  const time = { monotonic: 0 }
  const { platform, post, told } = opened({
    env: {
      EMAIL_CONFIRMATIONS_PER_DAY: '1',
      MAILER_API_KEY: 'a-key-of-the-mail-provider',
      MAILER_FROM: 'course@example.com',
      MAILER_API_URL: 'http://127.0.0.1:9',
    },
    mailer: testTransport(async () => ({ kind: 'sent', id: '1' })),
    clock: { ...systemClock, monotonic: () => time.monotonic },
  })
  const mail = async () => (await platform.health('web')).probes.mail?.state
  let n = 0
  const ask = async (later: number) => {
    time.monotonic += later
    n += 1
    await post('/api/email/subscribe', { email: `person-${n}@example.com` })
    return told('confirmations_exhausted').length
  }
  expect([await ask(0), await mail()]).toEqual([0, 'ok'])
  expect([await ask(0), await mail()]).toEqual([1, 'degraded'])
  expect([await ask(HOUR_MS - 1), await ask(HOUR_MS - 1)]).toEqual([1, 1])
  time.monotonic += HOUR_MS
  expect([await mail(), await ask(0)]).toEqual(['ok', 2])
})

test('health no longer says that mail is refused once another process of the store has sent some ten minutes later', async () => {
  let now = Date.UTC(2026, 10, 22)
  const { platform } = opened({
    env: { STORE_URL: await newStoreUrl() },
    mailer: testTransport(async () => ({ kind: 'transient', scope: 'sender', reason: 'the key is refused' })),
    clock: { ...systemClock, now: () => now },
  })
  const mail = async () => (await platform.health('web')).probes.mail?.state
  const slots = { startUrl: 'https://www.example.com/' }
  await platform.sendEmail({ template: 'welcome', to: 'ada@example.com', slots, about: '1' })
  const { sending } = await platform.store()
  const states = []
  for (const minutes of [10, 1]) {
    now += minutes * MINUTE_MS
    await sending.count([{ at: now, kind: 'sent', source: 'api', domain: 'other', count: 1 }])
    states.push(await mail())
  }
  expect(states).toEqual(['degraded', 'ok'])
})

test('nothing is kept of an address that a build before erased under one of the secrets of links', async () => {
  const [before, now] = ['a-link-secret-of-before-in-32-bytes', 'a-link-secret-of-today-in-32-bytes']
  const store = await openTestStore(undefined)
  const { platform } = opened({ env: { EMAIL_LINK_SECRET: `${now},${before}` }, store })
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
  const sentWith: number[] = []
  const { platform, after, inFlight } = sending(() => {
    sentWith.push(inFlight())
    const outcome = outcomes.shift()
    if (outcome === undefined) throw new TypeError('a fault of the host’s own')
    return outcome
  })
  const refused: (string | false | null | undefined)[] = []
  for (let n = 0; n < 6; n += 1) {
    refused.push(await after(`person-${n}`))
    expect(inFlight()).toBe(0)
    const { mail } = (await platform.health('web')).probes
    expect(mail?.state).toBe(refused.at(-1) ? 'degraded' : 'ok')
  }
  const refusal = 'the key is refused'
  expect(refused).toEqual([refusal, refusal, refusal, false, false, false])
  expect(sentWith).toEqual([1, 1, 1, 1, 1, 1])
  expect(opened().platform.mailService.refused(), 'not configured').toBe(null)
})

test('a provider that takes no message for three people in a row refuses, whatever it says; a dead address counts for nothing', async () => {
  const no: Outcome = { kind: 'transient', scope: 'message', reason: 'the mail API answered 503' }
  const never: Outcome = { kind: 'permanent', hardBounce: false, reason: 'the mail API answered 418' }
  const dead: Outcome = { kind: 'permanent', hardBounce: true, reason: 'no such mailbox' }
  const busy: Outcome = { kind: 'transient', scope: 'connection', reason: 'slow down' }
  const refusal: Outcome = { ...busy, scope: 'sender', isUnclear: true, reason: 'the mail API answered 422' }
  let next: Outcome = no
  const it = sending(() => next)
  const after = (name: string, outcome: Outcome) => {
    next = outcome
    return it.after(name)
  }
  expect(await after('ada', no)).toBeUndefined()
  expect(await after('ada', no)).toBeUndefined()
  expect(await after('bob', never)).toBeUndefined()
  expect(await after('bob', no)).toBeUndefined()
  expect(await after('cyd', dead)).toBeUndefined()
  expect(await after('dan', busy)).toBeUndefined()
  expect(await after('eve', { kind: 'sent', id: '1' })).toBe(false)
  expect(await after('ada', no)).toBe(false)
  expect(await after('bob', no)).toBe(false)
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
  const { after } = sending(
    () => next,
    () => now,
  )
  const at = (minutes: number, name?: string) => {
    now = minutes * MINUTE_MS
    return after(name)
  }
  expect([await at(0), await at(0), await at(0), await at(9)]).toEqual(Array(4).fill(undefined))
  next = { kind: 'sent', id: '1' }
  expect(await at(10)).toBe(false)
  next = { kind: 'transient', scope: 'connection', reason: 'the mail provider’s address is wrong (404)' }
  expect([await at(11), await at(31)]).toEqual([false, false])
  expect(await at(32)).toBe('the mail provider’s address is wrong (404)')
  next = { kind: 'sent', id: '2' }
  expect(await at(33)).toBe(false)
  // All that were on their way when its connection broke; one message that is repeated says nothing about others.
  next = { kind: 'unknown', reason: 'the connection broke' }
  const broken = next
  for (const minute of [34, 40, 46, 52]) expect(await at(minute)).toBe(false)
  next = { kind: 'sent', id: '3' }
  await at(53)
  next = broken
  for (const name of ['bob', 'cyd', 'dan', 'eve']) expect(await at(54, name)).toBe(false)
  next = { kind: 'permanent', hardBounce: true, reason: 'no such mailbox' }
  expect([await at(63), await at(64)]).toEqual([false, false])
  next = { kind: 'transient', scope: 'message', reason: 'mailbox full' }
  expect(await at(64)).toBe(false)
  next = broken
  expect(await at(64)).toBe('the connection broke')
})

test('mails that cannot be composed are no refusal, however long nothing else is sent', async () => {
  let now = 0
  const { platform } = sending(
    () => ({ kind: 'sent', id: '1' }),
    () => now,
  )
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

test('lessons keep to MAILER_RATE, and mail that does not wait takes turns of theirs', async () => {
  const sent: string[] = []
  const { platform } = opened({
    env: { STORE_URL: await newStoreUrl(), MAILER_RATE: '0.2' },
    mailer: testTransport(async ({ to }) => {
      sent.push(to.address)
      return { kind: 'sent', id: '1' }
    }),
  })
  for (const name of ['ada', 'bob']) await platform.courses.enrol({ email: `${name}@example.com` })
  const stop = new AbortController()
  const dispatched = platform.dispatch({ signal: stop.signal })
  await expect.poll(() => sent).toHaveLength(1)
  stop.abort()
  expect(await dispatched).toMatchObject({ sent: 1, remaining: 1 })
  const { sending } = await platform.store()
  const turn = () => sending.reserve({ messages: 1, intervalUs: 1 })
  const before = await turn()
  const slots = { startUrl: 'https://www.example.com/' }
  expect(await platform.mail.send('welcome', { to: 'eve@example.com', slots })).toMatchObject({ sent: true })
  // Five seconds more, less those that this took.
  expect(await turn()).toBeGreaterThan(before)
})

test('of two messages in flight one is left when the other is answered', async () => {
  const held: ((outcome: Outcome) => void)[] = []
  const { mail, inFlight } = sending(() => new Promise((resolve) => held.push(resolve)))
  const sends = ['ada', 'bob'].map(mail)
  await expect.poll(() => held.length).toBe(2)
  expect(inFlight()).toBe(2)
  held[0]?.({ kind: 'sent', id: '1' })
  await Promise.race(sends)
  expect(inFlight()).toBe(1)
  held[1]?.({ kind: 'sent', id: '2' })
  await Promise.all(sends)
  expect(inFlight()).toBe(0)
})

test('all parts are closed whatever becomes of one, and every caller is told the fault', async () => {
  const folder = await emptyFolder()
  const store = await openTestStore(undefined)
  const count = () => Promise.reject(new RangeError('the count is lost'))
  const platform = openLearning({
    env: {
      STORE_URL: `sqlite:${path.join(folder, 'store.sqlite')}`,
      JOB_STORE_URL: `sqlite:${path.join(folder, 'jobs.sqlite')}`,
      ANALYTICS_DATASTORE_TABLE: 'visits',
    },
    store: { ...store, sending: { ...store.sending, count } },
    mailer: testTransport(async () => ({ kind: 'sent', id: '1' })),
  })
  await platform.analytics?.()
  await platform.health('api')
  for (const opened of ['store-analytics', 'jobs'])
    expect(await readdir(folder)).toContain(`${opened}.sqlite-wal`)
  const slots = { startUrl: 'https://www.example.com/' }
  const mail = { template: 'welcome', to: 'ada@example.com', slots, about: 'a' }
  expect(await platform.sendEmail(mail)).toMatchObject({ sent: true })
  for (const one of [platform.close(), platform.close()])
    await expect(one).rejects.toThrow('the count is lost')
  expect((await readdir(folder)).toSorted()).toEqual(['jobs.sqlite', 'store-analytics.sqlite'])
})

test('links that were signed before the secret was set, or with any value that it still lists, unsubscribe', async () => {
  const STORE_URL = await newStoreUrl()
  const [first, second] = ['a-first-link-secret-of-32-bytes-ab', 'a-second-link-secret-of-32-bytes-a']
  const openWith = (secret: string) => {
    const links: string[] = []
    const mailer = testTransport(async ({ headers, text }) => {
      links.push(headers['List-Unsubscribe'] ?? /https?:\S+token=\S+/.exec(text)?.[0] ?? '')
      return { kind: 'sent', id: '1' }
    })
    return { ...opened({ env: { STORE_URL, ...(secret && { EMAIL_LINK_SECRET: secret }) }, mailer }), links }
  }
  const third = 'a-third-link-secret-of-32-bytes-ab'
  const secrets = [
    '',
    first,
    `${second},${first}`,
    `${third},${second},${first}`,
    `x,${third},${second},${first}`,
  ]
  const linksOf: [email: string, link: string][] = []
  for (const [n, secret] of secrets.entries()) {
    const { platform, page, post, links } = openWith(secret)
    const email = `person-${n}@example.com`
    await post('/api/email/subscribe', { email })
    await expect.poll(() => links.length).toBe(1)
    await page(new URL(links[0] ?? '').pathname + new URL(links[0] ?? '').search)
    await platform.dispatch()
    await platform.close()
    linksOf.push([email, (links[1] ?? '').slice(1, -1)])
  }
  // The first of several signs: the others may be taken out.
  for (const [email, link] of linksOf.slice(2, 3)) {
    const { platform } = openWith(second)
    await platform.web.fetch(new Request(link, { method: 'POST' }))
    expect(await platform.courses.list({ email })).toMatchObject([{ state: 'unsubscribed' }])
    await platform.close()
  }
  const { platform } = openWith(secrets.at(-1) ?? '')
  for (const [email, link] of linksOf) {
    expect((await platform.web.fetch(new Request(link, { method: 'POST' }))).status).toBe(200)
    expect(await platform.courses.list({ email })).toMatchObject([{ state: 'unsubscribed' }])
  }
})

test('while EMAIL_LINK_SECRET is malformed, an unsubscribe link that no value of it signed answers 503', async () => {
  const lost = 'http://localhost:3000/api/email/unsubscribe?s=Jk3nM0aPq9xT2vLs.1&t=c2lnbmF0dXJl'
  const answers = ['', 'a-secret-of-links-in-32-bytes-ab', 'x', ',', 'cut\u0007off-secret-of-links'].map(
    async (secret) => {
      const { platform } = opened({ env: { EMAIL_LINK_SECRET: secret } })
      return (await platform.web.fetch(new Request(lost, { method: 'POST' }))).status
    },
  )
  expect(await Promise.all(answers)).toEqual([200, 200, 503, 503, 503])
})

test('once it announced its stop, health fails on every service', async () => {
  const { platform } = opened()
  platform.announceStop()
  for (const service of ['web', 'api', 'agent'] as const)
    expect((await platform.health(service)).state, service).toBe('failing')
})
