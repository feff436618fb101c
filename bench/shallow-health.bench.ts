import type { Benchmark } from './harness.ts'
import { throughput } from './load.ts'
import { bareServer, daemonServer } from './servers.ts'

const CONNECTIONS = 64
const ROUND_MS = 1000

export const benchmark: Benchmark = {
  name: 'shallow-health',
  title: 'GET /api/health, each answer computed',
  unit: 'requests/s',
  better: 'higher',
  promises: [{ against: 'node:http, the same bytes', ratio: 0.85 }],
  rounds: 12,
  notes: `${CONNECTIONS} connections, each asking again when it was answered. The daemon runs as it comes: ten probes, a line of the log, request id, metrics.`,
  open: async (opened) => {
    const ours = opened.adopt(await daemonServer(), (server) => server.close())
    const bare = opened.adopt(await bareServer(`http://127.0.0.1:${ours.port}/api/health`), (server) =>
      server.close(),
    )
    const of = ({ port }: { port: number }) =>
      throughput({ port, path: '/api/health' }, CONNECTIONS, ROUND_MS)
    return {
      contenders: [
        { name: 'platformctl daemon', role: 'ours', measure: () => of(ours) },
        { name: 'node:http, the same bytes', role: 'floor', measure: () => of(bare) },
      ],
    }
  },
}
