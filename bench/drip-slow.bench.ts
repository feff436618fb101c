import { dripContenders } from './drip.ts'
import type { Benchmark } from './harness.ts'

const LESSONS = 2000

export const benchmark: Benchmark = {
  name: 'drip-slow',
  title: 'The drip job, mail API answering in 50 ms',
  unit: 'lessons/s',
  better: 'higher',
  promises: [
    { against: 'a loop that only posts', ratio: 0.97 },
    { against: 'BullMQ on Redis', ratio: 1 },
    { against: 'graphile-worker, batched', ratio: 1 },
    { against: 'graphile-worker', ratio: 1 },
    { against: 'pg-boss, fetched in batches', ratio: 1 },
    { against: 'pg-boss, work()', ratio: 1 },
  ],
  rounds: 10,
  notes: '2,000 lessons, 50 at once: at most 1,000 a second are possible.',
  open: () => dripContenders({ lessons: LESSONS, sinkDelayMs: 50 }),
}
