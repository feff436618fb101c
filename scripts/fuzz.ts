import { fuzz } from './load/fuzz.ts'
import { optionsOf, wholeNumber } from './options.ts'
import { progressOn } from './progress.ts'

const USAGE = `npm run fuzz [-- --requests 1000000] [--seed S] [--from N]
  Sends bad requests to a daemon of its own. A fault is told with its number:
  --seed S --from N --requests 1 sends that one again and shows it.`
const { values } = optionsOf(USAGE, {
  options: {
    requests: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    from: { type: 'string', default: '0' },
  },
})
const number = (name: keyof typeof values, least: number) =>
  wholeNumber(USAGE, `--${name}`, values[name], least)
const [requests, seed, from] = [number('requests', 1), number('seed', 0), number('from', 0)]
console.log(`${requests} requests, seed ${seed}${from > 0 ? `, from ${from}` : ''}`)
const began = performance.now()
const progress = progressOn()
const { faults, statuses, late, heapMb } = await fuzz({
  requests,
  seed,
  from,
  onProgress: (done) => progress.tell(`${done} of ${requests} requests`),
  ...(requests === 1 && {
    onAnswer: (request, outcome) => {
      console.log(request.bytes.subarray(0, 4000).toString('latin1'))
      console.log(
        outcome.kind === 'answer' ? `→ ${outcome.answer.status} ${outcome.answer.body}` : `→ ${outcome.kind}`,
      )
    },
  }),
})
progress.end()
const seconds = (performance.now() - began) / 1000
for (const { index, what } of faults)
  console.log(
    `${what}${index < 0 ? '' : `\n  again: npm run fuzz -- --seed ${seed} --from ${index} --requests 1`}`,
  )
console.log(
  `${Object.entries(statuses)
    .map(([status, count]) => `${status === '0' ? 'closed' : status}: ${count}`)
    .join('  ')}`,
)
if (late.length > 0)
  console.log(
    `${late.length} got no answer in time and a good one when sent again alone: ${late.slice(0, 20).join(' ')}`,
  )
// Too many faults end it early.
const sent = Object.values(statuses).reduce((sum, count) => sum + count, 0)
console.log(
  `${faults.length} faults in ${sent} requests (${Math.round(sent / seconds)} a second)${sent < requests ? `, ended before all ${requests} were sent` : ''}; heap ${heapMb.early.toFixed(1)} → ${heapMb.late.toFixed(1)} MB`,
)
process.exitCode = faults.length === 0 ? 0 : 1
