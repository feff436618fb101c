import type { Benchmark } from './harness.ts'
import { daemonServer, peerServer, type RunningServer, requestsASecond } from './http-load.ts'

export const benchmark: Benchmark = {
  name: 'daemon-health',
  title: 'Shallow health over HTTP, logging included',
  unit: 'requests/s',
  better: 'higher',
  promises: [{ against: 'node:http', ratio: 0.85 }],
  notes:
    'The daemon routes, runs ten probes and logs each request; the others answer the same body and log nothing.',
  open: async (opened) => {
    const servers: RunningServer[] = []
    for (const start of [
      daemonServer,
      ...['bare.mjs', 'fastify.mjs', 'express.mjs'].map((file) => () => peerServer(file)),
    ])
      servers.push(opened.adopt(await start(), (server) => server.stop()))
    const names = [
      ['platformctl daemon', 'ours'],
      ['node:http', 'floor'],
      ['fastify', 'peer'],
      ['express', 'peer'],
    ] as const
    return {
      contenders: names.map(([name, role], index) => ({
        name,
        role,
        measure: () =>
          requestsASecond({
            port: servers[index]?.port ?? 0,
            target: '/api/health',
            connections: 64,
            seconds: 2,
          }),
      })),
    }
  },
}
