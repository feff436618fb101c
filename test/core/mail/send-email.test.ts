import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../src/core/host.ts'
import type { Transport } from '../../../src/core/mail/mailer.ts'
import { openMailer } from '../../../src/core/mail/open.ts'
import { createSendEmail, type SendEmailInput } from '../../../src/core/mail/send-email.ts'
import { isEmailConfigured } from '../../../src/daemon/index.ts'
import { compiledMails } from '../../support/learning.ts'
import { EXAM, mailerTo } from '../../support/mailers.ts'
import { testTransport } from '../../support/test-transport.ts'

const INPUT: SendEmailInput = {
  template: 'exam-passed',
  to: 'Ada <ada@example.com>',
  slots: EXAM,
  about: 'exam.1',
}
const MAILS = { definitions: [], compiled: compiledMails }
const CANARY = 'canary'

/** Throws at the Nth thing that is done with anything it watches, however deep. */
function faultAt(nth: number) {
  let steps = 0
  const step = () => {
    steps += 1
    if (steps === nth) throw new Error(CANARY)
  }
  const seen = new WeakMap<object, object>()
  const watched = <T>(value: T): T => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return value
    if (value instanceof Date || value instanceof Promise) return value
    const known = seen.get(value)
    if (known) return known as T
    const proxy = new Proxy<object>(value, {
      get(target, key, receiver) {
        step()
        const found: unknown = Reflect.get(target, key, receiver)
        // Members of the language itself (iterators, methods of arrays) work on real objects only.
        return Object.hasOwn(target, key) ? watched(found) : found
      },
      ownKeys(target) {
        step()
        return Reflect.ownKeys(target)
      },
      apply(target, self, args) {
        step()
        // Only functions are called.
        return watched(Reflect.apply(target as () => unknown, self, args))
      },
    })
    seen.set(value, proxy)
    return proxy as T
  }
  return { watched, happened: () => steps >= nth }
}

test('a fault injected at every single step, one after the other, is a reason and is never thrown', async () => {
  const compiled = structuredClone(await compiledMails())
  let nth = 1
  for (; ; nth += 1) {
    const { watched, happened } = faultAt(nth)
    const sent: unknown[] = []
    const own = testTransport(
      watched(async (message) => {
        sent.push(message.subject + message.html + message.text + Object.values(message.headers).join())
        return { kind: 'sent', id: 'id' }
      }),
    )
    const sendEmail = createSendEmail(
      openMailer({
        mail: undefined,
        transport: own,
        from: { name: undefined, address: 'course@example.com' },
        compiled: async () => watched(compiled),
      }),
      watched({ ...systemClock }),
      MAILS,
    )
    const result = await sendEmail(watched({ ...INPUT }))
    if (!happened()) {
      expect(result).toEqual({ sent: true, id: 'id' })
      expect(sent).toHaveLength(1)
      break
    }
    if (result.sent) continue
    expect(result.reason).toMatch(/^[a-z ]+$/)
    expect(result.reason).not.toContain(CANARY)
  }
  expect(nth).toBeGreaterThan(50)
})

const own = (send: Transport['send']) =>
  createSendEmail(
    openMailer({ compiled: compiledMails, mail: undefined, transport: testTransport(send) }),
    systemClock,
    MAILS,
  )
const takes = own(async () => ({ kind: 'sent', id: 'id' }))

// Callers without types give what they have.
const wrong = (input: unknown) => input as SendEmailInput

test.each([
  ['nothing', wrong(undefined)],
  ['no object', wrong('welcome')],
  ['an unknown template', wrong({ ...INPUT, template: 'newsletter' })],
  ['the name of an inherited property', wrong({ ...INPUT, template: 'constructor' })],
  ['a recipient that is no text', wrong({ ...INPUT, to: { toString: null } })],
  ['a malformed address', { ...INPUT, to: 'ada' }],
  ['a second recipient', { ...INPUT, to: 'ada@example.com, eve@example.com' }],
  ['a header in the name', { ...INPUT, to: 'Ada\r\nBcc: eve@example.com <ada@example.com>' }],
  ['an empty key, which two mails would share', { ...INPUT, about: ' ' }],
  ['no slots', wrong({ ...INPUT, slots: null })],
  ['a missing slot', { ...INPUT, slots: { exam: 'x', score: 'x' } }],
  ['a slot that is no text', wrong({ ...INPUT, slots: { ...INPUT.slots, exam: 7 } })],
  ['a slot too many', { ...INPUT, slots: { ...INPUT.slots, other: 'x' } }],
  ['a script as an address', { ...INPUT, slots: { ...INPUT.slots, resultUrl: 'javascript:alert(1)' } }],
  ['a line end in a slot', { ...INPUT, slots: { ...INPUT.slots, exam: 'a\r\nBcc: eve@example.com' } }],
  ['half a character in a slot', { ...INPUT, slots: { ...INPUT.slots, exam: '\ud800' } }],
  ['a language that is no text', wrong({ ...INPUT, language: {} })],
  ['a date that is none', wrong({ ...INPUT, date: new Date(Number.NaN) })],
  ['a subject that cannot be text', wrong({ ...INPUT, about: Symbol('about') })],
])('%s is refused with a reason', async (_, input) => {
  expect(await takes(input)).toEqual({ sent: false, reason: expect.stringMatching(/^[a-zA-Z ]+[^:]*$/) })
})

test.each([undefined, null, {}, { kind: 'sent' }, { kind: 'delivered', id: 'x' }, { kind: 'unknown' }])(
  'a transport of one’s own that answers %j leaves the outcome unknown, and nothing is thrown',
  async (answer) => {
    const result = await own(async () => answer as never)(INPUT)
    expect(result).toEqual({ sent: false, reason: 'the mail transport failed' })
  },
)

test('a mail is given up where its transport never answers and no store holds its key', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const begun = Promise.withResolvers<void>()
  const send = () => {
    begun.resolve()
    return new Promise<never>(() => {})
  }
  const transport = { ...testTransport(send), patienceMs: 1000 }
  const mailer = openMailer({ mail: undefined, transport, compiled: compiledMails })
  const sending = createSendEmail(mailer, systemClock, MAILS)(INPUT)
  await begun.promise
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await sending).toEqual({ sent: false, reason: 'the provider did not answer in time' })
})

test('an address of the transport that cannot be read is a reason', async () => {
  const mailer = mailerTo('no address')
  expect(await createSendEmail(mailer, systemClock, MAILS)(INPUT)).toEqual({
    sent: false,
    reason: 'the mail transport could not be opened',
  })
})

test('mail is configured only with its key, and unconfigured sending says so', async () => {
  const env = { MAILER_API_URL: 'https://mail.example.com/emails', MAILER_FROM: 'course@example.com' }
  expect(isEmailConfigured({})).toBe(false)
  expect(isEmailConfigured(env)).toBe(false)
  expect(isEmailConfigured({ ...env, MAILER_API_KEY: ' ' })).toBe(false)
  expect(isEmailConfigured({ MAILER_API_KEY: 'a-key-of-a-provider' })).toBe(false)
  expect(isEmailConfigured({ ...env, MAILER_API_KEY: 'a-key-of-a-provider' })).toBe(true)
  const none = createSendEmail(openMailer({ mail: undefined, compiled: compiledMails }), systemClock, MAILS)
  expect(await none(INPUT)).toEqual({ sent: false, reason: 'mail is not configured' })
})

test('while the store cannot be opened, a durable mail is not sent at once instead, and another is', async () => {
  const transport = testTransport(async () => ({ kind: 'sent', id: 'id' }))
  const mailer = openMailer({ compiled: compiledMails, mail: undefined, transport })
  const closed = () => Promise.reject(new Error('the store is away'))
  const sendEmail = createSendEmail(mailer, systemClock, MAILS, undefined, closed)
  expect(await sendEmail({ ...INPUT, durable: true })).toEqual({
    sent: false,
    reason: 'the mail could not be stored now; try again later',
  })
  expect(await sendEmail(INPUT)).toEqual({ sent: true, id: 'id' })
})
