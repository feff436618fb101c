import { probeRemote } from '../src/core/health/prober.ts'
import { systemClock } from '../src/core/host.ts'
import { bareGet } from './bare-get.ts'
import type { Benchmark } from './harness.ts'
import { healthServer } from './health-server.ts'

const PROBES = 3000
const AT_ONCE = 16

async function rate(probe: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let left = PROBES
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (left > 0) {
        left -= 1
        await probe()
      }
    }),
  )
  return (PROBES / (performance.now() - began)) * 1000
}

export const benchmark: Benchmark = {
  name: 'prober-rate',
  title: 'Probes per second from one process',
  unit: 'probes/s',
  better: 'higher',
  promises: [{ against: 'bare node:http', ratio: 0.95 }],
  bound: 2000,
  notes: `${PROBES} probes, ${AT_ONCE} at once, a new connection each, a server in another process.`,
  open: async () => {
    const { url, close } = await healthServer()
    return {
      contenders: [
        {
          name: 'the prober',
          role: 'ours',
          measure: () =>
            rate(async () => {
              const health = await probeRemote({
                service: 'web',
                health: '/api/health',
                url,
                deep: false,
                token: undefined,
                timeoutMs: 5000,
                clock: systemClock,
              })
              if (!health.reached) throw new Error(health.reason)
            }),
        },
        { name: 'bare node:http', role: 'floor', measure: () => rate(() => bareGet(url)) },
      ],
      close,
    }
  },
}
