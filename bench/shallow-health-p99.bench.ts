import type { Benchmark } from './harness.ts'
import { p99AtRate } from './load.ts'
import { bareServer, daemonServer } from './servers.ts'

const RATE = 10_000
const ROUND_MS = 2000

export const benchmark: Benchmark = {
  name: 'shallow-health-p99',
  title: `GET /api/health at ${RATE.toLocaleString('en')} requests a second, p99`,
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 10,
  rounds: 10,
  notes: 'Requests are sent on schedule, whatever the server does, and timed from their scheduled moment.',
  open: async (opened) => {
    const ours = opened.adopt(await daemonServer(), (server) => server.close())
    const bare = opened.adopt(await bareServer(`http://127.0.0.1:${ours.port}/api/health`), (server) =>
      server.close(),
    )
    const of = ({ port }: { port: number }) => p99AtRate({ port, path: '/api/health' }, RATE, ROUND_MS)
    return {
      contenders: [
        { name: 'platformctl daemon', role: 'ours', measure: () => of(ours) },
        { name: 'node:http, the same bytes', role: 'floor', measure: () => of(bare) },
      ],
    }
  },
}
