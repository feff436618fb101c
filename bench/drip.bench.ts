import { dripContenders } from './drip.ts'
import type { Benchmark } from './harness.ts'

const LESSONS = 10_000

export const benchmark: Benchmark = {
  name: 'drip',
  title: 'The whole drip job: 10,000 due lessons to a mail API on loopback, 50 at once',
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
    'Ours claims, checks once more, fills the template, posts and records each lesson by a durable commit (SQLite, synchronous FULL); nothing is enqueued, because what is due is a row already. The others post one finished body of the same size by the same client; enqueueing in bulk is part of their time. One finished body stays in the processor’s cache. The loop that posts a copy for each pays what any sender of different mails pays; with grouped durable marks beside, it is the most that a sender who remembers what went out can have.',
  open: () => dripContenders({ lessons: LESSONS, sinkDelayMs: 0 }),
}
