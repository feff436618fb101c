import type { Benchmark } from './harness.ts'
import { openIngest } from './ingest.ts'

const BATCHES = 1500
const LARGEST_WAL = 64 * 1024 * 1024

export const benchmark: Benchmark = {
  name: 'ingest-loop',
  title: 'Event loop delay under sustained ingest, p99',
  unit: 'ms',
  better: 'lower',
  promises: [],
  bound: 50,
  notes: 'As in ingest, 750,000 events a round. A round fails if its WAL exceeds 64 MB.',
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
