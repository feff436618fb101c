import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds of processor time that a process has used, over all of its threads (proc(5), schedstat: nanoseconds). */
function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  )
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6
}

/** Percent of one core that a process uses in the next `seconds`, while `each` is called every second. */
export async function cpuPercent(
  pid: number,
  seconds: number,
  each: () => Promise<unknown>,
): Promise<number> {
  const began = performance.now()
  const before = cpuMs(pid)
  for (let second = 0; second < seconds; second += 1) {
    await each()
    await sleep(Math.max(0, began + (second + 1) * 1000 - performance.now()))
  }
  return ((cpuMs(pid) - before) / (performance.now() - began)) * 100
}
