import { soak } from './load/soak.ts'
import { optionsOf, wholeNumber } from './options.ts'

const USAGE = `npm run soak [-- --seconds 600] [--rate 200] [--seed 1]
  Mixed load of so many requests a second: flat memory, event loop p99 below 50 ms, no error. A trial takes 20 s.`
const { values } = optionsOf(USAGE, {
  options: {
    seconds: { type: 'string', default: '600' },
    rate: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
  },
})
const number = (name: keyof typeof values, least: number) =>
  wholeNumber(USAGE, `--${name}`, values[name], least)
const [forSeconds, rate, seed] = [number('seconds', 1), number('rate', 1), number('seed', 0)]
console.log('  second  requests   heap MB    rss MB   loop p99 ms   loop max ms')
const { requests, statuses, mails, faults } = await soak({
  seconds: forSeconds,
  rate,
  seed,
  onSample: ({ second, requests: soFar, heap, rss, loopP99, loopMax }) =>
    console.log(
      [
        String(second).padStart(8),
        String(soFar).padStart(10),
        heap.toFixed(1).padStart(10),
        rss.toFixed(1).padStart(10),
        loopP99.toFixed(1).padStart(14),
        loopMax.toFixed(1).padStart(14),
      ].join(''),
    ),
})
for (const fault of faults) console.log(fault)
console.log(
  `${requests} requests, ${mails} mails; ${Object.entries(statuses)
    .map(([status, count]) => `${status}: ${count}`)
    .join('  ')}`,
)
console.log(
  faults.length === 0 ? 'kept: flat memory, a free event loop, no error' : `${faults.length} not kept`,
)
process.exitCode = faults.length === 0 ? 0 : 1
