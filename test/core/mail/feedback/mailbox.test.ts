import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  afterFeedback,
  FEEDBACK_KINDS,
  type FeedbackKind,
  type MailboxRecord,
  newMailbox,
  released,
} from '../../../../src/core/mail/feedback/event.ts'

const DAY = 24 * 60 * 60 * 1000
const START = Date.parse('2026-11-22T00:00:00Z')
const replay = (events: readonly (readonly [kind: FeedbackKind, at: number])[]) =>
  events.reduce<{ mailbox: MailboxRecord; effects: string[] }>(
    ({ mailbox, effects }, [kind, at]) => {
      const next = afterFeedback(mailbox, { kind, at, reason: 'why' }, 'ses')
      return { mailbox: next.mailbox, effects: [...effects, next.effect] }
    },
    { mailbox: newMailbox('ada@example.com'), effects: [] },
  )
const soft = (...at: readonly number[]) => at.map((one) => ['soft-bounce', START + one] as const)

describe('a mailbox', () => {
  test('is suppressed by one hard bounce', () => {
    expect(replay([['hard-bounce', START]])).toEqual({
      mailbox: {
        ...newMailbox('ada@example.com'),
        suppression: { cause: 'hard-bounce', at: START, source: 'ses', reason: 'why' },
      },
      effects: ['end-dead'],
    })
  })

  test.each([
    ['four over four days', soft(0, DAY, 2 * DAY, 4 * DAY), undefined],
    ['five within three days less a millisecond', soft(0, 1, 2, 3, 3 * DAY - 1), undefined],
    ['five over exactly three days', soft(0, 1, 2, 3, 3 * DAY), 'hard-bounce'],
    ['five reported in another order', soft(3 * DAY, 2, 1, 3, 0), 'hard-bounce'],
    ['five a month apart', soft(0, 30 * DAY, 60 * DAY, 90 * DAY, 120 * DAY), 'hard-bounce'],
    [
      'five, each over a month after the one before',
      soft(0, 31 * DAY, 62 * DAY, 93 * DAY, 124 * DAY),
      undefined,
    ],
    ['a sixth after three days', soft(0, 1, 2, 3, 4, 3 * DAY), 'hard-bounce'],
  ])('with %s soft bounces is suppressed for %s', (_, events, cause) => {
    const { suppression } = replay(events).mailbox
    expect(suppression?.cause).toBe(cause)
    // Since the last of them, in whatever order they were heard of.
    expect(suppression?.at).toBe(cause && Math.max(...events.map(([, at]) => at)))
  })

  test('starts to count anew after a delivery', () => {
    const { mailbox } = replay([...soft(0, 1, 2, 3), ['delivered', START + DAY], ...soft(3 * DAY)])
    expect(mailbox).toMatchObject({ softBounces: 1, softSince: START + 3 * DAY, suppression: undefined })
  })

  test('counts no soft bounce from before its last delivery, however late the news comes', () => {
    const delivered = [START + DAY, START].map((at) => ['delivered', at] as const)
    const { mailbox } = replay([...delivered, ...soft(0, 1, 2, 3, DAY)])
    expect(mailbox).toMatchObject({ softBounces: 0, suppression: undefined })
  })

  test('keeps its soft bounces when an older delivery is reported late', () => {
    const { mailbox } = replay([...soft(DAY, DAY + 1), ['delivered', START]])
    expect(mailbox.softBounces).toBe(2)
  })

  test('takes no bounces together that a delivery lies between, however late the news of it comes', () => {
    const { mailbox } = replay([...soft(0, 1, 2, 4 * DAY), ['delivered', START + DAY], ...soft(5 * DAY)])
    expect(mailbox.suppression).toBeUndefined()
  })

  test('taken off the list, forgets the soft bounces that put it there', () => {
    const { mailbox, effect } = released(replay(soft(0, 1, 2, 3, 3 * DAY)).mailbox)
    expect([mailbox, effect]).toEqual([newMailbox('ada@example.com'), 'release'])
  })

  test('is unsubscribed, and not suppressed, by an unsubscribe at the provider', () => {
    const { mailbox, effects } = replay([['unsubscribed', START]])
    expect([mailbox.suppression, effects]).toEqual([undefined, ['unsubscribe']])
  })

  test('that bounced and then complains is ended by the complaint, so that no operator’s retry of the bounce brings it back', () => {
    const { mailbox, effects } = replay([
      ['hard-bounce', START],
      ['complaint', START + 1],
    ])
    expect([mailbox.suppression?.cause, effects]).toEqual(['hard-bounce', ['end-dead', 'end-suppressed']])
  })

  test('once suppressed is never free again by an event, and a hard bounce stays over a complaint', () => {
    const event = fc.tuple(
      fc.constantFrom(...FEEDBACK_KINDS),
      fc.integer({ min: START, max: START + 30 * DAY }),
    )
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), fc.array(event, { maxLength: 5 }), (before, then) => {
        const first = replay(before).mailbox.suppression
        const last = replay([...before, ...then]).mailbox.suppression
        if (first !== undefined) expect(last).toBeDefined()
        if (first?.cause === 'hard-bounce') expect(last).toEqual(first)
      }),
    )
  })
})
