import { expect, test } from 'vitest'
import { HOUR_MS } from '../../../src/core/durations.ts'
import type { Outcome } from '../../../src/core/mail/mailer.ts'
import { byHand } from '../../support/by-hand.ts'
import { courseWith } from '../../support/course.ts'
import { STORES } from '../../support/stores.ts'

const ANSWERS: Readonly<Record<string, Outcome>> = {
  'p0@example.com': { kind: 'unknown', reason: 'the line broke' },
  'p1@example.com': { kind: 'permanent', reason: 'refused', hardBounce: false },
  'p2@example.com': { kind: 'permanent', reason: 'no such mailbox', hardBounce: true },
  'p3@example.com': { kind: 'transient', scope: 'message', reason: 'mailbox full' },
}

test.each(STORES)(
  'on %s, lessons wait for a decision once they are given up, until it is made',
  async (kind) => {
    const it = await courseWith(6, { kind })
    it.answer((message) => ANSWERS[message.to.address] ?? { kind: 'sent', id: message.key })
    const undecided = () => it.store.course.undecided()
    expect(await undecided()).toBe(0)
    await it.course.dispatch({ limit: 10 })
    // Only what was refused for good: the unknown one is tried again, and the bounced one has ended.
    const queued = async () =>
      (await it.store.sending.queue(it.now())).find(({ stream }) => stream === 'course')
    expect([await undecided(), (await queued())?.failed]).toEqual([1, 1])
    expect(await it.store.sending.lastMail()).toMatchObject({
      refused: { at: it.now(), reason: expect.stringMatching(/^(?:refused|no such mailbox)$/) },
      failed: { at: it.now(), reason: expect.stringMatching(/^(?:the line broke|mailbox full)$/) },
    })
    it.pass(19.95 * HOUR_MS)
    await it.course.dispatch({ limit: 10 })
    expect([await undecided(), (await queued())?.failed]).toEqual([2, 2])
    expect(await it.course.resolveAll('retry')).toBe(2)
    expect(await undecided()).toBe(0)
  },
)

test.each(STORES.filter((kind) => kind !== 'memory'))(
  'on %s, a lesson that nobody can resolve before its row is repaired waits for no decision',
  async (kind) => {
    const it = await courseWith(1, { kind })
    await byHand(it.address, `UPDATE subscription SET sent_days = '{}'`)
    await it.course.dispatch({ limit: 10 })
    const [one] = await it.course.problems(1)
    expect(one?.problem).toMatchObject({ kind: 'parked', reason: expect.stringContaining('cannot be read') })
    expect(await it.course.resolve(one?.id ?? '', 'retry')).toBe(false)
    expect(await it.store.course.undecided()).toBe(0)
  },
)
