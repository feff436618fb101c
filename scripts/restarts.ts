import { parseArgs } from 'node:util'
import { restarts } from './load/restarts.ts'
import { progressOn } from './progress.ts'

/** `npm run restarts -- --times 1000 --seed 1`: SIGTERM under load, and nothing that was acknowledged is lost. */
const { values } = parseArgs({
  options: { times: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
})
const began = performance.now()
const progress = progressOn()
const { acknowledged, lost, unclean } = await restarts({
  times: Number(values.times),
  seed: Number(values.seed),
  onRound: (round, count) =>
    progress.tell(`${round} of ${values.times} restarts, ${count} requests acknowledged`),
})
progress.end()
for (const line of unclean) console.log(line)
for (const address of lost) console.log(`lost: ${address}`)
console.log(
  `${values.times} restarts in ${Math.round((performance.now() - began) / 1000)} s: ${acknowledged} acknowledged, ${lost.length} lost, ${unclean.length} unclean ends`,
)
process.exitCode = lost.length + unclean.length === 0 && acknowledged > 0 ? 0 : 1
