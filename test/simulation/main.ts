import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { optionsOf, wholeNumber } from '../../scripts/options.ts'
import { progressOn } from '../../scripts/progress.ts'
import { loadCore } from './core.ts'
import { type Failure, scenarioOf, shrink, tell } from './scenario.ts'
import { simulate } from './world.ts'

const USAGE = `npm run simulate [-- --seed 1] [--subscriber-days 50000] [--jobs N] [--no-shrink]
  Lives scenarios from that seed on, in N processes, until so many subscriber-days are lived. Exit 1 at the first
  violation, shrunk to a short trace. The same seed always gives the same run, byte for byte.`
const { values } = optionsOf(USAGE, {
  options: {
    seed: { type: 'string', default: '1' },
    'subscriber-days': { type: 'string', default: '50000' },
    /** How many processes share the seeds: each takes every so manyth. */
    jobs: { type: 'string', default: String(availableParallelism()) },
    stride: { type: 'string', default: '1' },
    /** A copy of the project with a mutation in it. */
    root: { type: 'string', default: fileURLToPath(new URL('../../', import.meta.url)) },
    'no-shrink': { type: 'boolean', default: false },
  },
})
const number = (name: 'seed' | 'subscriber-days' | 'jobs' | 'stride') =>
  wholeNumber(USAGE, `--${name}`, values[name], 1)
const [seed, wanted, jobs, stride] = [
  number('seed'),
  number('subscriber-days'),
  number('jobs'),
  number('stride'),
]
if (jobs > 1) process.exitCode = await inProcesses()
else await live()
// Processes that a scenario killed leave timers of their alerts behind, in real time: nothing waits for those.
process.exit()

async function live(): Promise<void> {
  const core = await loadCore(values.root)
  const began = performance.now()
  let [lived, delivered, kills, scenarios] = [0, 0, 0, 0]
  let failure: Failure | undefined
  const progress = progressOn()
  for (let next = seed; lived < wanted && failure === undefined; next += stride) {
    const scenario = scenarioOf(next)
    const run = await simulate(core, scenario)
    lived += run.subscriberDays
    delivered += run.delivered
    kills += run.kills
    scenarios += 1
    progress.tell(`${lived} of ${wanted} subscriber-days, ${delivered} lessons, ${kills} kills`)
    if (run.violations.length > 0) failure = { scenario, run }
  }
  progress.end()
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  if (failure === undefined) {
    process.stdout.write(
      `no violation in ${lived} subscriber-days: ${scenarios} scenarios from seed ${seed}, ${delivered} lessons, ${kills} kills, ${seconds} s\n`,
    )
    return
  }
  process.stdout.write(tell(values['no-shrink'] ? failure : await shrink(core, failure)))
  process.exitCode = 1
}

/** The seeds do not depend on each other: each process lives its share of them. */
async function inProcesses(): Promise<number> {
  const shares = Array.from({ length: jobs }, (_, index) => {
    const args = {
      seed: seed + index * stride,
      stride: stride * jobs,
      'subscriber-days': Math.ceil(wanted / jobs),
      jobs: 1,
      root: values.root,
    }
    const child = spawn(
      process.execPath,
      [
        fileURLToPath(import.meta.url),
        ...Object.entries(args).flatMap(([name, value]) => [`--${name}`, String(value)]),
        ...(values['no-shrink'] ? ['--no-shrink'] : []),
      ],
      { stdio: ['inherit', 'inherit', 'pipe'] },
    )
    // Through a pipe, so that several processes do not write over one line of a terminal.
    child.stderr.pipe(process.stderr)
    return new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? 1)))
  })
  return Math.max(...(await Promise.all(shares)))
}
