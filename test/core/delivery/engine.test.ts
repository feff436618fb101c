import { expect, test } from 'vitest'
import { createEngine } from '../../../src/core/delivery/engine.ts'
import { ALERT, COURSE, type Delivery, MAIL, type Stream } from '../../../src/core/delivery/retries.ts'
import type { Source } from '../../../src/core/delivery/source.ts'
import { silentLog } from '../../../src/core/host.ts'
import type { SendOutcome } from '../../../src/core/mail/mailer.ts'
import { virtualTime } from '../../simulation/virtual-time.ts'

const SECOND = 1000
interface Job {
  readonly name: string
}
type Asked = Parameters<Source<Job>['claim']>[0]
const SENT: SendOutcome = { kind: 'sent', id: 'x' }

/** An engine over a source in which this many jobs are due, and all that was asked of it. */
function engineOf({
  due = 0,
  lines = 2,
  stream = COURSE,
  fraction = 0,
  before = async () => {},
  prepare,
  send = async () => SENT,
  signal,
  ...more
}: {
  due?: number
  lines?: number
  stream?: Stream
  fraction?: number
  /** What the store does before it answers a claim, counted from 1. */
  before?: (call: number) => Promise<void>
  prepare?: (name: string) => Delivery | undefined
  send?: (name: string, signal: AbortSignal) => Promise<SendOutcome>
  signal?: AbortSignal
} & Partial<Omit<Source<Job>, 'prepare'>> = {}) {
  const time = virtualTime(5 * SECOND)
  const asked: Asked[] = []
  const kept: string[][] = []
  const settled: string[] = []
  const it = { left: due }
  const source: Source<Job> = {
    stream,
    lines,
    patienceMs: 600 * SECOND,
    async claim(one) {
      asked.push(one)
      await before(asked.length)
      const many = Math.min(it.left, one.limit)
      it.left -= many
      return Array.from({ length: many }, (_, at) => ({ name: `${asked.length}.${at}` }))
    },
    keep: async (claims) => void kept.push(claims.map(({ name }) => name)),
    jobOf: () => ({ dueAt: 0, failures: 0, unknownSince: undefined, wasTried: false }),
    prepare: async ({ name }) => prepare?.(name) ?? { handOver: (over) => send(name, over) },
    settle: async (attempted) =>
      void settled.push(...attempted.map(({ claim, delivery }) => `${claim.name} ${delivery.kind}`)),
    tell: () => {},
    ...more,
  }
  const host = {
    ...{ clock: time.clock, timer: time.clock, log: silentLog },
    random: { bytes: (count: number) => new Uint8Array(count), fraction: () => fraction },
  }
  const engine = createEngine(host, source, signal)
  /** Lets time pass until the work has ended. */
  async function passing<T>(work: Promise<T>, seconds = 100_000): Promise<T> {
    let isOver = false
    const over = () => {
      isOver = true
    }
    work.then(over, over)
    await time.passUntil(seconds * SECOND, () => isOver)
    return work
  }
  return {
    ...{ engine, source, asked, kept, settled, time, store: it, passing },
    run: (options: Parameters<typeof engine.run>[0] = {}) => passing(engine.run(options)),
    limits: () => asked.map((one) => one.limit),
    count: (kind: string) => settled.filter((one) => one.endsWith(` ${kind}`)).length,
  }
}

test('a run claims 400 jobs at once, or as many as it may still send, for 90 seconds', async () => {
  const it = engineOf({ due: 1000 })
  expect(await it.run({ limit: 450 })).toMatchObject({ sent: 450, stopped: undefined })
  expect(it.settled).toHaveLength(450)
  expect(it.asked).toEqual([
    { now: 5 * SECOND, leaseMs: 90 * SECOND, limit: 400, retries: 20 },
    { now: expect.any(Number), leaseMs: 90 * SECOND, limit: 50, retries: 2 },
  ])
})

test.each([
  [19, 0, 0],
  [20, 0, 1],
  [10, 0.49, 0],
  [10, 0.5, 1],
])('of %i claims, when chance says %d, %i may be retries', async (limit, fraction, retries) => {
  const it = engineOf({ fraction })
  await it.run({ limit })
  expect(it.asked).toMatchObject([{ limit, retries }])
})

test.each([
  // 250 are in work, and 150 ready.
  [250, [400, 400]],
  [150, [400]],
])('with %i lines, more is claimed as soon as fewer than those are ready', async (lines, limits) => {
  const it = engineOf({
    due: 800,
    lines,
    send: async () => {
      await it.time.clock.sleep(SECOND)
      return SENT
    },
  })
  const running = it.engine.run({ limit: 800 })
  await it.time.passUntil(SECOND / 2, () => false)
  expect(it.limits()).toEqual(limits)
  expect(await it.passing(running)).toMatchObject({ sent: 800 })
  expect(it.limits()).toEqual([400, 400])
})

test('once nothing more is due the store is not asked again, until a job came to nothing', async () => {
  const it = engineOf({ due: 1 })
  await it.run({ limit: 10 })
  expect(it.limits()).toEqual([10, 9])
  const back = engineOf({ due: 1, prepare: () => ({ kind: 'again' }) })
  await back.run({ limit: 10 })
  expect([back.limits(), back.settled]).toEqual([[10, 9, 10], ['1.0 again']])
})

test('when claims grew old before their turn, as few are claimed as there are lines, then twice as many each time', async () => {
  const it = engineOf({
    due: 2500,
    lines: 20,
    // The first ones take until the others of their batch are too old to begin.
    send: async (name) => {
      if (name.startsWith('1.')) await it.time.clock.sleep(26 * SECOND)
      return SENT
    },
  })
  expect(await it.run({ limit: 2000 })).toMatchObject({ sent: 2000 })
  expect(it.limits().slice(0, 4)).toEqual([400, 20, 40, 80])
  expect(it.count('untried')).toBe(380)
})

test('what was claimed before a fault is sent and recorded, and the run then rejects with it', async () => {
  const it = engineOf({
    due: 500,
    before: async (call) => {
      if (call === 2) throw new TypeError('no such column')
    },
  })
  await expect(it.run({ limit: 500 })).rejects.toThrow('no such column')
  expect([it.limits(), it.settled.length]).toEqual([[400, 100], 400])
})

test('a fault before the handover stops a run: what is out is recorded, and all others are released', async () => {
  const it = engineOf({
    due: 300,
    lines: 1,
    lastLook: async ({ name }) => {
      if (name === '1.2') throw new TypeError('a fault')
      return undefined
    },
  })
  await expect(it.run({ limit: 300 })).rejects.toThrow('a fault')
  expect([it.count('sent'), it.count('untried')]).toEqual([2, 298])
})

test('claims that came too late to be sent are released, and no more are claimed', async () => {
  const it = engineOf({ due: 3, before: () => it.time.clock.sleep(25 * SECOND + 1) })
  await expect(it.run({ limit: 3 })).rejects.toMatchObject({ code: 'store_unavailable' })
  expect([it.limits(), it.settled]).toEqual([[3], ['1.0 untried', '1.1 untried', '1.2 untried']])
})

test('a run that is stopped waits for what is out and for what it asked for, releases the rest, and claims no more', async () => {
  const stopping = new AbortController()
  const it = engineOf({
    due: 1000,
    send: async () => {
      await it.time.clock.sleep(2 * SECOND)
      return SENT
    },
  })
  it.time.after(SECOND, () => stopping.abort())
  await it.run({ signal: stopping.signal })
  expect([it.limits(), it.count('sent'), it.count('untried')]).toEqual([[400], 2, 398])
  expect(it.time.elapsed()).toBeLessThan(2.1 * SECOND)
})

test('a run whose messages get lost one after the other stops, and leaves the others untried', async () => {
  const lost: SendOutcome = { kind: 'unknown', reason: 'the connection broke' }
  const it = engineOf({ due: 400, send: async () => lost })
  expect(await it.run()).toMatchObject({ sent: 0, stopped: '5 failures in a row: the connection broke' })
  expect([it.count('unknown'), it.settled.length]).toEqual([6, 400])
  const mixed = engineOf({ due: 400, send: async (name) => (Number(name.slice(2)) % 5 === 4 ? SENT : lost) })
  expect(await mixed.run()).toMatchObject({ sent: 80, stopped: undefined })
})

test('a message that is refused for good while our own texts stop the run is not tried again', async () => {
  const it = engineOf({
    due: 20,
    send: async (name) => {
      if (name !== '1.0') return { kind: 'not_composed', reason: 'a template is missing' }
      await it.time.clock.sleep(SECOND)
      return { kind: 'permanent', hardBounce: false, reason: 'refused' }
    },
  })
  expect(await it.run()).toMatchObject({ stopped: '5 failures in a row: a template is missing' })
  expect(it.settled).toContain('1.0 permanent')
})

test('a lease is renewed while its message is out, and not after its outcome is recorded or the run ended', async () => {
  const it = engineOf({
    due: 2,
    send: async (name) => {
      await it.time.clock.sleep(name === '1.0' ? SECOND : 60 * SECOND)
      return SENT
    },
  })
  await it.run()
  expect(it.kept).toEqual([['1.1']])
  await it.time.passUntil(1000 * SECOND, () => false)
  expect(it.kept).toHaveLength(1)
})

test('a message that became due while another is out for long is sent at once, also after the connection failed', async () => {
  let first = true
  const it = engineOf({
    stream: ALERT,
    due: 1,
    send: async (name) => {
      if (name === '1.0') await it.time.clock.sleep(600 * SECOND)
      const fails = name !== '1.0' && first
      if (fails) first = false
      return fails ? { kind: 'transient', scope: 'connection', reason: 'no answer' } : SENT
    },
  })
  const waking = it.engine.wake()
  const due = (at: number) =>
    it.time.after(at * SECOND, () => {
      it.store.left += 1
      void it.engine.wake()
    })
  due(10)
  due(20)
  await it.time.passUntil(30 * SECOND, () => false)
  expect(it.settled.map((one) => one.split(' ')[1])).toEqual(['transient', 'sent'])
  expect(await it.passing(waking)).toBe(2)
})

test('a message that became due while the store answered that nothing is due is sent at once, while others are out', async () => {
  let calls = 0
  const it = engineOf({
    stream: ALERT,
    send: async (name) => {
      if (name === '1') await it.time.clock.sleep(600 * SECOND)
      return SENT
    },
    claim: async () => {
      calls += 1
      const call = calls
      await it.time.clock.sleep(SECOND)
      // It is stored after the second look began, and before that look has its answer.
      if (call === 2) void it.engine.wake()
      return call === 1 || call === 3 ? [{ name: `${call}` }] : []
    },
  })
  const waking = it.engine.wake()
  await it.time.passUntil(30 * SECOND, () => false)
  expect(it.settled).toEqual(['3 sent'])
  expect(await it.passing(waking)).toBe(2)
})

test('while a stream is held nothing is claimed, and what is claimed already is released untried', async () => {
  const it = engineOf({ due: 5, held: async () => 'mail is paused' })
  expect(await it.run()).toMatchObject({ sent: 0, stopped: 'mail is paused' })
  expect(it.asked).toEqual([])
  const holds = [undefined, undefined, undefined]
  const later = engineOf({
    due: 5,
    lines: 1,
    held: async () => (holds.length > 0 ? holds.pop() : 'mail is paused'),
  })
  expect(await later.run()).toMatchObject({ sent: 2, stopped: 'mail is paused' })
  expect(later.count('untried')).toBe(3)
})

test('a refusal whose outcome cannot be recorded fails the run, once what is out is answered', async () => {
  const it = engineOf({
    due: 3,
    async send(name) {
      await it.time.clock.sleep(name === '1.1' ? 60 * SECOND : SECOND)
      return name === '1.0' ? { kind: 'permanent', hardBounce: false, reason: 'no' } : SENT
    },
    settle: async (attempted) => {
      if (attempted.some(({ claim }) => claim.name === '1.0')) throw new Error('the row is gone')
      it.settled.push(...attempted.map(({ claim, delivery }) => `${claim.name} ${delivery.kind}`))
    },
  })
  await expect(it.run()).rejects.toThrow('the row is gone')
  expect(it.settled).toContain('1.1 sent')
})

test('what becomes due while a run records its last outcome is sent by the same wake', async () => {
  const it = engineOf({
    due: 1,
    send: async (name) =>
      name === '1.0' ? { kind: 'permanent', hardBounce: false, reason: 'no such page' } : SENT,
    async settle(attempted) {
      if (attempted.some(({ claim }) => claim.name === '1.0')) {
        it.store.left += 1
        void it.engine.wake()
      }
    },
  })
  expect(await it.passing(it.engine.wake())).toBe(1)
})

test('a run that is stopped while it claims gives back the places of all that it claimed', async () => {
  const stopping = new AbortController()
  const back: number[] = []
  const it = engineOf({
    due: 2,
    pace: {
      places: async (most) => [0, 1].slice(0, most),
      giveBack: (places) => void back.push(...places),
    },
    before: async () => stopping.abort(),
  })
  expect(await it.run({ signal: stopping.signal })).toMatchObject({ sent: 0 })
  expect([back, it.settled]).toEqual([
    [0, 1],
    ['1.0 untried', '1.1 untried'],
  ])
})

const TOO_FAST = { kind: 'transient', scope: 'connection', reason: 'our rate', retryAfterMs: SECOND } as const

test.each([
  ['lessons', COURSE, 2, 40, 70],
  ['mails', MAIL, 2, 40, 70],
  // Its limit is met each time that they leave at once again, and ever more rarely.
  ['lessons', COURSE, 25, 400, 40],
] as const)(
  'a provider that limits our rate for a second is waited for: %s leave as fast as it takes them',
  async (_, stream, perSecond, due, mostRefused) => {
    const taken = new Map<number, number>()
    let refused = 0
    const send = async () => {
      await it.time.clock.sleep(SECOND / 20)
      const second = Math.floor(it.time.elapsed() / SECOND)
      const count = taken.get(second) ?? 0
      if (count === perSecond) refused += 1
      else taken.set(second, count + 1)
      return count === perSecond ? TOO_FAST : SENT
    }
    const it = engineOf({ due, lines: 40, stream, send })
    expect(await it.run()).toMatchObject({ sent: due, stopped: undefined })
    expect(new Set(it.settled.map((one) => one.split(' ')[1]))).toEqual(new Set(['sent']))
    expect(it.time.elapsed()).toBeLessThan((due / perSecond) * 3 * SECOND)
    expect(refused).toBeLessThan(mostRefused)
  },
)

test('after a provider limited our rate for a moment, lessons leave at once again when it has taken some', async () => {
  let most = 0
  let [out, asked] = [0, 0]
  const send = async (): Promise<SendOutcome> => {
    asked += 1
    if (asked === 5) return TOO_FAST
    out += 1
    if (asked > 100) most = Math.max(most, out)
    await it.time.clock.sleep(SECOND / 10)
    out -= 1
    return SENT
  }
  const it = engineOf({ due: 1000, lines: 20, send })
  expect(await it.run()).toMatchObject({ sent: 1000, stopped: undefined })
  expect([most, asked]).toEqual([20, 1001])
  expect(it.time.elapsed()).toBeLessThan(12 * SECOND)
})

test('a provider that goes on limiting our rate is left alone after five messages, and what it limits for longer at once', async () => {
  for (const [retryAfterMs, tries] of [
    [SECOND, 6],
    [11 * SECOND, 1],
    [0, 1],
  ] as const) {
    let asked = 0
    const send = async (): Promise<SendOutcome> => {
      asked += 1
      return { ...TOO_FAST, retryAfterMs }
    }
    const it = engineOf({ due: 3, lines: 1, send })
    expect(await it.run()).toMatchObject({ sent: 0, stopped: 'our rate' })
    expect(asked).toBe(tries)
    expect(it.count('untried')).toBe(2)
  }
})

test('somebody who unsubscribes during a rate limit gets no message', async () => {
  let [asked, hasLeft] = [0, false]
  const send = async (): Promise<SendOutcome> => {
    asked += 1
    it.time.after(SECOND / 2, () => {
      hasLeft = true
    })
    return TOO_FAST
  }
  const it = engineOf({ due: 1, send, lastLook: async () => (hasLeft ? { kind: 'gone' } : undefined) })
  expect(await it.run()).toMatchObject({ sent: 0 })
  expect(asked).toBe(1)
})

test('after a run that the store failed, the next wake sends what is due', async () => {
  const it = engineOf({
    stream: ALERT,
    due: 1,
    before: async (call) => {
      if (call === 1) throw new TypeError('the store is away')
    },
  })
  await expect(it.passing(it.engine.wake())).rejects.toThrow('the store is away')
  expect(await it.passing(it.engine.wake())).toBe(1)
})
