import type { Benchmark } from './harness.ts'
import { openIngest } from './ingest.ts'

const BATCHES = 600

export const benchmark: Benchmark = {
  name: 'ingest',
  title: 'Ingesting batches of 500 events over HTTP',
  unit: 'events/s',
  better: 'higher',
  promises: [{ against: 'fastify, zod, an insert an event', ratio: 5.5, first: 10 }],
  notes:
    'Sanitized, stored and counted; batches of 124 KB over 8 connections, each server in its own process. 10 was promised. How many times depends on the disk, because the other server commits each event: on another machine it was 9.5 to 10.8. Of our time, SQLite takes a quarter and JSON.parse a sixth. Pages of 16 KB save 2 % of such a batch, and cost SQLite a fifth more for the batches of 20 events that browsers send; fewer checkpoints save no work. The request’s own text cannot be stored to save writing JSON: it may hold what was never judged, as a name that occurs twice.',
  async open(opened) {
    const way = async (name: 'ours' | 'ordinary' | 'parse') =>
      opened.adopt(await openIngest(name), (one) => one.close())
    const [ours, ordinary, parse] = [await way('ours'), await way('ordinary'), await way('parse')]
    return {
      contenders: [
        { name: 'platformctl', role: 'ours', measure: () => ours.load(BATCHES) },
        { name: 'fastify, zod, an insert an event', role: 'peer', measure: () => ordinary.load(BATCHES / 6) },
        { name: 'node:http, parse alone', role: 'floor', measure: () => parse.load(BATCHES) },
      ],
    }
  },
}
