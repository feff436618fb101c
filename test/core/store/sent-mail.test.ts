import { describe, expect, test } from 'vitest'
import { lessonsKey } from '../../../src/core/course/host.ts'
import { DAY_MS } from '../../../src/core/durations.ts'
import { RECIPIENT_CAPS } from '../../../src/core/mail/send-once.ts'
import type { Store } from '../../../src/core/store/store.ts'
import { byHand } from '../../support/by-hand.ts'
import { addressOf, openTestStore, STORES } from '../../support/stores.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const HOUR = 60 * 60 * 1000
const MAIL = { key: 'mail', now: NOW, recipient: 'r', caps: RECIPIENT_CAPS, content: 'c' }
/** The same mail, sent by the store's own queue. */
const QUEUED = { stream: 'mail', address: 'ada@example.com', payload: '{}' } as const
/** What is left in the store of who was to get a mail, and of what it said. */
const KEPT_OF = 'SELECT address, payload FROM message'
const KINDS = STORES.filter((kind) => kind !== 'memory')

describe.each(KINDS)('on the store %s', (kind) => {
  test('a recipient gets five mails in an hour and twenty in a day, over all processes and restarts', async () => {
    const address = await addressOf(kind)
    let stores = [await openTestStore(address), await openTestStore(address)]
    const ask = async (n: number, now: number, recipient = 'r') => {
      const { sentMail } = stores[n % 2] as Store
      const begun = await sentMail.begin({ ...MAIL, key: `mail-${n}`, now, recipient })
      await sentMail.release({ key: `mail-${n}`, now })
      return typeof begun === 'string' ? begun : begun.firstAttemptAt
    }
    for (let n = 0; n < 5; n += 1) expect(await ask(n, NOW)).toBe(NOW)
    expect(await ask(5, NOW + 1)).toBe('capped')
    // Another try of a mail that was begun is no other mail, and another recipient is nobody's fault.
    expect(await ask(0, NOW + 1)).toBe(NOW)
    expect(await ask(6, NOW + 1, 'hash-of-another')).toBe(NOW + 1)
    let begun = 5
    for (const one of stores) await one.close()
    stores = [await openTestStore(address), await openTestStore(address)]
    for (let n = 10; n < 50; n += 1) {
      const asked = await ask(n, NOW + Math.floor(n / 5) * HOUR)
      if (asked !== 'capped') begun += 1
    }
    expect(begun).toBe(20)
    expect(await ask(60, NOW + 48 * HOUR)).toBe(NOW + 48 * HOUR)
    // What a clock sent that was ahead keeps nobody from a mail once it is set back.
    expect(await ask(61, NOW - 48 * HOUR)).toBe(NOW - 48 * HOUR)
  })

  test('records an id with characters that no database can hold, so that its mail is not sent again', async () => {
    const { sentMail } = await openTestStore(await addressOf(kind))
    await sentMail.begin(MAIL)
    await sentMail.recordSent({ key: 'mail', id: 'a \0 of \ud83d', now: NOW })
    expect(await sentMail.begin(MAIL)).toMatchObject({ sentId: expect.stringMatching(/^a/) })
  })

  test('a bounce is of a mail only for whom it was sent to', async () => {
    const { sentMail, feedback } = await openTestStore(await addressOf(kind))
    await sentMail.begin(MAIL)
    await sentMail.recordSent({ key: 'mail', id: 'of-r@example.com', now: NOW })
    const ask = (recipient: string) =>
      feedback.wasSent({ identity: 'a@example.com', recipients: [recipient], messageId: 'of-r@example.com' })
    expect([await ask('r'), await ask('of another')]).toEqual([true, false])
  })

  test('a process whose hold of a key is over does not release that of the next', async () => {
    const { sentMail } = await openTestStore(await addressOf(kind))
    const begin = (now: number) => sentMail.begin({ ...MAIL, now })
    await begin(NOW)
    expect(await begin(NOW + 80_000)).toBe('sending')
    expect(await begin(NOW + 100_000)).toMatchObject({ sentId: undefined })
    await sentMail.release({ key: 'mail', now: NOW })
    expect(await begin(NOW + 101_000)).toBe('sending')
    // A hold that a clock ahead has dated ends with that clock, and not when its time comes.
    expect(await begin(NOW - 3_600_000)).toMatchObject({ sentId: undefined })
  })

  test('a mail that expired while its stream was paused is recorded, without what it said, and deleted a month later', async () => {
    const address = await addressOf(kind)
    const { course, sentMail, sending } = await openTestStore(address)
    await sentMail.begin({ ...MAIL, mail: QUEUED })
    const at = NOW + 40 * DAY_MS
    await course.pruneUnconfirmed(at - 30 * DAY_MS)
    expect(await sending.queue(at)).toMatchObject([{ stream: 'mail', due: 0, failed: 1 }])
    expect(await byHand(address, KEPT_OF)).toEqual([{ address: null, payload: '' }])
    expect(await course.claimMessages({ stream: 'mail', now: at, limit: 9, leaseMs: 90_000 })).toEqual([])
    await course.pruneUnconfirmed(at + 1)
    expect(await sending.queue(at)).toEqual([])
  })

  test('which lessons the courses had for a dispatch call is forgotten after its time, and nothing else of mail', async () => {
    const { course, sentMail } = await openTestStore(await addressOf(kind))
    await sentMail.begin(MAIL)
    await course.keepTexts({ [lessonsKey('call-1')]: 'then', 'tried a lesson': 'as it was' }, NOW)
    await course.keepTexts({ [lessonsKey('call-2')]: 'now' }, NOW + 1)
    await course.pruneUnconfirmed(NOW + 1)
    const kept = ['call-1', 'call-2'].map((call) => course.keptText(lessonsKey(call)))
    expect(await Promise.all([...kept, course.keptText('tried a lesson')])).toEqual([
      undefined,
      'now',
      'as it was',
    ])
    expect(await sentMail.begin({ ...MAIL, content: 'another' })).toBe('conflict')
  })

  test('a mail whose note a build before left without its content takes the first that comes, and no other', async () => {
    const address = await addressOf(kind)
    const { sentMail } = await openTestStore(address)
    await byHand(address, `INSERT INTO sent_mail (key, first_attempt_at) VALUES ('mail', ${NOW - HOUR})`)
    expect(await sentMail.begin(MAIL)).toMatchObject({ firstAttemptAt: NOW - HOUR })
    expect(await sentMail.begin({ ...MAIL, content: 'another' })).toBe('conflict')
  })

  test('a mail in hand is taken by no other process when the clock of leases goes back a little, but after a reboot', async () => {
    let elapsed = 1_000_000
    const store = await openTestStore(await addressOf(kind), () => elapsed)
    await store.sentMail.begin({ ...MAIL, mail: QUEUED })
    const take = async () => {
      const asked = { stream: 'mail', now: NOW, limit: 9, leaseMs: 90_000 } as const
      return (await store.course.claimMessages(asked)).length
    }
    expect(await take()).toBe(1)
    elapsed -= 50
    expect(await take()).toBe(0)
    elapsed = 1
    expect(await take()).toBe(1)
  })

  test('who lost a mail to another process decides nothing more of it, but that it was sent; stored anew, it begins anew', async () => {
    let elapsed = 1_000_000
    const address = await addressOf(kind)
    const { sentMail, course } = await openTestStore(address, () => elapsed)
    const take = (now = NOW) => course.claimMessages({ stream: 'mail', now, limit: 9, leaseMs: 90_000 })
    const settle = (claims: Awaited<ReturnType<typeof take>>, result: 'sent' | 'waits' | 'over') => {
      const problem = result === 'over' ? ({ kind: 'parked', reason: 'no', since: NOW } as const) : undefined
      const record = { result, nextAttemptAt: NOW, failures: 1, problem, untried: false }
      const about = { record, now: NOW, outcome: result, reason: undefined, providerId: 'p' }
      return course.settleMessages(claims.map((claim) => ({ claim, ...about })))
    }
    await sentMail.begin({ ...MAIL, mail: QUEUED })
    const lost = await take()
    elapsed += 90_000
    // Found a day later, the attempt that was lost is as old as its claim: a provider has forgotten its key by then.
    expect(await take(NOW + 24 * HOUR)).toMatchObject([{ unknownSince: NOW }])
    for (const result of ['waits', 'over'] as const) {
      await settle(lost, result)
      expect(await take()).toEqual([])
    }
    await course.keepMessages({ messages: lost, leaseMs: 150_000 })
    elapsed += 90_000
    const held = await take()
    expect(held).toMatchObject([{ attempts: 0, unknownSince: NOW }])
    await settle(held, 'waits')
    await settle(await take(), 'over')
    expect(await byHand(address, KEPT_OF)).toEqual([{ address: null, payload: '' }])
    await sentMail.begin({ ...MAIL, now: NOW + HOUR, mail: QUEUED })
    const expiresAt = NOW + HOUR + 3 * DAY_MS
    expect(await take(NOW + HOUR)).toMatchObject([{ attempts: 0, unknownSince: undefined, expiresAt }])
    await settle(lost, 'sent')
    elapsed += 90_000
    expect(await take(NOW + HOUR)).toEqual([])
  })

  test('of many concurrent requests, no more than the cap begin', async () => {
    const address = await addressOf(kind)
    const stores = await Promise.all([1, 2, 3].map(() => openTestStore(address)))
    const begun = await Promise.all(
      Array.from({ length: 30 }, (_, n) => stores[n % 3]?.sentMail.begin({ ...MAIL, key: `mail-${n}` })),
    )
    expect(begun.filter((one) => one !== 'capped')).toHaveLength(5)
  })
})
