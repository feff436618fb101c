import { restarts } from './load/restarts.ts'
import { optionsOf, wholeNumber } from './options.ts'
import { progressOn } from './progress.ts'

const USAGE = `npm run restarts [-- --times 1000] [--seed 1]
  SIGTERM under load, again and again: nothing that was acknowledged is lost.`
const { values } = optionsOf(USAGE, {
  options: { times: { type: 'string', default: '1000' }, seed: { type: 'string', default: '1' } },
})
const [times, seed] = [
  wholeNumber(USAGE, '--times', values.times, 1),
  wholeNumber(USAGE, '--seed', values.seed),
]
const began = performance.now()
const progress = progressOn()
const { acknowledged, lost, unclean } = await restarts({
  times,
  seed,
  onRound: (round, count) => progress.tell(`${round} of ${times} restarts, ${count} requests acknowledged`),
})
progress.end()
for (const line of unclean) console.log(line)
for (const address of lost) console.log(`lost: ${address}`)
console.log(
  `${times} restarts in ${Math.round((performance.now() - began) / 1000)} s: ${acknowledged} acknowledged, ${lost.length} lost, ${unclean.length} unclean ends`,
)
process.exitCode = lost.length + unclean.length === 0 && acknowledged > 0 ? 0 : 1
