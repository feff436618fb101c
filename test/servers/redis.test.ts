import { expect, onTestFinished, test } from 'vitest'
import { interval, type Policy, takeOne } from '../../src/core/access/limit/limiter.ts'
import { sharedCounter } from '../../src/core/access/limit/open.ts'
import { secret } from '../../src/core/secret.ts'
import { hasProgram } from '../support/programs.ts'
import { redis } from '../support/redis.ts'
import { type Command, REST_TOKEN, restStore } from '../support/rest-store.ts'

const here = hasProgram(['redis-server', '--version'], 'redis-server')

async function open(count: number, spy: (command: Command) => Command = (command) => command) {
  const command = await redis()
  const store = await restStore(spy(command))
  const machines = Array.from({ length: count }, () => {
    const counter = sharedCounter(store.url, secret(REST_TOKEN), 5000)
    onTestFinished(() => counter.close())
    return counter
  })
  return { machines, command }
}

test.skipIf(!here)(
  'the script in a real Redis computes what this process would, number by number',
  async () => {
    // Redis's own clock is read back from what it answers: the very same instants are given to the local algorithm.
    const policies: Policy[] = [
      { name: 'seven', quota: 7, windowSeconds: 60 },
      { name: 'fast', quota: 100, windowSeconds: 100 },
      { name: 'one', quota: 1, windowSeconds: 86_400 },
    ]
    const instants: number[] = []
    const { machines } = await open(1, (command) => async (words) => {
      if (words[0] !== 'EVALSHA' && words[0] !== 'EVAL') return command(words)
      const key = words[3] ?? ''
      const before = Number(((await command(['GET', key])) as { result: string | null }).result)
      const answer = await command(words)
      const after = Number(((await command(['GET', key])) as { result: string | null }).result)
      if ('result' in answer) {
        const [allowed, , reset] = answer.result as number[]
        // `reset` is the arrival time stored (or, refused, found) less the time of the call.
        instants.push((allowed === 1 ? after : before) - (reset ?? 0))
      }
      return answer
    })
    for (const policy of policies) {
      let arrival: number | undefined
      for (let n = 0; n < 20; n += 1) {
        const taken = await machines[0]?.take(policy, '192.0.2.1')
        const { arrival: next, ...expected } = takeOne(arrival, instants.at(-1) ?? 0, policy)
        expect(taken).toEqual({ ...expected, policy })
        arrival = next
      }
    }
  },
)

test.skipIf(!here)('of 40 concurrent machines, a real Redis lets exactly the quota through', async () => {
  const policy = { name: 'ten', quota: 10, windowSeconds: 3600 }
  const { machines } = await open(40)
  const verdicts = await Promise.all(machines.map((machine) => machine.take(policy, '192.0.2.1')))
  expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(10)
  for (const { allowed, retry } of verdicts) expect(allowed || retry > 0).toBe(true)
})

test.skipIf(!here)('Redis itself forgets a client that stays away', async () => {
  const { machines, command } = await open(1)
  const policy = { name: 'ten', quota: 10, windowSeconds: 60 }
  await machines[0]?.take(policy, '192.0.2.1')
  const { result: keys } = (await command(['KEYS', '*'])) as { result: string[] }
  expect(keys).toHaveLength(1)
  const { result: left } = (await command(['PTTL', keys[0] ?? ''])) as { result: number }
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThanOrEqual(interval(policy) / 1000)
})
