import { expect, onTestFinished, test, vi } from 'vitest'
import { readSettings } from '../../src/core/env/settings.ts'
import { codeError } from '../../src/core/errors.ts'
import type { LiveNetwork } from '../../src/core/live/network.ts'
import { portOf } from '../../src/core/network/connect.ts'
import { watchCertificates } from '../../src/daemon/certificates.ts'
import { learning } from '../../src/presets/learning/platform.ts'
import { keptLog } from '../support/opened.ts'

const NOW = Date.UTC(2026, 10, 22)
const DAY = 24 * 60 * 60 * 1000
const HOUR = 60 * 60 * 1000

type Found = { readonly left: number; readonly age?: number; readonly fault?: string } | undefined

/** A watch over these addresses, whose certificates `found` gives; each look waits for `again`. */
function watch(env: Record<string, string>, found: (signal: AbortSignal) => Found | Promise<Found>) {
  const asked: unknown[] = []
  const counted: unknown[] = []
  const slept: number[] = []
  const signals: AbortSignal[] = []
  let wake = () => {}
  let asleep = Promise.withResolvers<void>()
  const { log, lines } = keptLog()
  // Nothing else of the network is asked.
  const network = {
    certificate: async (where: object, signal: AbortSignal) => {
      asked.push(where)
      signals.push(signal)
      const one = await found(signal)
      if (one === undefined) throw new Error('canary')
      return { fault: one.fault, validFrom: NOW - (one.age ?? 60) * DAY, validTo: NOW + one.left * DAY }
    },
  } as unknown as LiveNetwork
  const watching = watchCertificates(
    {
      clock: {
        now: () => NOW,
        monotonic: () => 0,
        sleep: (ms, signal) =>
          new Promise((resolve, reject) => {
            slept.push(ms)
            if (signal?.aborted) return reject(signal.reason)
            wake = resolve
            signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
            asleep.resolve()
          }),
      },
      log,
    },
    readSettings(learning, env),
    learning.services,
    { certificate: (variable, state) => void counted.push([variable, state]) },
    network,
  )
  onTestFinished(() => watching.stop())
  const looked = () => asleep.promise
  const again = () => {
    asleep = Promise.withResolvers<void>()
    wake()
    return asleep.promise
  }
  const told = () => lines.map(({ level, event, days, fault }) => `${level} ${event} ${days ?? fault}`)
  return { watching, asked, lines, told, counted, slept, signals, looked, again }
}

const ONE = { SHAREDSTORE_REST_URL: 'https://limits.example', SHAREDSTORE_REST_TOKEN: 'token-of-the-store' }

test('a short-lived certificate is reported as not renewed only in its last third', async () => {
  const answers: Found[] = [
    { age: 1, left: 5 },
    { age: 0.01, left: 0.99 },
    { age: 3.8, left: 2.9 },
    { age: 4.5, left: 1.5 },
  ]
  const { looked, again, told } = watch(ONE, () => answers.shift())
  await looked()
  for (let n = 0; n < 2; n += 1) await again()
  expect(told()).toEqual([])
  await again()
  expect(told()).toEqual(['warn certificate_expiring 1'])
})

test('each change of a certificate is told once, and a bad one is looked at again after a minute instead of an hour', async () => {
  const answers: Found[] = [
    { left: 14 },
    { left: 13.99 },
    { left: 13.99 },
    { left: -1, fault: 'CERT_HAS_EXPIRED' },
    { left: -1, fault: 'CERT_HAS_EXPIRED' },
    undefined,
    { left: 80 },
    { left: 1 },
  ]
  const { told, slept, looked, again } = watch(ONE, () => answers.shift())
  await looked()
  while (answers.length > 0) await again()
  expect(told()).toEqual([
    'warn certificate_expiring 13',
    'error certificate_refused CERT_HAS_EXPIRED',
    'warn certificate_expiring 1',
  ])
  const minute = 60_000
  expect(slept).toEqual([HOUR, minute, minute, minute, minute, HOUR, HOUR, minute])
})

test('a certificate that ends soon is reported beside a good one, and checked again after a minute', async () => {
  const left = [80, 1, 80, 1]
  const two = { ...ONE, API_URL: 'https://api.example' }
  const { lines, slept, looked, again } = watch(two, () => ({ left: left.shift() ?? 80 }))
  await looked()
  await again()
  expect(lines).toMatchObject([{ event: 'certificate_expiring', variable: 'SHAREDSTORE_REST_URL', days: 1 }])
  expect(slept).toEqual([60_000, 60_000])
})

test('all are read once each server was, or offers no encryption', async () => {
  const answers: Found[] = [undefined, { left: 30 }, undefined]
  const { watching, slept, looked, again } = watch(ONE, () => answers.shift())
  await looked()
  expect(watching.areRead()).toBe(false)
  await again()
  expect(watching.areRead()).toBe(true)
  await again()
  expect(watching.areRead()).toBe(true)
  expect(slept).toEqual([60_000, HOUR, HOUR])
  const plain = watch(ONE, () => Promise.reject(codeError('no_starttls')))
  await plain.looked()
  expect(plain.watching.areRead()).toBe(true)
})

test('a server that is not reached within an hour holds no alert about another open', async () => {
  const { watching, slept, looked, again } = watch(ONE, () => undefined)
  await looked()
  for (let minute = 1; minute < 60; minute += 1) await again()
  expect(watching.areRead()).toBe(false)
  await again()
  expect(watching.areRead()).toBe(true)
  expect(slept.at(-1)).toBe(HOUR)
})

test('what was found last is kept while a server does not answer, and the metrics are told that it does not', async () => {
  const answers: Found[] = [{ left: 30 }, undefined, { left: 2, fault: 'CERT_REVOKED' }]
  const { watching, counted, looked, again } = watch(ONE, () => answers.shift())
  const known = (left: number, fault?: string) => [
    { variable: 'SHAREDSTORE_REST_URL', fault, validFrom: NOW - 60 * DAY, validTo: NOW + left * DAY },
  ]
  await looked()
  expect(watching.found()).toEqual(known(30))
  await again()
  expect(watching.found()).toEqual(known(30))
  await again()
  expect(watching.found()).toEqual(known(2, 'CERT_REVOKED'))
  expect(counted).toEqual([
    ['SHAREDSTORE_REST_URL', { validTo: NOW + 30 * DAY, valid: true }],
    ['SHAREDSTORE_REST_URL', undefined],
    ['SHAREDSTORE_REST_URL', { validTo: NOW + 2 * DAY, valid: false }],
  ])
})

const MAIL = { MAILER_API_KEY: 'mailer-key-value', MAILER_FROM: 'a@example.com' }

test.each<[what: string, env: Record<string, string>, places: readonly string[]]>([
  ['nothing', {}, []],
  ['plain http', { ...ONE, SHAREDSTORE_REST_URL: 'http://limits.example' }, []],
  [
    'a port of its own',
    { ...ONE, SHAREDSTORE_REST_URL: 'https://limits.example:8443' },
    ['limits.example:8443'],
  ],
  ['SMTP', { ...MAIL, MAILER_SMTP_URL: 'smtp://mail.example' }, ['mail.example:587 STARTTLS']],
  ['SMTPS', { ...MAIL, MAILER_SMTP_URL: 'smtps://user@mail.example' }, ['mail.example:465']],
  ['mail over HTTP', { ...MAIL, MAILER_API_URL: 'https://mail.example/emails' }, ['mail.example:443']],
  [
    'the data store',
    {
      NEXT_PUBLIC_DATASTORE_URL: 'https://data.example',
      NEXT_PUBLIC_DATASTORE_ANON_KEY: 'anon-key-of-the-data-store',
    },
    ['data.example:443'],
  ],
  [
    'payments',
    {
      PAYMENTS_SECRET_KEY: 'sk_test_0123456789abcdef',
      PAYMENTS_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
      PAYMENTS_PRICE_PRO_MONTHLY: 'price_0123456789',
      PAYMENTS_API_URL: 'https://pay.example/v1',
    },
    ['pay.example:443'],
  ],
  [
    'one host for two',
    { ...ONE, ...MAIL, MAILER_API_URL: 'https://limits.example/mail', API_URL: 'https://limits.example:444' },
    ['limits.example:444', 'limits.example:443'],
  ],
])('with %s it looks at %s', async (_, env, places) => {
  const { watching, asked, looked } = watch(env, () => ({ left: 30 }))
  if (places.length > 0) await looked()
  expect(
    (asked as URL[]).map(
      (url) => `${url.hostname}:${portOf(url)}${url.protocol === 'smtp:' ? ' STARTTLS' : ''}`,
    ),
  ).toEqual(places)
  // Under the name of the variable that holds the address.
  expect(watching.found().map(({ variable }) => variable in env)).toEqual(places.map(() => true))
})

test('once it stops, a look in progress is ended and what it finds is not told', async () => {
  const { watching, told, counted, signals } = watch(
    ONE,
    (signal) =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve({ left: 1 }), { once: true })),
  )
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  await watching.stop()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect([told(), counted, watching.found()]).toEqual([[], [], []])
})

test('a server has ten seconds to show its certificate', async () => {
  const limit = vi.spyOn(AbortSignal, 'timeout')
  onTestFinished(() => limit.mockRestore())
  const { looked } = watch(ONE, () => ({ left: 30 }))
  await looked()
  expect(limit.mock.calls).toEqual([[10_000]])
})
