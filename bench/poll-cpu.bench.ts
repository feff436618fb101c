import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bareGet } from './bare-get.ts'
import { owned, stopped } from './child.ts'
import { cpuPercent } from './cpu.ts'
import type { Benchmark } from './harness.ts'

const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const SECONDS = 5
const ports = ['--web-port', '0', '--api-port', '0', '--agent-port', '0']

export const benchmark: Benchmark = {
  name: 'poll-cpu',
  title: 'CPU of the daemon, polled once a second',
  unit: '% of a core',
  better: 'lower',
  promises: [],
  bound: 1,
  rounds: 4,
  notes: `The daemon's share of a core over ${SECONDS} s: while the API's health (circuit, job store) is asked once a second, and while nobody asks. The watch is platformctl health --watch --interval 1s on the same service.`,
  open: async (opened) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'bench-poll-'))
    opened.defer(() => rm(folder, { recursive: true, force: true }))
    const environment = { PATH: process.env.PATH, HOME: process.env.HOME }
    const daemon = owned(
      spawn(process.execPath, [bin, 'daemon', '--no-schedule', '--data', folder, ...ports], {
        env: environment,
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    opened.defer(() => stopped(daemon))
    let url = ''
    for await (const line of createInterface({ input: daemon.stdout })) {
      const parsed = JSON.parse(line) as { event?: string; api?: string }
      if (parsed.event === 'listening') url = parsed.api ?? ''
      if (url !== '') break
    }
    if (url === '') throw new Error('the daemon ended before it listened')
    daemon.stdout.resume()
    const poll = () => bareGet(url)
    // Warm up, so that work done once after the start is not measured.
    for (let warm = 0; warm < 50; warm += 1) await poll()
    const watched = async () => {
      const watch = owned(
        spawn(process.execPath, [bin, 'health', '--watch', '--interval', '1s', '--url', `api=${url}`], {
          env: environment,
          stdio: ['ignore', 'ignore', 'inherit'],
        }),
      )
      await sleep(2000)
      const percent = await cpuPercent(watch.pid ?? 0, SECONDS, async () => {})
      await stopped(watch)
      return percent
    }
    return {
      contenders: [
        { name: 'polled daemon', role: 'ours', measure: () => cpuPercent(daemon.pid ?? 0, SECONDS, poll) },
        {
          name: 'idle daemon',
          role: 'floor',
          measure: () => cpuPercent(daemon.pid ?? 0, SECONDS, async () => {}),
        },
        { name: 'the watch that polls', role: 'peer', measure: watched },
      ],
    }
  },
}
