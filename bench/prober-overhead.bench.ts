import { probeRemote } from '../src/core/health/prober.ts'
import { systemClock } from '../src/core/host.ts'
import { bareGet } from './bare-get.ts'
import type { Benchmark } from './harness.ts'
import { healthServer } from './health-server.ts'

const PAIRS = 400

export const benchmark: Benchmark = {
  name: 'prober-overhead',
  title: 'Overhead of a probe over a bare request',
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 1,
  notes: `The median of ${PAIRS} pairs, one after the other: a probe, less a bare request of node:http on a line of its own.`,
  open: async () => {
    const { url, close } = await healthServer()
    const timed = async (work: () => Promise<unknown>) => {
      const began = performance.now()
      await work()
      return performance.now() - began
    }
    const probe = () =>
      probeRemote({
        service: 'web',
        health: '/api/health',
        url,
        deep: false,
        token: undefined,
        timeoutMs: 5000,
        clock: systemClock,
      })
    return {
      contenders: [
        {
          name: 'the prober, beyond the request',
          role: 'ours',
          measure: async () => {
            const differences: number[] = []
            for (let pair = 0; pair < PAIRS; pair += 1)
              differences.push((await timed(probe)) - (await timed(() => bareGet(url))))
            return differences.sort((a, b) => a - b)[PAIRS / 2] ?? Number.NaN
          },
        },
      ],
      close,
    }
  },
}
