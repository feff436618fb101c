import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../../src/core/durations.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { secret } from '../../../src/core/secret.ts'
import { courseWith } from '../../support/course.ts'
import { compiledMails } from '../../support/learning.ts'
import { testTransport } from '../../support/test-transport.ts'

const BUSY = { kind: 'transient', scope: 'message', reason: 'cannot take it now (503)' } as const

test('a provider that takes nothing for two days parks nobody: each lesson leaves once it takes them again', async () => {
  const it = await courseWith(12)
  it.answer(() => BUSY)
  for (let passed = 0; passed < 48 * HOUR_MS; passed += 5 * MINUTE_MS) {
    await it.course.dispatch({})
    it.pass(5 * MINUTE_MS)
  }
  expect(it.messages.length).toBeGreaterThan(12 * 12)
  it.answer(({ key }) => ({ kind: 'sent', id: key }))
  it.pass(6 * HOUR_MS)
  expect(await it.course.dispatch({})).toMatchObject({ sent: 12, failed: 0 })
})

test('a lesson that fails twelve times while others are taken is parked', async () => {
  const it = await courseWith(3)
  const ofOne = () => it.messages.filter(({ to }) => to.address === 'p0@example.com').length
  it.answer((message) => (message.to.address === 'p0@example.com' ? BUSY : { kind: 'sent', id: message.key }))
  for (let passed = 0; passed < 60 * HOUR_MS; passed += 5 * MINUTE_MS) {
    await it.course.dispatch({})
    it.pass(5 * MINUTE_MS)
  }
  expect(ofOne()).toBeGreaterThanOrEqual(12)
  const [one] = await it.rows()
  expect(one).toMatchObject({ nextAttemptAt: undefined, problem: { kind: 'parked' } })
  const before = ofOne()
  it.pass(12 * HOUR_MS)
  await it.course.dispatch({})
  expect(ofOne()).toBe(before)
})

test('a lesson that may have been delivered is repeated with the same bytes, whatever was configured or chosen since', async () => {
  const it = await courseWith(1)
  it.answer(() => ({ kind: 'unknown', reason: 'the line broke' }))
  await it.course.dispatch({})
  it.pass(10 * MINUTE_MS)
  const identity = 'p0@example.com'
  const again = it.open(it.store.course, {
    site: 'https://elsewhere.example.com',
    more: {
      linkKey: secret('another key for links in tests only'),
      mailer: openMailer({
        compiled: compiledMails,
        mail: {
          key: secret('key'),
          route: { kind: 'smtp', url: secret('smtp://127.0.0.1:1') },
          from: { name: undefined, address: 'other@example.org' },
          replyTo: { name: undefined, address: 'help@example.com' },
        },
        transport: testTransport(async (message) => {
          it.messages.push(message)
          return { kind: 'sent', id: message.key }
        }),
      }),
    },
  })
  await again.set({ identity, language: 'de' })
  expect(await again.dispatch({})).toMatchObject({ sent: 1 })
  const [first, second] = it.messages
  expect(second).toEqual(first)
})
