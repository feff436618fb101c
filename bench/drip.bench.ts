import { dripContenders } from './drip.ts'
import type { Benchmark } from './harness.ts'

const LESSONS = 10_000

export const benchmark: Benchmark = {
  name: 'drip',
  title: 'The drip job, mail API on loopback',
  unit: 'lessons/s',
  better: 'higher',
  rounds: 16,
  promises: [
    { against: 'that loop with grouped durable marks', ratio: 0.4, first: 0.75 },
    { against: 'BullMQ on Redis', ratio: 1.3 },
    { against: 'graphile-worker, batched', ratio: 0.75, first: 1.3 },
    { against: 'graphile-worker', ratio: 1.3 },
    { against: 'pg-boss, fetched in batches', ratio: 0.7, first: 1.3 },
    { against: 'pg-boss, work()', ratio: 1.3 },
  ],
  notes:
    '10,000 lessons, 50 at once. Ours claims, rechecks, fills the template, posts and durably records each lesson (SQLite, synchronous FULL); nothing is enqueued. The queues post one finished body of the same size with the same client, bulk enqueueing included. A single body stays in the CPU’s cache; a copy for each mail costs what different mails cost. The loop with grouped durable marks is the upper bound for a sender that remembers what went out. Queues in batches post one body and look at nobody’s subscription before. Claims and marks in groups, templates filled as bytes, claims that fire no trigger and slots without a chain of promises are in; a look at unsubscribes for a group gave under 2 %, one for each lesson costs more, and memory used again for requests is left out, because an early answer could send one person’s mail to another.',
  open: () => dripContenders({ lessons: LESSONS, sinkDelayMs: 0 }),
}
