import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { createScrub } from '../../../src/core/reporting/scrub.ts'
import { openPlatform } from '../../../src/daemon/index.ts'
import {
  type ReporterInput,
  registerReporter,
  reportError,
  reportMessage,
  setUserContext,
  startReporting,
  withErrorReporting,
} from '../../../src/reporting.ts'
import { openTestStore } from '../../support/stores.ts'

function listening(): ReporterInput[] {
  const reports: ReporterInput[] = []
  registerReporter({ report: (report) => void reports.push(report) })
  onTestFinished(() => registerReporter(undefined))
  return reports
}

test('without a reporter every operation is a no-op', async () => {
  expect(reportError(new Error('x'), { a: 1 })).toBeUndefined()
  expect(reportMessage('x')).toBeUndefined()
  expect(setUserContext({ id: 'x' })).toBeUndefined()
  expect(withErrorReporting((a: number, b: number) => a + b)(1, 2)).toBe(3)
  for (const dsn of [undefined, '', ' \n']) {
    const { outcome, close } = await startReporting({ dsn })
    expect(outcome).toBe('off')
    await close()
  }
  // Nothing was kept for a reporter that comes later, nor does one get more once it has left.
  const reports = listening()
  expect(reports).toEqual([])
  registerReporter(undefined)
  setUserContext({ id: 'x' })
  expect(reports).toEqual([])
})

test('a reporter gets errors, messages and users with scrubbed context, and of a user only the id', () => {
  const reports = listening()
  const error = new Error('x')
  reportError(error, { page: '/play?c=canary', email: 'a@example.com', lesson: 3 })
  reportMessage('see https://user:pass@www.example.com/a?b=c#d', 'warning')
  setUserContext({ id: 'user-17', name: 'Anna' } as { id: string })
  setUserContext(undefined)
  expect(reports).toEqual([
    { kind: 'error', error, context: { page: '/play', email: '[removed]', lesson: 3 } },
    { kind: 'message', message: 'see https://www.example.com/a', level: 'warning', context: undefined },
    { kind: 'user', user: { id: 'user-17' } },
    { kind: 'user', user: undefined },
  ])
})

test('withErrorReporting reports errors and rejections, and passes them on unchanged', async () => {
  const reports = listening()
  const thrown = new Error('thrown')
  const rejected = new Error('rejected')
  const calls = withErrorReporting(
    function (this: { name: string }, how: 'throw' | 'reject' | 'resolve') {
      if (how === 'throw') throw thrown
      return how === 'reject' ? Promise.reject(rejected) : Promise.resolve(this.name)
    },
    { lesson: 3 },
  )
  expect(() => calls.call({ name: 'x' }, 'throw')).toThrow(thrown)
  await expect(calls.call({ name: 'x' }, 'reject')).rejects.toBe(rejected)
  expect(await calls.call({ name: 'x' }, 'resolve')).toBe('x')
  const promise = Promise.resolve('of its own class')
  expect(withErrorReporting(() => promise)()).toBe(promise)
  expect(reports).toEqual([
    { kind: 'error', error: thrown, context: { lesson: 3 } },
    { kind: 'error', error: rejected, context: { lesson: 3 } },
  ])
  // A reporter may come while the work goes on.
  registerReporter(undefined)
  const late = calls.call({ name: 'x' }, 'reject')
  const others = listening()
  await expect(late).rejects.toBe(rejected)
  expect(others).toHaveLength(1)
})

const throws = () => {
  throw new Error('no')
}
const hostile: Record<string, unknown> = {
  'a getter that throws': Object.defineProperty({}, 'x', { enumerable: true, get: throws }),
  'a revoked proxy': (() => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  })(),
  'a proxy without keys': new Proxy({}, { ownKeys: throws }),
  'a value that cannot be a text': Object.create(null),
  'a text that throws': { toString: throws, toJSON: throws },
  'a circle': (() => {
    const one: Record<string, unknown> = {}
    one.one = one
    return one
  })(),
  'great depth': Array.from({ length: 10_000 }).reduce<unknown>((inner) => ({ inner }), 'x'),
  'great width': Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, index])),
  'a long text': 'x'.repeat(1_000_000),
  'a symbol': Symbol('x'),
  'an invalid date': new Date(Number.NaN),
  null: null,
  'a function': () => {},
  'a bigint': 10n,
}

test.each(Object.keys(hostile))('%s anywhere makes nothing throw', (name) => {
  const value = hostile[name] as never
  for (const report of [() => {}, throws]) {
    registerReporter({ report })
    onTestFinished(() => registerReporter(undefined))
    reportError(value, value)
    reportError(new Error('x', { cause: value }), { value })
    reportMessage(value, value, value)
    setUserContext(value)
    setUserContext({ id: value })
    expect(withErrorReporting(() => 5, value)()).toBe(5)
  }
})

test('what an asynchronous reporter rejects with is lost, and ends no program', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  registerReporter({ report: async () => throws() })
  onTestFinished(() => registerReporter(undefined))
  reportError(new Error('x'))
  reportMessage('x')
  setUserContext({ id: 'x' })
  await new Promise(setImmediate)
  expect(unhandled).toEqual([])
})

test('scrubbing never throws and leaves no address, whatever it is given', () => {
  const scrub = createScrub({ secrets: ['hunter2-hunter2'] })
  fc.assert(
    fc.property(fc.anything(), fc.emailAddress(), fc.ipV4(), (anything, email, ip) => {
      // A slash before the sign is taken for a path.
      fc.pre(!email.includes('/@'))
      scrub.value({ anything })
      const text = JSON.stringify(scrub.value([`${email} hunter2-hunter2`, { deep: `from ${ip}` }]))
      expect(text).not.toContain('hunter2')
      expect(text).not.toContain(email)
      if (ip !== '127.0.0.1') expect(text).not.toContain(` ${ip}"`)
    }),
  )
})

test('a fault of a request is reported with its route, and never with the request’s content', async () => {
  const reports = listening()
  const store = await openTestStore(undefined)
  const confirm = () => Promise.reject(new TypeError('a fault'))
  const platform = openPlatform({ env: {}, store: { ...store, course: { ...store.course, confirm } } })
  onTestFinished(() => platform.close())
  const response = await platform.web.fetch(
    new Request(`http://web.example/api/email/confirm?token=${'canary'.repeat(6)}`, {
      headers: { 'X-Request-Id': 'given-by-caller-1' },
    }),
  )
  expect(response.status).toBe(500)
  expect(reports).toEqual([
    {
      kind: 'error',
      error: expect.any(TypeError),
      context: { service: 'web', route: 'confirm', requestId: 'given-by-caller-1' },
    },
  ])
})
