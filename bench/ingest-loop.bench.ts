import type { Benchmark } from './harness.ts'
import { openIngest } from './ingest.ts'

const BATCHES = 1500
const LARGEST_WAL = 64 * 1024 * 1024

export const benchmark: Benchmark = {
  name: 'ingest-loop',
  title: 'Delay of the event loop under a sustained load of events, 99th percentile',
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 50,
  notes:
    'As in the benchmark ingest, three quarters of a million events a round. A round whose WAL grew beyond 64 MB would fail.',
  async open(opened) {
    const way = async (name: 'ours' | 'ordinary') =>
      opened.adopt(await openIngest(name), (one) => one.close())
    const [ours, ordinary] = [await way('ours'), await way('ordinary')]
    return {
      contenders: [
        {
          name: 'platformctl',
          role: 'ours',
          async measure() {
            await ours.load(BATCHES)
            const { p99Ms, walBytes } = await ours.stats()
            if (walBytes > LARGEST_WAL) throw new Error(`the WAL grew to ${walBytes} bytes`)
            return p99Ms
          },
        },
        {
          name: 'fastify, zod, an insert an event',
          role: 'peer',
          async measure() {
            await ordinary.load(BATCHES / 10)
            return (await ordinary.stats()).p99Ms
          },
        },
      ],
    }
  },
}
