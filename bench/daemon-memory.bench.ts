import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Benchmark } from './harness.ts'
import { daemonServer, peerServer, type RunningServer } from './http-load.ts'

const REST_MS = 12_000

/** Resident megabytes of a server that has answered once and then rested: the daemon gives memory back when it is idle. */
async function idle(start: () => Promise<RunningServer>): Promise<number> {
  const server = await start()
  await (await fetch(`http://127.0.0.1:${server.port}/api/health`)).text()
  await sleep(REST_MS)
  const status = await readFile(`/proc/${server.child.pid}/status`, 'utf8')
  await server.stop()
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

export const benchmark: Benchmark = {
  name: 'daemon-memory',
  title: 'Idle memory of the daemon',
  unit: 'MB',
  better: 'lower',
  promises: [],
  bound: 70,
  open: async () => ({
    contenders: [
      { name: 'platformctl daemon', role: 'ours', measure: () => idle(() => daemonServer()) },
      { name: 'node:http', role: 'floor', measure: () => idle(() => peerServer('bare.mjs')) },
      { name: 'fastify', role: 'peer', measure: () => idle(() => peerServer('fastify.mjs')) },
      { name: 'express', role: 'peer', measure: () => idle(() => peerServer('express.mjs')) },
    ],
  }),
}
