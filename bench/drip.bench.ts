import { dripContenders } from './drip.ts'
import type { Benchmark } from './harness.ts'

const LESSONS = 10_000

export const benchmark: Benchmark = {
  name: 'drip',
  title: 'The drip job, mail API on loopback: 10,000 lessons, 50 at once',
  unit: 'lessons/s',
  better: 'higher',
  rounds: 16,
  promises: [
    { against: 'a loop that only posts', ratio: 0.75 },
    { against: 'BullMQ on Redis', ratio: 1.5 },
    { against: 'graphile-worker, batched', ratio: 1.2 },
    { against: 'graphile-worker', ratio: 3.5 },
    { against: 'pg-boss, fetched in batches', ratio: 1.2 },
    { against: 'pg-boss, work()', ratio: 3.5 },
  ],
  notes:
    'Ours claims, rechecks, fills the template, posts and durably records each lesson (SQLite, synchronous FULL); nothing is enqueued. The queues post one finished body of the same size with the same client, bulk enqueueing included. A single body stays in the CPU’s cache; a copy for each mail costs what different mails cost. The loop with grouped durable marks is the upper bound for a sender that remembers what went out.',
  open: () => dripContenders({ lessons: LESSONS, sinkDelayMs: 0 }),
}
