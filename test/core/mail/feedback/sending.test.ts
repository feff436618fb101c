import { describe, expect, test } from 'vitest'
import { auditEntry, PROGRAM } from '../../../../src/core/audit.ts'
import { MINUTE_MS } from '../../../../src/core/durations.ts'
import { systemClock, systemRandom } from '../../../../src/core/host.ts'
import { createTally } from '../../../../src/core/mail/feedback/pacer.ts'
import type { CountedKind, MailCount, SendingStore } from '../../../../src/core/mail/feedback/sending.ts'
import { coursePause, STREAMS, type StreamName } from '../../../../src/core/mail/holds.ts'
import { courseWith } from '../../../support/course.ts'
import { eventOf, hear } from '../../../support/feedback.ts'
import { incidentWith, openIncident } from '../../../support/incidents.ts'
import { addressOf, openTestStore, STORES } from '../../../support/stores.ts'
import { erasureOf } from '../../../support/subscribers.ts'

const NOW = Date.parse('2026-11-22T08:00:30Z')
const HOUR = 60 * 60 * 1000

const counts = (kind: CountedKind, count: number, at = NOW): MailCount => ({
  at,
  kind,
  source: 'ses',
  domain: 'gmail.com',
  count,
})
const at = (now: number) => ({ clock: { now: () => now }, random: systemRandom })
const RESUMED = { action: 'resume', operator: PROGRAM } as const
const audit = auditEntry(at(NOW), RESUMED)
const paused = async (sending: SendingStore) => coursePause(await sending.holds())
const resume = async (sending: SendingStore, now: number, entry = audit) =>
  coursePause(await sending.resume({ streams: ['course'], now, audit: entry }))

describe.each(STORES)('on the store %s', (kind) => {
  const open = async () => openTestStore(await addressOf(kind))
  /** Checks whether the counts of each case trip the breaker, days after those of the case before. */
  async function eachTrips(cases: readonly (readonly [readonly MailCount[], boolean | string])[]) {
    const { sending } = await open()
    for (const [n, [given, trips]] of cases.entries()) {
      const later = n * 96 * HOUR
      await sending.count(given.map((one) => ({ ...one, at: one.at + later })))
      const pause = await sending.check(NOW + later)
      expect(typeof trips === 'string' ? pause?.reason : pause !== undefined, JSON.stringify(given)).toBe(
        trips,
      )
      await resume(sending, NOW + later, auditEntry(at(NOW), RESUMED))
    }
  }

  test('the breaker trips at 5 % hard bounces of at least 50 messages, and at five complaints and 0.3 %', async () => {
    const bounced = 'messages of the last day bounced hard; providers block senders at 5%'
    const reported = 'messages of the last day were reported as spam; providers block senders at 0.3%'
    await eachTrips([
      [[counts('complaint', 5)], false],
      [[counts('sent', 49), counts('hard-bounce', 49)], false],
      [[counts('sent', 100), counts('hard-bounce', 4)], false],
      [[counts('sent', 100), counts('hard-bounce', 5)], `5 of 100 ${bounced}`],
      [[counts('sent', 20), counts('complaint', 5)], `5 of 20 ${reported}`],
      [[counts('sent', 60), counts('complaint', 4)], false],
      [[counts('sent', 60), counts('complaint', 5)], `5 of 60 ${reported}`],
      [[counts('sent', 2001), counts('complaint', 6)], false],
      [[counts('sent', 2000), counts('complaint', 6)], `6 of 2000 ${reported}`],
      // Older than a day.
      [[counts('sent', 100), counts('hard-bounce', 50, NOW - 24 * HOUR - 60_000)], false],
      [[counts('sent', 100), counts('hard-bounce', 50, NOW - 23 * HOUR)], true],
      [[counts('sent', 100), counts('soft-bounce', 50)], false],
    ])
  })

  test('a message that the mail server refuses at once is one of those that the breaker counts', async () => {
    const refused = (count: number): MailCount => ({ ...counts('hard-bounce', count), source: 'send' })
    const bounced = 'messages of the last day bounced hard; providers block senders at 5%'
    await eachTrips([
      [[refused(49)], false],
      [[refused(50)], `50 of 50 ${bounced}`],
      [[counts('sent', 20), refused(300)], `300 of 320 ${bounced}`],
      [[counts('sent', 60), refused(3)], false],
      [[counts('sent', 58), refused(2), counts('hard-bounce', 1)], `3 of 60 ${bounced}`],
      [[counts('sent', 20), refused(29), counts('hard-bounce', 20)], false],
    ])
  })

  test('reports by mail, which anybody can write, never trip the breaker alone', async () => {
    const byMail = (kind: CountedKind, count: number) => ({ ...counts(kind, count), source: 'pipe' })
    const cases: [MailCount[], boolean][] = [
      [[byMail('complaint', 60), byMail('hard-bounce', 60)], false],
      // They count up to the number of those that a provider signed.
      [[counts('complaint', 2), byMail('complaint', 60)], false],
      [[counts('complaint', 3), byMail('complaint', 2)], true],
      [[counts('hard-bounce', 2), byMail('hard-bounce', 60)], false],
      [[counts('hard-bounce', 3), byMail('hard-bounce', 2)], true],
    ]
    await eachTrips(cases.map(([given, trips]) => [[counts('sent', 100), ...given], trips]))
  })

  test('one person who reports every lesson as spam counts once for the breaker', async () => {
    const store = await open()
    const { sending } = store
    await sending.count([counts('sent', 60)])
    // Reported late: it counts when it is heard.
    const complain = (name: string) =>
      hear(store, [eventOf('complaint', NOW - 72 * HOUR, { name })], { now: NOW, source: 'ses' })
    for (let lesson = 0; lesson < 7; lesson += 1) await complain('ada')
    expect(await paused(sending)).toBeUndefined()
    const delivered = eventOf('delivered', NOW)
    for (let n = 0; n < 2; n += 1) await hear(store, [delivered], { now: NOW, source: 'ses' })
    // A provider that repeats an event has told of no other.
    for (const [kind, count] of Object.entries({ complaint: 7, delivered: 1 }))
      expect(await sending.days(NOW)).toContainEqual(expect.objectContaining({ kind, count }))
    for (let n = 0; n < 4; n += 1) await complain(`p${n}`)
    expect(await paused(sending)).toMatchObject({ reason: expect.stringMatching(/^5 of 60 messages/) })
  })

  test('reports about somebody who was erased do not count for the breaker', async () => {
    const store = await open()
    await store.sending.count([counts('sent', 60)])
    const erasureHashes = () => ['hash of ada']
    await store.course.erase(erasureOf('ada', 'hash of ada', NOW))
    for (let lesson = 0; lesson < 7; lesson += 1)
      await hear(store, [eventOf('complaint', NOW)], { now: NOW, source: 'ses', erasureHashes })
    expect(await paused(store.sending)).toBeUndefined()
  })

  test('what a clock ten days ahead has counted and resumed decides nothing once it is right', async () => {
    const ahead = NOW + 240 * HOUR
    const { sending } = await open()
    await sending.count([counts('sent', 100, ahead), counts('complaint', 5, ahead)])
    expect(await sending.check(ahead)).toBeDefined()
    await resume(sending, ahead)
    expect(await sending.check(NOW)).toBeUndefined()
    await sending.count([counts('sent', 100), counts('complaint', 5)])
    expect(await sending.check(NOW)).toMatchObject({ at: NOW })
    await resume(sending, NOW, auditEntry(at(NOW), RESUMED))
    expect(await sending.check(NOW)).toBeUndefined()
  })

  test('a pause lasts until an operator ends it, and what was counted before asks for no other', async () => {
    const { sending, audit: log } = await open()
    expect(await resume(sending, NOW)).toBeUndefined()
    await sending.count([counts('sent', 100), counts('hard-bounce', 10)])
    const pause = await sending.check(NOW)
    expect(pause).toEqual({ at: NOW, reason: expect.stringMatching(/^10 of 100 messages/) })
    expect(await sending.check(NOW + 48 * HOUR)).toEqual(pause)
    expect(await sending.holds()).toEqual([{ stream: 'course', ...pause }])
    expect(await resume(sending, NOW + HOUR)).toEqual(pause)
    expect(await sending.check(NOW + HOUR)).toBeUndefined()
    expect(await log.list(5)).toMatchObject([{ action: 'resume' }])
    // What comes afterwards does, also within the same minute.
    await sending.count([counts('sent', 100, NOW + HOUR), counts('complaint', 5, NOW + HOUR)])
    expect(await sending.check(NOW + HOUR)).toMatchObject({ reason: expect.stringMatching(/^5 of 100/) })
    await resume(sending, NOW + HOUR)
    expect(await sending.check(NOW + HOUR)).toBeUndefined()
  })

  test('a breaker that finds its reason while an operator has paused courses adds it once, and who resumes reads both', async () => {
    const { sending, incidents } = await open()
    const typo = { streams: ['course'], reason: 'a typo', now: NOW - HOUR, audit } as const
    await sending.pause(typo)
    await openIncident(incidents, incidentWith({ cause: 'courses_paused', openedAt: NOW - HOUR }))
    await sending.count([counts('sent', 80), counts('complaint', 6)])
    const both = /^6 of 80 messages [^;]*; providers block senders at 0.3%; a typo$/
    const checks = await Promise.all([sending.check(NOW), sending.check(NOW)])
    for (const check of checks) expect(check).toEqual({ at: NOW - HOUR, reason: expect.stringMatching(both) })
    // The next round opens one for both reasons.
    expect(await incidents.list(1)).toMatchObject([{ closedAt: NOW, resolvedBy: 'the breaker' }])
    await sending.count([counts('complaint', 1)])
    await sending.pause(typo)
    expect(await sending.check(NOW)).toEqual(checks[0])
    // Many reasons, one that quotes the breaker's, and one that is a part of another do not hide the breaker's next.
    for (let n = 0; n < 20; n += 1)
      await sending.pause({ ...typo, reason: `${n}: ${'wrong prices '.repeat(9)}` })
    await sending.pause({ ...typo, reason: `quoted: ${checks[0]?.reason}` })
    await sending.pause({ ...typo, reason: 'typo' })
    expect((await paused(sending))?.reason).toMatch(/^typo; quoted: 6 of 80 .*%; a typo; 19: /)
    expect((await sending.check(NOW))?.reason).toMatch(/^7 of 80 .*%; typo; quoted: .{700,}…$/)
    expect(await sending.check(NOW)).toEqual(await paused(sending))
    expect(await resume(sending, NOW)).toMatchObject({ reason: expect.stringMatching(/^7 of 80 /) })
    expect(await sending.check(NOW)).toBeUndefined()
  })

  test('an operator pauses streams: a paused one keeps its time and has both reasons, and each change is audited once', async () => {
    const { sending, audit: log } = await open()
    const entry = (action: 'pause' | 'resume', now: number) =>
      auditEntry(at(now), { action, operator: PROGRAM, details: `at ${now}` })
    const pause = (streams: readonly StreamName[], reason: string, now: number) =>
      sending.pause({ streams, reason, now, audit: entry('pause', now) })
    const breaker = { stream: 'course', at: 1, reason: 'too many complaints' } as const
    expect(await pause(['course'], breaker.reason, 1)).toEqual([breaker])
    const mail = { stream: 'mail', at: 2, reason: 'wrong prices for [address]' } as const
    const given = 'wrong prices for ada@example.com'
    const course = { ...breaker, reason: `${mail.reason}; ${breaker.reason}` }
    expect(await pause(['course', 'mail'], given, 2)).toEqual([course, mail])
    expect(await pause(['mail'], given, 3)).toEqual([mail])
    expect(await sending.holds()).toEqual([course, mail])
    expect(await sending.check(NOW)).toEqual({ at: 1, reason: course.reason })
    const resumeAll = (now: number) => sending.resume({ streams: STREAMS, now, audit: entry('resume', now) })
    expect(await resumeAll(4)).toEqual([course, mail])
    expect(await resumeAll(5)).toEqual([])
    expect((await log.list(9)).map(({ action, details }) => `${action} ${details}`)).toEqual([
      'resume at 4',
      'pause at 2',
      'pause at 1',
    ])
  })

  test('counts are kept by day, source and domain', async () => {
    const { sending } = await open()
    await sending.count([counts('sent', 2), counts('sent', 3), counts('delivered', 1, NOW - 30 * HOUR)])
    await sending.count([counts('sent', 1)])
    const of = (day: string, name: CountedKind, count: number) => ({
      day,
      kind: name,
      source: 'ses',
      domain: 'gmail.com',
      count,
    })
    expect(await sending.days(NOW - 48 * HOUR)).toEqual([
      of('2026-11-21', 'delivered', 1),
      of('2026-11-22', 'sent', 6),
    ])
    expect(await sending.days(NOW)).toEqual([of('2026-11-22', 'sent', 6)])
  })

  test('places are handed out once, one after the other, however many ask at once', async () => {
    const address = await addressOf(kind)
    // SQLite measures by a clock that a test can hold; PostgreSQL by its own.
    const stores = await Promise.all(
      Array.from({ length: kind === 'memory' ? 1 : 4 }, () => openTestStore(address, () => 1_000_000)),
    )
    const intervalUs = 200_000
    const waits = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        stores[n % stores.length]?.sending.reserve({ messages: 2, intervalUs }),
      ),
    )
    const sorted = waits.map((wait) => wait ?? 0).sort((a, b) => a - b)
    const most = 39 * 2 * intervalUs
    if (kind === 'postgres') {
      expect(sorted.at(-1)).toBeLessThanOrEqual(most)
      expect(sorted.at(-1)).toBeGreaterThan(most - 10_000_000)
    } else expect(sorted).toEqual(Array.from({ length: 40 }, (_, n) => n * 2 * intervalUs))
  })
})

test('counts are summed up by minute, kind, source and domain, and all are written at the end', async () => {
  const written: MailCount[] = []
  const tally = createTally(async () => ({ count: async (rows) => void written.push(...rows) }), {
    monotonic: () => 0,
  })
  const gmail = { ...counts('sent', 1), domain: 'gmail.com' }
  const different = [
    gmail,
    counts('complaint', 1),
    { ...gmail, source: 'other' },
    { ...gmail, at: NOW + MINUTE_MS },
  ]
  for (const one of different) for (let n = 0; n < 1000; n += 1) await tally.add(one)
  await tally.flush()
  await tally.flush()
  expect(written).toEqual(different.map((one) => ({ ...one, count: 1000 })))
})

test('a burst of bounces stops a dispatch that is under way within 60 seconds', async () => {
  const it = await courseWith(900, { kind: 'memory' })
  const { sending } = it.store
  let elapsed = 0
  const now = () => NOW + elapsed
  const reports: { readonly at: number; readonly name: string }[] = []
  let trippedAt: number | undefined
  let lastSentAt = 0
  /** Delivers all pending reports of the provider in one webhook. */
  async function hearAll() {
    const due = reports.filter(({ at }) => at <= elapsed)
    if (due.length === 0) return
    reports.splice(0, due.length)
    const events = due.map(({ name }) => eventOf('hard-bounce', now(), { name }))
    const { pause } = await hear(it.store, events, { now: now() })
    if (pause) trippedAt ??= elapsed
  }
  const course = it.open(it.store.course, {
    isPaused: async () => (await sending.check(now())) !== undefined,
    timer: { monotonic: () => elapsed, sleep: systemClock.sleep },
  })
  // Ten lessons a second. After fifty every tenth recipient is unknown, which is reported five seconds later.
  it.answer(async (message) => {
    elapsed += 100
    lastSentAt = elapsed
    await sending.count([counts('sent', 1, now())])
    if (it.messages.length > 50 && it.messages.length % 10 === 0)
      reports.push({ at: elapsed + 5000, name: message.to.address.split('@')[0] ?? '' })
    await hearAll()
    return { kind: 'sent', id: message.key }
  })
  const result = await course.dispatch({ limit: 900 })
  expect(result.reason).toBe('paused')
  expect(trippedAt).toBeDefined()
  expect(lastSentAt - (trippedAt ?? 0)).toBeLessThanOrEqual(60_000)
  expect(result.remaining).toBeGreaterThan(50)
})
