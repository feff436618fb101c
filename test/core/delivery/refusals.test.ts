import { expect, test } from 'vitest'
import { createRefusals } from '../../../src/core/delivery/refusals.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { readSettings } from '../../../src/core/env/settings.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { learning } from '../../../src/presets/learning/platform.ts'
import { courseWith, START } from '../../support/course.ts'

const untouched = { sentDays: [], problem: undefined, failures: 0, nextAttemptAt: expect.any(Number) }
const sender = (reason: string): Outcome => ({ kind: 'transient', scope: 'sender', reason })

test('an error in our own texts or configuration stops the call with that reason and parks no lesson', async () => {
  const it = await courseWith(30, { kind: 'memory', siteUrl: 'https://www.example.com/a|b' })
  const call = await it.course.dispatch({ limit: 100 })
  expect(call).toMatchObject({ sent: 0, remaining: 30, reason: expect.stringContaining('lessonUrl') })
  expect(it.messages).toEqual([])
  for (const row of await it.rows()) expect(row).toMatchObject(untouched)
  // Once the configuration is corrected, nobody has to do anything else.
  const corrected = it.open(it.store.course, { site: 'https://www.example.com' })
  expect(await corrected.dispatch({ limit: 100 })).toMatchObject({ sent: 30, remaining: 0 })
})

test('a provider that rejects the sender, not the recipient, is retried a few times only and parks no lesson', async () => {
  const it = await courseWith(300, { kind: 'memory' })
  it.answer(() => sender('the mail provider refused the message (422)'))
  const call = await it.course.dispatch({ limit: 1000 })
  expect(call.reason).toBe('5 failures in a row: the mail provider refused the message (422)')
  expect(call.remaining).toBe(300)
  // The messages in flight when the fifth answer came.
  expect(it.messages.length).toBeLessThan(60)
  for (const row of await it.rows()) expect(row).toMatchObject(untouched)
  it.answer((message) => ({ kind: 'sent', id: message.key }))
  expect(await it.course.dispatch({ limit: 1000 })).toMatchObject({ sent: 300 })
})

test('a single refusal among accepted messages parks only that message for an operator', async () => {
  const it = await courseWith(200, { kind: 'memory' })
  it.answer((message) =>
    message.to.address === 'p0@example.com'
      ? sender('the mail provider refused the message (422)')
      : { kind: 'sent', id: message.key },
  )
  const call = await it.course.dispatch({ limit: 1000 })
  expect(call).toMatchObject({ sent: 199, failed: 1 })
  expect(call.reason).toBeUndefined()
  expect((await it.rows())[0]).toMatchObject({ problem: { kind: 'parked' }, nextAttemptAt: undefined })
})

test('the only message of a call that is refused is tried again, and the call says why it was not sent', async () => {
  const it = await courseWith(1, { kind: 'memory' })
  it.answer(() => sender('the mail server refused the message (554)'))
  expect(await it.course.dispatch({ limit: 10 })).toMatchObject({
    processed: 1,
    failed: 1,
    remaining: 1,
    reason: 'the mail server refused the message (554)',
  })
  expect(await it.rows()).toMatchObject([untouched])
})

const POLICY = 'the mail server’s policy refused the message (554)'
const policy: Outcome = { kind: 'transient', scope: 'sender', isUnclear: true, reason: POLICY }

test('a policy that refuses the only lesson of a call is on record, and lessons are late within two hours', async () => {
  const it = await courseWith(1, { kind: 'memory' })
  it.answer(() => policy)
  for (let hours = 0; hours < 2; hours += 1) {
    await it.course.dispatch({ limit: 10 })
    it.pass(HOUR_MS)
  }
  const problem = { kind: 'failed', reason: POLICY }
  expect(await it.rows()).toMatchObject([{ problem, failures: 0, sentDays: [] }])
  const { stalledAt } = await it.store.course.late({ now: it.now(), before: it.now() - HOUR_MS })
  expect(stalledAt).toBeLessThan(START)
  it.answer((message) => ({ kind: 'sent', id: message.key }))
  expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 1 })
})

test('a lesson that a policy refuses twice is parked once others were taken in between, however few leave at once', async () => {
  const it = await courseWith(2, { kind: 'memory' })
  const refuseFirst = (others: Outcome) =>
    it.answer(({ to }) => (to.address === 'p0@example.com' ? policy : others))
  refuseFirst({ kind: 'transient', scope: 'message', reason: 'try later' })
  for (let calls = 0; calls < 2; calls += 1) {
    await it.course.dispatch({ limit: 10 })
    it.pass(10 * MINUTE_MS)
  }
  expect(await it.rows()).toMatchObject([{ problem: { kind: 'failed' } }, { problem: { kind: 'failed' } }])
  refuseFirst({ kind: 'sent', id: 'taken' })
  for (let calls = 0; calls < 2; calls += 1) {
    await it.course.dispatch({ limit: 10 })
    it.pass(10 * MINUTE_MS)
  }
  expect(await it.rows()).toMatchObject([{ problem: { kind: 'parked' } }, { sentDays: [1] }])
})

test.each<[string, Outcome]>([
  ['by its policy', policy],
  ['for good', { kind: 'permanent', hardBounce: false, reason: 'no' }],
])(
  'fifty early people whom a provider refuses %s hold up nobody else, and most are parked',
  async (_, refusal) => {
    const it = await courseWith(150, { kind: 'memory' })
    it.answer(({ to }) =>
      Number(/\d+/.exec(to.address)?.[0]) < 50 ? refusal : { kind: 'sent', id: 'taken' },
    )
    for (const day of [1, 2]) {
      await it.course.dispatch({ limit: 1000 })
      const others = (await it.rows()).slice(50)
      expect(others.map((row) => row?.sentDays.length)).toEqual(Array(100).fill(day))
      it.pass(DAY_MS)
    }
    const refused = (await it.rows()).slice(0, 50).filter((row) => row?.problem?.kind === 'parked')
    expect(refused.length).toBeGreaterThan(30)
  },
)

test.each<[string, Outcome]>([
  ['550', { kind: 'permanent', hardBounce: false, reason: '550' }],
  ['554', policy],
  ['535', sender('535')],
])(
  'an hour’s limit that a provider answers with %s parks nobody, however often it is met',
  async (_, limited) => {
    const it = await courseWith(60, { kind: 'memory' })
    let left = 0
    it.answer(async () => {
      await new Promise((resolve) => setImmediate(resolve))
      left -= 1
      return left >= 0 ? { kind: 'sent', id: 'taken' } : limited
    })
    for (let minutes = 0; minutes < 180; minutes += 5) {
      if (minutes % 60 === 0) left = 20
      await it.course.dispatch({ limit: 1000 })
      it.pass(5 * MINUTE_MS)
    }
    for (const row of await it.rows()) expect(row).toMatchObject({ sentDays: [1], problem: undefined })
  },
)

test('equal permanent refusals in a row stop the call and park no lesson', async () => {
  const it = await courseWith(30, { kind: 'memory' })
  it.answer(() => ({ kind: 'permanent', hardBounce: false, reason: 'no' }))
  expect(await it.course.dispatch({ limit: 1000 })).toMatchObject({ reason: '5 failures in a row: no' })
  for (const row of await it.rows()) expect(row).toMatchObject(untouched)
})

test('the fifth equal refusal in a row stops a call; four, another reason or a message taken between do not', async () => {
  const refusals = createRefusals()
  const verdicts: (string | undefined)[] = []
  const refuse = (reason: string, times: number) => {
    for (let n = 0; n < times; n += 1) {
      refusals.handOver()
      void refusals
        .refused({ kind: 'permanent', hardBounce: false, reason })
        .then((about) => verdicts.push(about))
    }
  }
  refuse('no', 4)
  refuse('never', 4)
  refusals.accepted(refusals.handOver())
  refuse('never', 4)
  expect(refusals.stop).toBeUndefined()
  await Promise.resolve()
  expect(verdicts).toEqual(Array(8).fill('one'))
  refuse('never', 1)
  expect(refusals.stop).toBe('5 failures in a row: never')
  await Promise.resolve()
  expect(verdicts.slice(8)).toEqual(Array(5).fill('all'))
  // Whatever is refused after that is about us too, and the first reason stays.
  refuse('other', 1)
  await Promise.resolve()
  expect(verdicts.slice(13)).toEqual(['all'])
  refuse('other', 4)
  expect(refusals.stop).toBe('5 failures in a row: never')
})

test('a refusal is about its message only once a message that was handed over after it is taken', async () => {
  const refusals = createRefusals()
  const before = refusals.handOver()
  const own = refusals.handOver()
  const verdict: string[] = []
  void refusals
    .refused({ kind: 'transient', scope: 'sender', reason: 'no' })
    .then((about) => verdict.push(about))
  for (const number of [before, own]) refusals.accepted(number)
  await Promise.resolve()
  expect(verdict).toEqual([])
  refusals.accepted(refusals.handOver())
  await Promise.resolve()
  expect(verdict).toEqual(['one'])
})

test.each([
  ['https://bücher.example', 'https://xn--bcher-kva.example'],
  ['https://www.example.com/a|b/', 'https://www.example.com/a%7Cb'],
  ['https://www.example.com/learn', 'https://www.example.com/learn'],
  // Each would end up in the middle of every link, so it counts as absent and is warned of.
  ['https://www.example.com/?x', 'http://localhost:3000'],
  ['https://www.example.com#x', 'http://localhost:3000'],
  ['https://user:pw@www.example.com', 'http://localhost:3000'],
])('links are made on the site address %s as on %s', async (given, used) => {
  const { siteUrl } = readSettings(learning, { NEXT_PUBLIC_SITE_URL: given }).site
  expect(siteUrl).toBe(used)
  const it = await courseWith(1, { kind: 'memory', siteUrl })
  expect(await it.course.dispatch({ limit: 10 })).toMatchObject({ sent: 1 })
})
