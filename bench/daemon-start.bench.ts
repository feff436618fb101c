import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stopped } from './child.ts'
import type { Benchmark } from './harness.ts'
import { daemonServer, peerServer, type RunningServer } from './http-load.ts'
import { wholeProcess } from './process.ts'

const definition = fileURLToPath(new URL('../examples/ceramics/platform.config.ts', import.meta.url))

/** Starts the daemon once and ends it cleanly: Node writes its compile cache at the exit, and `toFirst200` kills. */
async function fillCompileCache(...args: readonly string[]): Promise<void> {
  const server = await daemonServer({}, ...args)
  await stopped(server.child)
  await server.stop()
}

/** Milliseconds from the start of the process to its first 200. */
async function toFirst200(start: () => Promise<RunningServer>): Promise<number> {
  const began = performance.now()
  const server = await start()
  while (!(await answers(server.port))) await sleep(1)
  const took = performance.now() - began
  await server.stop()
  return took
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
    )
    socket.on('data', (chunk) => {
      socket.destroy()
      resolve(String(chunk).startsWith('HTTP/1.1 200'))
    })
    socket.on('error', () => resolve(false))
  })
}

export const benchmark: Benchmark = {
  name: 'daemon-start',
  title: 'From process start to the first 200',
  unit: 'ms',
  better: 'lower',
  promises: [{ against: 'node -e 0', ratio: 5.5, first: 4 }],
  notes:
    'The definition is that of examples/ceramics. The data folder is new. Node’s compile cache is filled, as from the second start on. 4 was promised. A bare node:http leaves 1.6 of that, and finding, reading and evaluating our code takes about 2. Compiling functions only when they are called took 4 % more, compiling in advance just those that a recorded start calls 3 % less, for three recorded starts in each build; shorter names took 1 % less. A new store made by one script, and built-in modules loaded with their first call, took 10 % less together, and are in.',
  open: async () => {
    await fillCompileCache('--config', definition)
    await fillCompileCache()
    return {
      contenders: [
        {
          name: 'platformctl daemon with a definition',
          role: 'ours',
          measure: () => toFirst200(() => daemonServer({}, '--config', definition)),
        },
        { name: 'platformctl daemon', role: 'peer', measure: () => toFirst200(() => daemonServer()) },
        { name: 'node -e 0', role: 'floor', measure: () => wholeProcess({ args: ['-e', '0'] }) },
        { name: 'node:http', role: 'floor', measure: () => toFirst200(() => peerServer('bare.mjs')) },
        { name: 'fastify', role: 'peer', measure: () => toFirst200(() => peerServer('fastify.mjs')) },
        { name: 'express', role: 'peer', measure: () => toFirst200(() => peerServer('express.mjs')) },
      ],
    }
  },
}
