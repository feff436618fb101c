import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import Database from 'better-sqlite3'
import * as z from 'zod'
import { openPlatform } from '../src/daemon/index.ts'
import { listen } from '../src/daemon/listen.ts'
import { EVENT_KINDS } from '../test/support/learning.ts'
import { peer } from './peers.ts'

// One way of taking events, in a process of its own: sends its port, and what it measured when it is asked.
const folder = mkdtempSync(path.join(tmpdir(), 'platformctl-bench-'))
const delay = monitorEventLoopDelay({ resolution: 1 })

const WAYS: Readonly<Record<string, () => Promise<number>>> = {
  async ours() {
    const platform = openPlatform({
      env: {
        STORE_URL: `sqlite:${folder}/store.sqlite`,
        ANALYTICS_DATASTORE_TABLE: 'visits',
        ANALYTICS_DAILY_MB: '1000000',
        ANALYTICS_TOTAL_MB: '1000000',
        RATE_LIMIT_PER_MINUTE: '1000000',
      },
    })
    const listener = await listen('127.0.0.1', 0)
    listener.serve(platform.web)
    return listener.port
  },
  /** The obvious implementation: a framework, a schema, and one statement per event. */
  async ordinary() {
    interface Fastify {
      post(
        path: string,
        handler: (request: { body: unknown }, reply: { code(status: number): unknown }) => unknown,
      ): void
      listen(options: { port: number; host: string }): Promise<string>
    }
    const server = peer<(options: object) => Fastify>('fastify')({ bodyLimit: 1024 * 1024 })
    const Body = z.object({
      batch: z.string().optional(),
      events: z
        .array(
          z.object({
            kind: z.enum(EVENT_KINDS),
            at: z.number(),
            properties: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
          }),
        )
        .max(500),
    })
    const database = new Database(`${folder}/ordinary.sqlite`)
    database.pragma('journal_mode = WAL')
    database.pragma('synchronous = NORMAL')
    database.exec(
      'CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, at INTEGER, properties TEXT); CREATE INDEX events_at ON events (at)',
    )
    const insert = database.prepare('INSERT INTO events (kind, at, properties) VALUES (?, ?, ?)')
    server.post('/api/analytics', (request, reply) => {
      const { events } = Body.parse(request.body)
      for (const { kind, at, properties } of events) insert.run(kind, at, JSON.stringify(properties))
      reply.code(202)
      return { accepted: events.length }
    })
    return Number(new URL(await server.listen({ port: 0, host: '127.0.0.1' })).port)
  },
  /** The minimum: reads and parses the body, and nothing else. */
  parse: () =>
    new Promise((resolve) => {
      const server = createServer((request, response) => {
        const chunks: Uint8Array[] = []
        request.on('data', (chunk: Uint8Array) => chunks.push(chunk))
        request.on('end', () => {
          const { events } = JSON.parse(Buffer.concat(chunks).toString()) as { events: unknown[] }
          response.writeHead(202, { 'Content-Type': 'application/json' }).end(`{"accepted":${events.length}}`)
        })
      })
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port))
    }),
}

process.on('message', (message) => {
  if (message === 'begin') {
    delay.reset()
    delay.enable()
  } else {
    const wal = `${folder}/store-analytics.sqlite-wal`
    process.send?.({ p99Ms: delay.percentile(99) / 1e6, walBytes: existsSync(wal) ? statSync(wal).size : 0 })
  }
})
process.on('disconnect', () => {
  rmSync(folder, { recursive: true, force: true })
  process.exit()
})
process.send?.({ port: await WAYS[process.argv[2] ?? '']?.() })
