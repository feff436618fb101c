import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const module = JSON.stringify(new URL('../../src/cli/commands/daemon.ts', import.meta.url).href)
/** Prints how often all garbage was collected, which so small a program does not need: during half a second of work, and after it. */
const PROGRAM = `
  import { PerformanceObserver, performance } from 'node:perf_hooks'
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  import { releaseWhenIdle } from ${module}
  // A collection that loading began would end in the middle of the work.
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  setFlagsFromString('--no-expose-gc')
  const MAJOR = 4
  let collected = 0
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === MAJOR) collected += 1
    if (collected > 0) setTimeout(() => { console.log(busy, collected > 0, 'gc' in globalThis); process.exit() }, 50)
  })
  observer.observe({ entryTypes: ['gc'] })
  releaseWhenIdle({ everyMs: 100 })
  for (let turn = 0; turn < 10; turn += 1) {
    for (const until = performance.now() + 50; performance.now() < until; );
    await new Promise((resolve) => setImmediate(resolve))
  }
  const busy = collected
  setTimeout(() => console.log('nothing was collected'), 9000)
`

test('an idle process gives back what only its start needed, and a busy one does its work first', async () => {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', PROGRAM]
  expect((await promisify(execFile)(process.execPath, args)).stdout).toBe('0 true false\n')
})
