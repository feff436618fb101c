import { describe, expect, test } from 'vitest'
import { suppressionHash } from '../../../src/core/course/links.ts'
import type { CourseOptions } from '../../../src/core/course/open.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import type { Message } from '../../../src/core/mail/mailer.ts'
import { secret } from '../../../src/core/secret.ts'
import { openPlatform } from '../../../src/daemon/platform.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { byHand } from '../../support/by-hand.ts'
import { ADA, courseWith, linkOf, tokenIn } from '../../support/course.ts'
import { addressOf, openTestStore } from '../../support/stores.ts'
import { testTransport } from '../../support/test-transport.ts'

describe.each<['sqlite' | 'postgres', days: string, kept?: string]>([
  ['sqlite', 'not a list'],
  ['sqlite', '{"1":true}'],
  ['sqlite', 'null'],
  ['postgres', '{"1":true}', '{"1": true}'],
  ['postgres', 'null', '"null"'],
])('on %s', (kind, days, kept = days) => {
  test(`a row whose days sent are ${days} is set aside, and everybody else gets their lesson`, async () => {
    const it = await courseWith(20, { kind })
    await byHand(it.address, `UPDATE subscription SET sent_days = '${days}' WHERE id = 'person-3'`)
    expect(await it.course.dispatch({ limit: 100 })).toMatchObject({ sent: 19 })
    expect(await it.course.counts()).toMatchObject({ parked: 1 })
    const problem = { kind: 'parked', reason: expect.stringContaining('repair the row, then resolve it') }
    expect(await it.course.problems(10)).toMatchObject([{ id: 'person-3', problem }])
    // The stored value is the only source for a repair.
    const stored = `SELECT CAST(sent_days AS text) AS days FROM subscription WHERE problem_kind = 'parked'`
    expect(await byHand(it.address, stored)).toEqual([{ days: kept }])
    // Not before it is repaired: nobody knows which lessons were sent.
    expect(await it.course.resolve('person-3', 'retry')).toBe(false)
    await byHand(it.address, `UPDATE subscription SET sent_days = '[]' WHERE id = 'person-3'`)
    expect(await it.course.resolve('person-3', 'retry')).toBe(true)
    expect(await it.course.dispatch({ limit: 100 })).toMatchObject({ sent: 1 })
  })
})

test('lessons that wait for a decision are resolved together, all of them or by reason', async () => {
  const it = await courseWith(620, { kind: 'memory' })
  const sentToo = (n: number) => n % 6 === 0
  it.answer((message) =>
    sentToo(Number(/\d+/.exec(message.to.address)?.[0]))
      ? { kind: 'sent', id: message.key }
      : { kind: 'permanent', hardBounce: false, reason: `refused: ${message.to.address.slice(0, 2)}` },
  )
  await it.course.dispatch({ limit: 10_000 })
  const { parked } = await it.course.counts()
  // More than a page of them; the last in their order have the reason that is asked for.
  expect(parked).toBe(516)
  const ones = (await it.rows()).filter((row) => row?.problem?.reason === 'refused: p9').length
  expect(await it.course.resolveAll('retry', 'refused: p9')).toBe(ones)
  expect(await it.course.resolveAll('retry')).toBe(516 - ones)
  expect(await it.course.counts()).toMatchObject({ parked: 0 })
})

test('a lesson that waits for a decision is found behind a page of those that come back by themselves', async () => {
  const it = await courseWith(502, { kind: 'memory' })
  // The last of all in the order of ids, which begin at the same moment.
  it.answer(({ to }) =>
    to.address === 'p99@example.com'
      ? { kind: 'permanent', hardBounce: false, reason: 'refused' }
      : { kind: 'transient', scope: 'message', reason: 'busy' },
  )
  await it.course.dispatch({ limit: 10_000 })
  expect((await it.course.problems(502)).at(-1)).toMatchObject({ id: 'person-99' })
  let pages = 0
  const course = it.open({
    ...it.store.course,
    listProblems(...asked) {
      pages += 1
      if (pages > 4) throw new Error('it reads the same page again and again')
      return it.store.course.listProblems(...asked)
    },
  })
  expect(await course.resolveAll('retry')).toBe(1)
  expect(await course.resolveAll('retry')).toBe(0)
})

test('an erased address stays erased, and links go on working, when EMAIL_LINK_SECRET is set, rotated or lost', async () => {
  const store = await openTestStore(await addressOf('sqlite'))
  const messages: Message[] = []
  const transport = testTransport(async (message) => {
    messages.push(message)
    return { kind: 'sent', id: message.key }
  })
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now, monotonic: () => now, sleep: async () => {} }
  const withSecret = (value: string) =>
    openPlatform({ platform: learning, env: { EMAIL_LINK_SECRET: value }, store, mailer: transport, clock })
  const first = await withSecret('').course()
  const subscribe = async (course: typeof first, name: string) => {
    await course.subscribe({ spelling: `${name}@example.com`, identity: `${name}@example.com` })
    await new Promise((resolve) => setImmediate(resolve))
    await course.close()
  }
  await subscribe(first, 'ada')
  await first.confirm(tokenIn(messages.at(-1)))
  await first.dispatch({ limit: 1 })
  const link = linkOf(messages.at(-1))
  await subscribe(first, 'bob')
  await first.erase('bob@example.com')
  const mailed = messages.length
  for (const value of [
    'the-first-secret-of-links',
    'the-second-one-of-links,the-first-secret-of-links',
    'lost',
  ]) {
    now += 2 * DAY_MS
    const course = await withSecret(value).course()
    await subscribe(course, 'bob')
    expect(messages).toHaveLength(mailed)
    await course.unsubscribe(link)
    expect(await course.find('ada@example.com')).toMatchObject({ state: 'unsubscribed' })
    await course.undoUnsubscribe(link)
    expect(await course.find('ada@example.com')).toMatchObject({ state: 'confirmed' })
  }
})

test('recognizes an address erased under an earlier secret during the rotation to another', async () => {
  const it = await courseWith(0)
  const [before, after] = [secret('the secret of before'), secret('the secret of after')]
  const opened = (more: Partial<CourseOptions>) => it.open(it.store.course, { more })
  // As builds did that had no key of their own for addresses.
  await opened({ linkKey: before }).erase(ADA.identity)
  const now = opened({ linkKey: after, oldLinkKeys: [before], addressKey: secret('its own') })
  await it.subscribe(ADA, now)
  expect(await now.find(ADA.identity)).toBeUndefined()
})

test('somebody whose address an earlier build kept in quotes is erased by the address', async () => {
  const it = await courseWith(0)
  await it.join('"ada"@example.com', { id: 'ada', confirms: false })
  expect(await it.course.erase('ada@example.com')).toMatchObject({ existed: true })
  expect(await it.course.findById('ada')).toBeUndefined()
})

test('an erasure finds the address in records that write its domain in letters beyond ASCII', async () => {
  const it = await courseWith(0, { kind: 'sqlite' })
  await byHand(it.address, `INSERT INTO login_request VALUES ('l1', 'Ada@Bücher.example', '/l', 1)`)
  expect(await it.course.erase('ada@xn--bcher-kva.example')).toMatchObject({ related: 1 })
  expect(await byHand(it.address, 'SELECT * FROM login_request')).toEqual([])
})

test('somebody whose address an earlier build kept in decomposed letters is one person, found and erased by either form', async () => {
  const it = await courseWith(0)
  const composed = 'j\u00f6rg@example.com'
  const decomposed = composed.normalize('NFD')
  await it.join(decomposed, { id: 'joerg' })
  it.pass(2 * DAY_MS)
  const subscribe = (identity = composed) => it.subscribe({ spelling: identity, identity })
  await subscribe()
  expect(it.messages).toEqual([])
  expect(await it.course.find(composed)).toMatchObject({ id: 'joerg' })
  expect(await it.course.erase(composed)).toMatchObject({ existed: true })
  expect(await it.course.findById('joerg')).toBeUndefined()
  await subscribe()
  expect(it.messages).toEqual([])
  // Erased by the build that still told the two apart.
  const other = 'zo\u00eb@example.com'
  const key = 'a key for links in tests only'
  await it.store.course.erase({
    identity: other.normalize('NFD'),
    spellings: [],
    recipients: [],
    suppressionHash: suppressionHash(key, other.normalize('NFD')),
    now: it.now(),
  })
  await subscribe(other)
  expect(it.messages).toEqual([])
})
