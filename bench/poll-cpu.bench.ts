import { setTimeout as sleep } from 'node:timers/promises'
import type { Benchmark } from './harness.ts'
import { daemonServer, type Server } from './servers.ts'

const SECONDS = 10

export const benchmark: Benchmark = {
  name: 'poll-cpu',
  title: 'CPU of the daemon while its health is asked for once a second',
  unit: '% of one core',
  better: 'lower',
  promises: [],
  rounds: 3,
  notes: `Promised: less than 1 %. Each round is ${SECONDS} s; the other row is the same daemon that nobody asks.`,
  open: async () => {
    const polled = await daemonServer()
    const idle = await daemonServer()
    return {
      contenders: [
        { name: 'asked once a second', role: 'ours', measure: () => cpuOf(polled, true) },
        { name: 'asked by nobody', role: 'floor', measure: () => cpuOf(idle, false) },
      ],
      close: async () => {
        await polled.close()
        await idle.close()
      },
    }
  },
}

/** Per cent of one core, by the process's own counter; the two scrapes are outside of what it counts but for the last. */
async function cpuOf({ port }: Server, poll: boolean): Promise<number> {
  const before = await cpuSeconds(port)
  const began = performance.now()
  for (let second = 0; second < SECONDS; second += 1) {
    if (poll) await (await fetch(`http://127.0.0.1:${port}/api/health`)).text()
    await sleep(began + (second + 1) * 1000 - performance.now())
  }
  return ((await cpuSeconds(port)) - before) * (100 / SECONDS)
}

async function cpuSeconds(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1] ?? Number.NaN)
}
