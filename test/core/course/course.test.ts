import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openCourse } from '../../../src/core/course/open.ts'
import { DAY_MS } from '../../../src/core/course/schedule.ts'
import { silentLog } from '../../../src/core/log.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import type { Message, Outcome } from '../../../src/core/mail/transport.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { secret } from '../../../src/core/secret.ts'
import { openStore } from '../../../src/core/store/open.ts'
import { emptyFolder } from '../../support/folder.ts'

const START = Date.UTC(2026, 2, 28)
const HOUR_MS = 60 * 60 * 1000
const ADA = { spelling: 'Ada@example.com', identity: 'ada@example.com' }

/** A course on a real SQLite file with a transport that keeps what it is given and answers as told. */
async function course({ persistent = true, mail = true } = {}) {
  const store = await openStore(
    persistent ? { kind: 'sqlite', file: path.join(await emptyFolder(), 'store.sqlite') } : undefined,
  )
  onTestFinished(() => store.close())
  const messages: Message[] = []
  let answer: (message: Message) => Outcome | Promise<Outcome> = (message) => ({
    kind: 'sent',
    id: message.key,
  })
  let now = START
  const transport = {
    kind: 'test',
    send: async (message: Message) => {
      messages.push(message)
      return answer(message)
    },
    verify: async () => {},
    close: async () => {},
  }
  const opened = openCourse({
    store: store.course,
    persistent: store.persistent,
    mailer: openMailer(
      mail
        ? { mail: undefined, transport, from: { name: undefined, address: 'course@example.com' } }
        : { mail: undefined },
    ),
    clock: { now: () => now, monotonic: () => now, sleep: async () => {} },
    random: systemRandom,
    log: silentLog,
    siteUrl: 'https://www.example.com',
    linkKey: secret('a key for links in tests only'),
  })
  return {
    course: opened,
    messages,
    answer: (next: typeof answer) => {
      answer = next
    },
    pass: (ms: number) => {
      now += ms
    },
    async subscribe(address = ADA) {
      const result = await opened.subscribe(address)
      await new Promise((resolve) => setImmediate(resolve))
      await opened.close()
      return result
    },
    token: () => /token=([\w-]+)/.exec(messages.at(-1)?.text ?? '')?.[1] ?? '',
    link() {
      const url = new URL(/<(.*)>/.exec(messages.at(-1)?.headers['List-Unsubscribe'] ?? '')?.[1] ?? '')
      return { s: url.searchParams.get('s') ?? '', t: url.searchParams.get('t') ?? '' }
    },
    async confirmed() {
      await this.subscribe()
      expect(await opened.confirm(this.token())).toBe('confirmed')
      return this
    },
    dispatch: (limit = 100) => opened.dispatch({ limit }),
  }
}

test('the seven lessons go out one a day, lowest first, each once', async () => {
  const it = await (await course()).confirmed()
  for (let day = 1; day <= 7; day += 1) {
    expect(await it.dispatch()).toMatchObject({ processed: 1, sent: 1, results: [{ day, sent: true }] })
    expect(await it.dispatch()).toMatchObject({ processed: 0 })
    it.pass(DAY_MS - 1)
    expect(await it.dispatch()).toMatchObject({ processed: 0 })
    it.pass(1)
  }
  expect(await it.dispatch()).toMatchObject({ processed: 0 })
  expect(new Set(it.messages.map(({ key }) => key)).size).toBe(8)
})

test('a backlog drains one day a call', async () => {
  const it = await (await course()).confirmed()
  it.pass(3 * DAY_MS)
  for (const day of [1, 2, 3, 4])
    expect(await it.dispatch()).toMatchObject({ results: [{ day }], remaining: day < 4 ? 1 : 0 })
  expect(await it.dispatch()).toMatchObject({ processed: 0 })
})

test('an address is mailed at most one confirmation an hour and three a day, and answered alike each time', async () => {
  const it = await course()
  const answers = new Set<string>()
  for (let hour = 0; hour < 24 * 4; hour += 1) {
    answers.add(JSON.stringify(await it.subscribe()))
    it.pass(HOUR_MS / 4)
  }
  expect(it.messages).toHaveLength(3)
  expect([...answers]).toEqual(['{"status":"pending","sent":true}'])
})

test('a new token replaces the one before, an old one expires, a used one says the same again', async () => {
  const it = await course()
  await it.subscribe()
  const first = it.token()
  it.pass(2 * HOUR_MS)
  await it.subscribe()
  const second = it.token()
  expect(await it.course.confirm(first)).toBe('invalid')
  it.pass(7 * DAY_MS)
  expect(await it.course.confirm(second)).toBe('expired')
  await it.subscribe()
  expect(await it.course.confirm(it.token())).toBe('confirmed')
  expect(await it.course.confirm(it.token())).toBe('confirmed')
  expect(await it.course.confirm('forged-token-that-matches-nothing')).toBe('invalid')
})

test('unsubscribing ends it, a forged link changes nothing, undoing goes on where it stopped', async () => {
  const it = await (await course()).confirmed()
  await it.dispatch()
  const link = it.link()
  await it.course.unsubscribe({ ...link, t: `${link.t.slice(0, -1)}${link.t.endsWith('A') ? 'B' : 'A'}` })
  expect((await it.course.find(ADA.identity))?.state).toBe('confirmed')
  await it.course.unsubscribe(link)
  it.pass(DAY_MS)
  expect(await it.dispatch()).toMatchObject({ processed: 0 })
  await it.course.undoUnsubscribe(link)
  expect(await it.dispatch()).toMatchObject({ results: [{ day: 2, sent: true }] })
})

test('after unsubscribing, subscribing and confirming anew starts over under a new enrolment, and the old link is void', async () => {
  const it = await (await course()).confirmed()
  await it.dispatch()
  const old = it.link()
  await it.course.unsubscribe(old)
  it.pass(2 * HOUR_MS)
  await it.confirmed()
  expect(await it.dispatch()).toMatchObject({ results: [{ day: 1, sent: true }] })
  await it.course.unsubscribe(old)
  expect(await it.course.find(ADA.identity)).toMatchObject({ state: 'confirmed', enrolment: 2 })
  expect(new Set(it.messages.map(({ key }) => key)).size).toBe(4)
})

test('a transient failure waits at least five minutes and comes back with the same bytes', async () => {
  const it = await (await course()).confirmed()
  it.answer(() => ({ kind: 'transient', scope: 'message', reason: 'greylisted' }))
  expect(await it.dispatch()).toMatchObject({
    sent: 0,
    failed: 1,
    results: [{ day: 1, sent: false, reason: 'greylisted' }],
  })
  it.pass(5 * 60 * 1000 - 1)
  expect(await it.dispatch()).toMatchObject({ processed: 0 })
  it.answer((message) => ({ kind: 'sent', id: message.key }))
  it.pass(DAY_MS)
  expect(await it.dispatch()).toMatchObject({ sent: 1 })
  expect(it.messages.at(-1)).toEqual(it.messages.at(-2))
})

test('an unknown outcome is retried under the same key until the provider forgets it, then waits for an operator', async () => {
  const it = await (await course()).confirmed()
  it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
  for (let attempt = 0; attempt < 100; attempt += 1) {
    await it.dispatch()
    it.pass(30 * 60 * 1000)
  }
  const lessons = it.messages.slice(1)
  expect(new Set(lessons.map(({ key }) => key)).size).toBe(1)
  const found = await it.course.find(ADA.identity)
  expect(found).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'unknown' } })
  expect(await it.course.resolve(found?.id ?? '', 'sent')).toBe(true)
  it.answer((message) => ({ kind: 'sent', id: message.key }))
  expect(await it.dispatch()).toMatchObject({ results: [{ day: 2, sent: true }] })
})

test('a dead address ends the subscription; any other permanent refusal parks the lesson', async () => {
  const it = await (await course()).confirmed()
  it.answer(() => ({ kind: 'permanent', hardBounce: false, reason: 'refused' }))
  await it.dispatch()
  const parked = await it.course.find(ADA.identity)
  expect(parked).toMatchObject({ state: 'confirmed', problem: { kind: 'parked' } })
  await it.course.resolve(parked?.id ?? '', 'retry')
  it.answer(() => ({ kind: 'permanent', hardBounce: true, reason: 'no such address' }))
  await it.dispatch()
  expect(await it.course.find(ADA.identity)).toMatchObject({
    state: 'unsubscribed',
    problem: { kind: 'bounced' },
  })
})

test('an unsubscribe that was acknowledged wins over a claim that has not handed its message over', async () => {
  const it = await course()
  const people = Array.from({ length: 60 }, (_, n) => ({
    spelling: `p${n}@example.com`,
    identity: `p${n}@example.com`,
  }))
  for (const person of people) {
    await it.subscribe(person)
    await it.course.confirm(it.token())
  }
  await it.dispatch(60)
  it.pass(DAY_MS)
  const link = it.link()
  const [id = ''] = link.s.split('.')
  const before = it.messages.length
  it.answer(async (message) => {
    // Fifty slots send at once; the last of sixty is claimed by now and waits for one.
    if (it.messages.length === before + 1) await it.course.unsubscribe(link)
    return { kind: 'sent', id: message.key }
  })
  expect(await it.dispatch(60)).toMatchObject({ processed: 59, sent: 59 })
  expect(it.messages.slice(before).some((message) => message.headers['List-Unsubscribe']?.includes(id))).toBe(
    false,
  )
})

test('two dispatchers on one file send each lesson once', async () => {
  const it = await course()
  for (let n = 0; n < 40; n += 1) {
    await it.subscribe({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
    await it.course.confirm(it.token())
  }
  const before = it.messages.length
  const both = await Promise.all([it.dispatch(40), it.dispatch(40)])
  expect(both[0].sent + both[1].sent).toBe(40)
  expect(new Set(it.messages.slice(before).map(({ key }) => key)).size).toBe(40)
})

test('a fault of the connection stops the call, burns no attempt and gives back what was not tried', async () => {
  const it = await course()
  for (let n = 0; n < 120; n += 1) {
    await it.subscribe({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
    await it.course.confirm(it.token())
  }
  it.answer(() => ({ kind: 'transient', scope: 'connection', reason: 'come back later' }))
  const result = await it.dispatch(120)
  expect(result.processed).toBeLessThanOrEqual(50)
  expect(result).toMatchObject({ sent: 0, reason: 'come back later', remaining: 120 - result.processed })
})

test('on the in-memory fallback dispatch is refused, and without mail nothing is processed or recorded', async () => {
  const memory = await course({ persistent: false })
  await expect(memory.dispatch()).rejects.toMatchObject({ code: 'store_not_persistent', status: 503 })
  const unconfigured = await course({ mail: false })
  expect(await unconfigured.subscribe()).toEqual({
    status: 'pending',
    sent: false,
    reason: 'mail is not configured',
  })
  expect(await unconfigured.dispatch()).toMatchObject({ processed: 0, reason: 'mail is not configured' })
})

test('an erased address is gone, and subscribing it again mails nothing', async () => {
  const it = await (await course()).confirmed()
  expect(await it.course.erase(ADA.identity)).toBe(true)
  expect(await it.course.find(ADA.identity)).toBeUndefined()
  const before = it.messages.length
  it.pass(DAY_MS)
  expect(await it.subscribe()).toEqual({ status: 'pending', sent: true })
  expect(it.messages).toHaveLength(before)
})
