import { expect, onTestFinished, test } from 'vitest'
import type { Clock } from '../../src/core/host.ts'
import type { History } from '../../src/core/status/history.ts'
import { startRecorder } from '../../src/daemon/recorder.ts'
import { keptLog } from '../support/opened.ts'

const historyOf = (record: History['record']): History => ({
  persistent: false,
  record,
  read: () => Promise.reject(new Error('not asked')),
  close: async () => {},
})

/** A recorder whose clock stands until it is woken, and what it did. */
function recording(parts: Partial<Parameters<typeof startRecorder>[1]> = {}, clock: Partial<Clock> = {}) {
  const slept: number[] = []
  const did: string[] = []
  const { log, lines } = keptLog()
  const time = { monotonic: 0, stepped: 0 }
  let wake = () => {}
  let asleep = Promise.withResolvers<void>()
  const neighbours = new Map<string, string | null>([['api', 'old']])
  const recorder = startRecorder(
    {
      clock: {
        now: () => time.monotonic + time.stepped,
        monotonic: () => time.monotonic,
        sleep: (ms, signal) =>
          new Promise((resolve, reject) => {
            if (signal?.aborted) return reject(signal.reason)
            slept.push(ms)
            wake = () => {
              time.monotonic += ms
              resolve()
            }
            signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
            asleep.resolve()
          }),
        ...clock,
      },
      log,
    },
    {
      health: [],
      neighbours,
      history: historyOf(async () => void did.push('recorded')),
      onRecorded: () => void did.push('told'),
      ...parts,
    },
  )
  onTestFinished(() => recorder.stop())
  const next = () => {
    asleep = Promise.withResolvers<void>()
    wake()
    return asleep.promise
  }
  const looked = () => asleep.promise
  return { recorder, slept, did, time, neighbours, lines, looked, next }
}

test('the recorder never sleeps for a negative time, however the clock moves between two reads', async () => {
  const slept: number[] = []
  const enough = Promise.withResolvers<void>()
  let now = 0
  // Each read of the clock takes 700 ms, so the due time passes between any two of them.
  const monotonic = () => {
    now += 700
    return now
  }
  const sleep = async (ms: number) => {
    slept.push(ms)
    now += ms
    if (slept.length > 200) enough.resolve()
  }
  const { recorder } = recording({}, { now: () => now, monotonic, sleep })
  await enough.promise
  await recorder.stop()
  expect(slept.filter((ms) => ms <= 0)).toEqual([])
})

/** How far apart the looks are, in the time of the clock. */
async function between(follow: readonly boolean[], firstTookMs = 0): Promise<readonly number[]> {
  const answers = [...follow]
  const looks: number[] = []
  const { time, looked, next } = recording({
    follow: async () => {
      looks.push(time.monotonic)
      if (looks.length === 1) time.monotonic += firstTookMs
      return answers.shift() ?? false
    },
  })
  await looked()
  while (looks.length <= follow.length) await next()
  return looks.slice(1).map((at, index) => at - (looks[index] ?? 0))
}

test('a look follows a minute after the one before, or fifteen seconds after one with something new', async () => {
  expect(await between([false, true, false])).toEqual([60_000, 15_000, 60_000])
})

test('a slow look does not delay the next, and one that takes longer than a minute is followed at once', async () => {
  expect(await between([false, false], 20_000)).toEqual([60_000, 60_000])
  expect((await between([false], 61_000))[0]).toBe(61_000)
})

test('waiting is done a second at a time, and the rest of it', async () => {
  const { slept, looked, next } = recording()
  await looked()
  for (let step = 1; step < 60; step += 1) await next()
  expect(slept).toEqual(Array.from({ length: 60 }, () => 1000))
})

test.each([
  [59_999, false],
  [60_000, true],
  [-60_000, true],
])('after a step of the clock of %d ms the next look comes at once: %s', async (step, atOnce) => {
  const { did, time, looked, next } = recording()
  await looked()
  time.stepped = step
  await next()
  expect(did.filter((one) => one === 'recorded')).toHaveLength(atOnce ? 2 : 1)
})

test('builds of neighbors are asked anew with each look, and a round is told once it is recorded', async () => {
  const { did, neighbours, looked, next } = recording()
  await looked()
  expect(neighbours.size).toBe(0)
  expect(did).toEqual(['recorded', 'told'])
  neighbours.set('api', 'new')
  for (let step = 0; step < 60; step += 1) await next()
  expect(neighbours.size).toBe(0)
})

test('a round that could not be recorded is not told but followed, and the log says once that it fails and that it is over', async () => {
  const followed: unknown[] = []
  let isFull = true
  // A check takes its time, of which nothing is the disk's.
  const check = async () => {
    await Promise.resolve()
    time.monotonic += 300
    return { service: 'web', state: 'ok', build: null, probes: {} }
  }
  const { did, lines, time, looked, next } = recording({
    health: [{ check } as unknown as Parameters<typeof startRecorder>[1]['health'][number]],
    history: historyOf(async () => {
      time.monotonic += 7
      if (isFull) throw new Error('disk full')
    }),
    follow: async ([report], writeMs) => {
      followed.push([report?.service, writeMs])
      return false
    },
  })
  const events = () => lines.map(({ event }) => event)
  const minutes = async (many: number) => {
    for (let second = 0; second < many * 60; second += 1) await next()
  }
  await looked()
  expect([did, followed]).toEqual([[], [['web', undefined]]])
  await minutes(1)
  expect(events()).toEqual(['history_not_recorded'])
  isFull = false
  await minutes(2)
  expect(events()).toEqual(['history_not_recorded', 'history_recorded_again'])
  expect(did).toEqual(['told', 'told'])
  expect(followed.slice(-2)).toEqual(Array(2).fill(['web', 7]))
})

test('a look in progress when it stops is not recorded', async () => {
  const checked = Promise.withResolvers<never>()
  const asked = Promise.withResolvers<void>()
  const looks: unknown[] = []
  const check = (look: unknown) => {
    looks.push(look)
    asked.resolve()
    return checked.promise
  }
  const { recorder, did } = recording({
    health: [{ check } as unknown as Parameters<typeof startRecorder>[1]['health'][number]],
  })
  await asked.promise
  expect(looks).toMatchObject([{ deep: true }])
  await recorder.stop()
  checked.resolve({ service: 'web', state: 'ok', build: null, probes: {} } as never)
  await new Promise((resolve) => setImmediate(resolve))
  expect(did).toEqual([])
})

test('a round that is being written when it stops is waited for', async () => {
  const written = Promise.withResolvers<void>()
  const writing = Promise.withResolvers<void>()
  const { recorder } = recording({
    history: historyOf(() => {
      writing.resolve()
      return written.promise
    }),
  })
  await writing.promise
  let stopped = false
  const stopping = recorder.stop().then(() => {
    stopped = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(stopped).toBe(false)
  written.resolve()
  await stopping
})
