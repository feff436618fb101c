import { writeFileSync } from 'node:fs'

/** Loaded before a program by `--import`: writes, when it ends, how much memory it held at most. */
const MB = 1024 * 1024
let heap = 0
if (process.env.MEMORY_COLLECT === '1')
  setInterval(() => {
    globalThis.gc?.()
    heap = Math.max(heap, process.memoryUsage().heapUsed)
  }, 100).unref()
process.on('exit', () => {
  // maxRSS is in kilobytes.
  const memory = { heapMb: heap / MB, peakMb: process.resourceUsage().maxRSS / 1024 }
  writeFileSync(process.env.MEMORY_FILE ?? '', JSON.stringify(memory))
})
