import { expect, test } from 'vitest'
import type { CourseOptions } from '../../../src/core/course/open.ts'
import { HOUR_MS } from '../../../src/core/durations.ts'
import type { Log } from '../../../src/core/host.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { byHand } from '../../support/by-hand.ts'
import { ADA, courseWith } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'

const refused: Outcome = { kind: 'transient', scope: 'connection', reason: 'refused' }
const EXHAUSTED = 'the platform has mailed as many confirmations as it may in a day; try again later'

async function opened(more: Partial<CourseOptions> = {}) {
  const it = await courseWith(0, { kind: 'memory' })
  const course = it.open(it.store.course, { more })
  const subscribe = (who = ADA) => it.subscribe(who, course)
  return { ...it, course, subscribe, silent: it.open(it.store.course, { more: { mailer: unset } }) }
}

const unset = openMailer({ mail: undefined, compiled: compiledMails })

test('an id of 12 random bytes never begins with a hyphen, which a command would take for an option', async () => {
  for (const [first, id] of [
    [0xfb, '0wAAAAAAAAAAAAAA'],
    [0xff, '_wAAAAAAAAAAAAAA'],
  ] as const) {
    const bytes = (count: number) => Uint8Array.from({ length: count }, (_, at) => (at === 0 ? first : 0))
    const it = await opened({ random: { bytes, fraction: () => 0 } })
    await it.subscribe()
    expect(await it.course.find(ADA.identity)).toMatchObject({ id, address: ADA.spelling })
  }
})

test('rejects a malformed token without asking the store', async () => {
  const it = await opened()
  let asked = 0
  const count = async () => {
    asked += 1
    return 'confirmed' as const
  }
  const course = it.open({ ...it.store.course, confirm: count, checkToken: count })
  for (const token of ['a'.repeat(19), 'a'.repeat(65), `${'a'.repeat(20)}+`, ` ${'a'.repeat(20)}`]) {
    expect(await course.confirm(token)).toBe('invalid')
    expect(await course.checkToken(token)).toBe('invalid')
  }
  expect(asked).toBe(0)
  for (const token of ['a'.repeat(20), 'A-_9'.repeat(16)]) {
    expect(await course.confirm(token)).toBe('confirmed')
    expect(await course.checkToken(token)).toBe('confirmed')
  }
  expect(asked).toBe(4)
})

test('once the day’s confirmations are used up, tells every address so and logs it', async () => {
  let told = 0
  const it = await opened({
    confirmationsPerDay: 1,
    onExhausted: () => {
      told += 1
    },
  })
  expect(await it.subscribe()).toEqual({ status: 'pending', sent: true })
  expect(told).toBe(0)
  const bob = { spelling: 'bob@example.com', identity: 'bob@example.com' }
  expect(await it.subscribe(bob)).toEqual({ status: 'pending', sent: false, reason: EXHAUSTED })
  expect(told).toBe(1)
  it.pass(HOUR_MS)
  expect(await it.course.confirmAgain(ADA.identity)).toEqual({ kind: 'not_sent', reason: EXHAUSTED })
  expect(told).toBe(2)
  expect(it.messages).toHaveLength(1)
})

test('sends a confirmation that is requested again, or says why not', async () => {
  const it = await opened()
  expect(await it.course.confirmAgain(ADA.identity)).toEqual({ kind: 'none' })
  await it.subscribe()
  const again = () => it.course.confirmAgain(ADA.identity)
  expect(await again()).toEqual({
    kind: 'not_sent',
    reason: 'a confirmation to this address was asked for not long ago',
  })
  it.pass(HOUR_MS)
  expect(await it.silent.confirmAgain(ADA.identity)).toEqual({
    kind: 'not_sent',
    reason: 'mail is not configured',
  })
  it.answer(() => refused)
  // It is stored: a provider that refuses delays it.
  const queued = { kind: 'sent', id: expect.stringContaining('@'), queued: true }
  expect(await again()).toEqual(queued)
  await it.course.close()
  it.pass(HOUR_MS)
  it.answer(() => ({ kind: 'sent', id: 'the provider’s' }))
  expect(await again()).toEqual(queued)
  await it.course.close()
  expect(it.messages.at(-1)?.to.address).toBe(ADA.spelling)
  expect(await it.course.confirm(it.token())).toBe('confirmed')
  expect(await again()).toEqual({ kind: 'none' })
})

test('a confirmation is logged by its subscription and never by its address, whatever became of it', async () => {
  const lines: unknown[] = []
  const keep: Log['info'] = (event, _, fields) => void lines.push([event, fields])
  const it = await opened({ log: { debug: keep, info: keep, warn: keep, error: keep } })
  await it.subscribe()
  const { id: subscription } = (await it.course.find(ADA.identity)) ?? {}
  it.pass(HOUR_MS)
  it.answer(() => refused)
  await it.subscribe()
  expect(lines).toEqual([
    ['confirmation_sent', { subscription }],
    ['confirmation_not_sent', { subscription, outcome: 'transient', reason: 'refused' }],
  ])
})

test('a mail whose record fails has a link that works, and the row that is left behind repeats it under the same key', async () => {
  const it = await opened()
  let faults = 0
  const settleMessages = async () => {
    faults += 1
    throw new TypeError('no such table')
  }
  const course = it.open({ ...it.store.course, settleMessages })
  expect(await course.subscribe(ADA)).toEqual({ status: 'pending', sent: true })
  await course.close()
  expect([faults, it.messages.length]).toEqual([1, 1])
  expect(await it.course.confirm(it.token())).toBe('confirmed')
})

test('a reason resolves all lessons that wait with it, bounced ones too; without a reason, all that are parked or unknown', async () => {
  const it = await courseWith(4, { kind: 'memory' })
  it.answer(({ to, key }) => {
    if (to.address === 'p0@example.com') return { kind: 'permanent', hardBounce: true, reason: 'gone (550)' }
    if (to.address === 'p1@example.com') return { kind: 'permanent', hardBounce: false, reason: 'spam (554)' }
    if (to.address === 'p2@example.com') return { kind: 'unknown', reason: 'the line broke' }
    return { kind: 'sent', id: key }
  })
  await it.course.dispatch({ limit: 4 })
  expect(await it.course.resolveAll('retry', 'nothing like it')).toBe(0)
  const states = async () => (await it.rows()).map((row) => row?.problem?.kind)
  expect(await states()).toEqual(['bounced', 'parked', 'unknown', undefined])
  expect(await it.course.resolveAll('sent', 'spam')).toBe(1)
  expect(await states()).toEqual(['bounced', undefined, 'unknown', undefined])
  expect((await it.rows())[1]).toMatchObject({ sentDays: [1] })
  it.pass(1)
  expect(await it.course.resolveAll('sent')).toBe(1)
  expect(await states()).toEqual(['bounced', undefined, undefined, undefined])
  it.pass(1)
  expect(await it.course.resolveAll('retry', '(550)')).toBe(1)
  expect((await it.rows())[0]).toMatchObject({ state: 'confirmed', sentDays: [], problem: undefined })
  expect(await it.course.resolve('nobody', 'retry')).toBe(false)
  expect((await it.store.audit.list(10)).map(({ who, subject, details }) => [who, subject, details])).toEqual(
    [
      ['program', 'person-0', 'retry'],
      ['program', 'person-2', 'sent'],
      ['program', 'person-1', 'sent'],
    ],
  )
})

test('on shutdown, ends its calls after the messages in flight, waits for them, and sends nothing more', async () => {
  const it = await courseWith(60, { kind: 'memory' })
  const gate = Promise.withResolvers<void>()
  it.answer(async ({ key }) => {
    await gate.promise
    return { kind: 'sent', id: key }
  })
  const call = it.course.dispatch({ limit: 60 })
  await expect.poll(() => it.messages.length).toBe(50)
  let hasStopped = false
  const stopping = it.course.stopDispatching().then(() => {
    hasStopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(hasStopped).toBe(false)
  gate.resolve()
  expect(await call).toMatchObject({ sent: 50, remaining: 10 })
  await stopping
  expect(await it.course.dispatch({ limit: 60 })).toMatchObject({ processed: 0, remaining: 10 })
})

test('on shutdown, of the mails that are queued those in flight are the last', async () => {
  const it = await courseWith(0, { kind: 'memory' })
  it.answer(() => refused)
  for (let n = 0; n < 60; n += 1)
    await it.subscribe({ spelling: `p${n}@example.com`, identity: `p${n}@example.com` })
  it.pass(HOUR_MS)
  it.messages.length = 0
  const gate = Promise.withResolvers<void>()
  it.answer(async ({ key }) => {
    await gate.promise
    return { kind: 'sent', id: key }
  })
  const delivering = it.course.deliverMessages()
  await expect.poll(() => it.messages.length).toBe(50)
  await it.course.stopDispatching()
  gate.resolve()
  expect(await delivering).toBe(50)
  expect(it.messages).toHaveLength(50)
})

test('the Message-ID of the lesson in hand is that of its mail, and there is none without a lesson', async () => {
  const it = await courseWith(1, { kind: 'memory' })
  const row = async () => (await it.rows())[0] as NonNullable<Awaited<ReturnType<typeof it.rows>>[number]>
  const before = await it.course.messageIdOf(await row())
  await it.course.dispatch({ limit: 1 })
  expect(it.messages[0]?.messageId).toBe(before)
  expect(await it.course.messageIdOf(await row())).not.toBe(before)
  expect(await it.course.messageIdOf({ ...(await row()), sentDays: [1, 2, 3, 4, 5, 6, 7] })).toBeUndefined()
  // The course has become shorter, or is gone.
  expect(
    await it.course.messageIdOf({ ...(await row()), sentDays: [1, 2, 3, 4, 5, 6, 7], lessons: 8 }),
  ).toBeUndefined()
  expect(await it.course.messageIdOf({ ...(await row()), course: 'gone' })).toBeUndefined()
})

test('an unknown course cannot be started; an erasure is one entry in the audit log', async () => {
  const it = await opened()
  expect(await it.course.enrol({ ...ADA, course: 'none' })).toEqual({
    ...{ enrolled: false, reason: 'no_such_course' },
  })
  const decomposed = 'jo\u0308rg@example.com'
  await it.course.enrol({ spelling: decomposed, identity: decomposed.normalize('NFC') })
  expect(await it.course.erase(decomposed.normalize('NFC'), { name: 'ops', place: 'box' })).toEqual({
    existed: true,
    related: 0,
    bytesGone: true,
  })
  expect((await it.store.audit.list(10)).map(({ action, who, place }) => [action, who, place])).toEqual([
    ['erase', 'ops', 'box'],
  ])
  expect(await it.course.erase('nobody@example.com')).toMatchObject({ existed: false })
})

test('an erasure is complete once the bytes of every form of the address are gone, whichever is asked for last', async () => {
  const it = await opened()
  const decomposed = 'jo\u0308rg@example.com'
  for (const stays of [1, 2]) {
    let forms = 0
    const course = it.open({
      ...it.store.course,
      erase: async () => {
        forms += 1
        return { existed: forms === stays, related: 1, bytesGone: forms !== stays }
      },
    })
    const erased = await course.erase(decomposed.normalize('NFC'))
    expect(erased).toEqual({ existed: true, related: forms, bytesGone: false })
    expect(forms).toBeGreaterThanOrEqual(2)
  }
})

test('a lesson of a course that is gone is not counted as sent, because nothing would follow', async () => {
  const it = await courseWith(1)
  const parked = `problem_kind = 'parked', problem_reason = 'refused', problem_since = 1, next_attempt_at = NULL`
  await byHand(it.address, `UPDATE subscription SET course = 'gone', ${parked}`)
  const [{ id } = {}] = await byHand(it.address, 'SELECT id FROM subscription')
  expect(await it.course.resolve(String(id), 'sent')).toBe(false)
  expect(await it.course.resolve(String(id), 'retry')).toBe(true)
})

test('all that wait are resolved at once, however many there are', async () => {
  const it = await courseWith(501)
  const parked = `problem_kind = 'parked', problem_reason = 'refused', problem_since = 1, next_attempt_at = NULL`
  await byHand(it.address, `UPDATE subscription SET ${parked}`)
  expect(await it.course.resolveAll('retry')).toBe(501)
})
