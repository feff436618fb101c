import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Course } from '../../../src/core/course/open.ts'
import type { SubscriptionState } from '../../../src/core/course/subscription.ts'
import type { Message, Outcome } from '../../../src/core/mail/mailer.ts'
import { courseWith, linkOf, tokenIn } from '../../support/course.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const ADA = { spelling: 'ada@example.com', identity: 'ada@example.com' }

/** The specification (CONTRACT §5) at its simplest: what one subscription may be, and when it is mailed what. */
interface Model {
  now: number
  state: SubscriptionState | 'none'
  enrolment: number
  confirmedAt: number
  sent: number
  waitsUntil: number
  parked: boolean
  dead: boolean
  /** The subscriber left after a bounce had ended the course. */
  left: boolean
  /** Times at which confirmations were mailed; the last one's link is the one that works. */
  mailed: number[]
  linkUsed: boolean
}

/** The real course, and what a person could have kept: the newest token, and a link of each enrolment. */
interface Real {
  readonly course: Course
  readonly pass: (ms: number) => void
  provider: Outcome['kind'] | 'bounce'
  tokens: string[]
  readonly links: Map<number, { s: string; t: string }>
  lessons: number
}

type Command = fc.AsyncCommand<Model, Real>

async function agree(model: Model, { course }: Real): Promise<void> {
  const found = await course.find(ADA.identity)
  if (model.state === 'none') return expect(found).toBeUndefined()
  expect(found).toMatchObject({
    state: model.state,
    enrolment: model.enrolment,
    sentDays: Array.from({ length: model.sent }, (_, index) => index + 1),
  })
}

const command = (
  name: string,
  run: (model: Model, real: Real) => Promise<void>,
  check: (model: Readonly<Model>) => boolean = () => true,
): Command => ({
  check,
  async run(model, real) {
    await run(model, real)
    await agree(model, real)
  },
  toString: () => name,
})

const subscribe = command('subscribe', async (model, real) => {
  const inCourse = model.state === 'confirmed' && model.sent < 7
  const recent = model.mailed.filter((at) => at > model.now - DAY)
  const newest = model.mailed.at(-1)
  const mails =
    !model.dead && !inCourse && recent.length < 3 && (newest === undefined || newest <= model.now - HOUR)
  const before = real.tokens.length
  expect(await real.course.subscribe(ADA)).toEqual({ status: 'pending', sent: true })
  await new Promise((resolve) => setImmediate(resolve))
  await real.course.close()
  expect(real.tokens.length - before).toBe(mails ? 1 : 0)
  if (model.state === 'none') model.state = 'unconfirmed'
  if (mails) {
    model.mailed.push(model.now)
    model.linkUsed = false
  }
})

const confirm = command(
  'confirm by the newest link',
  async (model, real) => {
    const expired = model.now - (model.mailed.at(-1) ?? 0) >= 7 * DAY
    const answer = await real.course.confirm(real.tokens.at(-1) ?? '')
    expect(answer).toBe(model.linkUsed ? 'confirmed' : expired ? 'expired' : 'confirmed')
    if (model.linkUsed || expired) return
    Object.assign(model, {
      state: 'confirmed',
      enrolment: model.enrolment + 1,
      confirmedAt: model.now,
      sent: 0,
      waitsUntil: model.now,
      parked: false,
      linkUsed: true,
      // Using a link proves that the address receives mail.
      dead: false,
      left: false,
    } satisfies Partial<Model>)
  },
  ({ mailed }) => mailed.length > 0,
)

const confirmOld = command(
  'confirm by an older link',
  async (_, real) => {
    const old = real.tokens.at(-2) ?? ''
    // Used once, or replaced: either way nothing changes.
    expect(['confirmed', 'invalid']).toContain(await real.course.confirm(old))
    expect(await real.course.confirm(`${old.slice(0, -1)}!`)).toBe('invalid')
  },
  ({ mailed }) => mailed.length > 1,
)

const dispatch = (answer: Real['provider']) =>
  command(`dispatch, answered ${answer}`, async (model, real) => {
    real.provider = answer
    const before = real.lessons
    const result = await real.course.dispatch({ limit: 10 })
    const due =
      model.state === 'confirmed' &&
      model.sent < 7 &&
      !model.parked &&
      model.now >= model.waitsUntil &&
      model.now >= model.confirmedAt + model.sent * DAY
    expect([result.processed, real.lessons - before]).toEqual(due ? [1, 1] : [0, 0])
    if (!due) return
    expect(result.results[0]).toMatchObject({ day: model.sent + 1, sent: answer === 'sent' })
    const after = await real.course.find(ADA.identity)
    if (answer === 'sent') {
      model.sent += 1
      model.waitsUntil = 0
    } else if (answer === 'permanent') model.parked = true
    else if (answer === 'bounce') Object.assign(model, { state: 'unsubscribed', dead: true })
    else {
      expect(after?.nextAttemptAt).toBeGreaterThanOrEqual(model.now + 5 * 60_000)
      model.waitsUntil = after?.nextAttemptAt ?? 0
    }
  })

const withLink = (
  name: string,
  which: (model: Model) => number,
  act: (model: Model, real: Real, current: boolean) => Promise<void>,
) =>
  command(name, async (model, real) => {
    const enrolment = which(model)
    if (real.links.has(enrolment)) await act(model, real, enrolment === model.enrolment)
  })

const unsubscribe = (which: 'this' | 'the last') =>
  withLink(
    `unsubscribe by the link of ${which} enrolment`,
    ({ enrolment }) => (which === 'this' ? enrolment : enrolment - 1),
    async (model, real, current) => {
      await real.course.unsubscribe(
        real.links.get(current ? model.enrolment : model.enrolment - 1) ?? { s: '', t: '' },
      )
      if (model.state === 'confirmed') model.state = 'unsubscribed'
      else if (model.dead) model.left = true
    },
  )

const undo = withLink(
  'undo',
  ({ enrolment }) => enrolment,
  async (model, real) => {
    await real.course.undoUnsubscribe(real.links.get(model.enrolment) ?? { s: '', t: '' })
    if (model.state !== 'unsubscribed' || model.dead) return
    model.state = 'confirmed'
    model.waitsUntil = 0
  },
)

const resolve = command('resolve as retry', async (model, real) => {
  const found = await real.course.find(ADA.identity)
  // An address that bounced wrongly has a way back, unless its subscriber left as well.
  const alive = model.state === 'confirmed' || (model.dead && !model.left)
  const waits = alive && model.sent < 7 && found?.problem !== undefined
  expect(await real.course.resolve(found?.id ?? '', 'retry')).toBe(waits)
  if (!waits) return
  Object.assign(model, { state: 'confirmed', parked: false, dead: false, waitsUntil: 0 })
})

const pass = (ms: number) =>
  command(`${ms / HOUR} h pass`, async (model, real) => {
    model.now += ms
    real.pass(ms)
  })

const commands = fc.commands(
  [
    fc.constant(subscribe),
    fc.constant(confirm),
    fc.constant(confirmOld),
    fc
      .constantFrom<Real['provider']>('sent', 'sent', 'sent', 'transient', 'permanent', 'bounce')
      .map(dispatch),
    fc.constantFrom<'this' | 'the last'>('this', 'this', 'the last').map(unsubscribe),
    fc.constant(undo),
    fc.constant(resolve),
    fc.constantFrom(HOUR / 12, HOUR, 23 * HOUR, DAY, 8 * DAY).map(pass),
  ],
  { maxCommands: 80, size: 'max' },
)

test('a subscription follows the specification through any sequence of changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 2 ** 41 }), commands, async (start, cmds) => {
      const it = await courseWith(0, { kind: 'memory' })
      it.pass(start - it.now())
      const real: Real = { ...it, provider: 'sent', tokens: [], links: new Map(), lessons: 0 }
      it.answer((message) => receive(real, message))
      const model: Model = {
        now: start,
        state: 'none',
        enrolment: 0,
        confirmedAt: 0,
        sent: 0,
        waitsUntil: 0,
        parked: false,
        dead: false,
        left: false,
        mailed: [],
        linkUsed: false,
      }
      await fc.asyncModelRun(() => ({ model, real }), cmds)
    }),
    { numRuns: 60 },
  )
}, 60_000)

function receive(real: Real, message: Message): Outcome {
  const token = tokenIn(message)
  if (token !== '') {
    real.tokens.push(token)
    return { kind: 'sent', id: message.key }
  }
  real.lessons += 1
  const link = linkOf(message)
  real.links.set(Number(link.s.split('.')[1]), link)
  switch (real.provider) {
    case 'transient':
      return { kind: 'transient', scope: 'message', reason: 'try again' }
    case 'permanent':
      return { kind: 'permanent', hardBounce: false, reason: 'refused' }
    case 'bounce':
      return { kind: 'permanent', hardBounce: true, reason: 'no such address' }
    default:
      return { kind: 'sent', id: message.key }
  }
}
