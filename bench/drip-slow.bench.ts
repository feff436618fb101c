import { dripContenders } from './drip.ts'
import type { Benchmark } from './harness.ts'

const LESSONS = 2000

export const benchmark: Benchmark = {
  name: 'drip-slow',
  title: 'The drip job with a mail API that takes 50 ms to answer: 2,000 lessons, 50 at once',
  unit: 'lessons/s',
  better: 'higher',
  promises: [
    { against: 'BullMQ on Redis', ratio: 1 },
    { against: 'graphile-worker, batched', ratio: 1 },
    { against: 'graphile-worker', ratio: 1 },
    { against: 'pg-boss, fetched in batches', ratio: 1 },
    { against: 'pg-boss, work()', ratio: 1 },
  ],
  rounds: 10,
  notes: 'Fifty at once and 50 ms each make 1,000 a second at most.',
  open: () => dripContenders({ lessons: LESSONS, sinkDelayMs: 50 }),
}
