import { expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../src/core/host.ts'
import { secret } from '../../src/core/secret.ts'
import { createPing } from '../../src/daemon/schedule.ts'
import { keptLog } from '../support/opened.ts'

type Answer = number | Error | (() => Promise<Response>)

/** A watcher that is answered so, and what it asked, waited and told. */
function watcher(answers: Answer[]) {
  const asked: [unknown, RequestInit | undefined][] = []
  const slept: number[] = []
  const { log, lines: told } = keptLog()
  const bodies: Response[] = []
  const ping = createPing(
    {
      clock: {
        ...systemClock,
        sleep: async (ms, signal) => {
          slept.push(ms)
          signal?.throwIfAborted()
        },
      },
      log,
    },
    secret('https://watch.example/4a1f'),
    async (url, init) => {
      asked.push([url, init])
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      if (typeof answer === 'function') return answer()
      const response = new Response('a page', { status: answer ?? 200 })
      bodies.push(response)
      return response
    },
  )
  return { ...ping, asked, slept, told, bodies }
}

/** All that was begun is over. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('an answer that is good ends it, and its body is not read', async () => {
  const { ping, asked, slept, told, bodies } = watcher([299])
  ping()
  await settled()
  expect(asked).toMatchObject([['https://watch.example/4a1f', { redirect: 'follow' }]])
  expect([slept, told]).toEqual([[], []])
  expect(bodies[0]?.bodyUsed).toBe(true)
})

test('three attempts are made, five and thirty seconds apart, and then it is told without the address', async () => {
  const { ping, asked, slept, told } = watcher([new Error('canary'), 500, 404])
  ping()
  await settled()
  expect(asked).toHaveLength(3)
  expect(slept).toEqual([5000, 30_000])
  expect(told).toEqual([
    {
      level: 'warn',
      event: 'heartbeat_ping_failed',
      message: 'the address in HEARTBEAT_PING_URL could not be called',
      reason: 'it answered 404',
    },
  ])
  expect(JSON.stringify(told)).not.toMatch(/canary|watch\.example/)
})

test('a server that gives no answer is told as that', async () => {
  const { ping, told } = watcher([500, 500, new Error('canary')])
  ping()
  await settled()
  expect(told).toMatchObject([{ level: 'warn', reason: 'it did not answer' }])
})

test('two hours that end together are one call, and the next one is another', async () => {
  const { ping, asked } = watcher([])
  ping()
  ping()
  await settled()
  expect(asked).toHaveLength(1)
  ping()
  await settled()
  expect(asked).toHaveLength(2)
})

test('a call in progress is ended when it stops, which is no failure', async () => {
  const { ping, stop, asked, slept, told } = watcher([
    () =>
      new Promise((_, reject) => {
        const signal = asked[0]?.[1]?.signal
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  ])
  ping()
  await stop()
  expect(asked[0]?.[1]?.signal?.aborted).toBe(true)
  expect([asked.length, slept, told]).toEqual([1, [], []])
})

test('the watcher has ten seconds to answer each call', async () => {
  const limit = vi.spyOn(AbortSignal, 'timeout')
  onTestFinished(() => limit.mockRestore())
  const { ping } = watcher([500, 200])
  ping()
  await settled()
  expect(limit.mock.calls).toEqual([[10_000], [10_000]])
})
