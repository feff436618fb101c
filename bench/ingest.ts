import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Pool } from 'undici'
import { EVENT_KINDS } from '../test/support/learning.ts'
import { first, owned } from './child.ts'
import { perSecond } from './sink.ts'

const EVENTS = 500
const CONNECTIONS = 8
const ID = '#'.repeat(16)

/** 500 events of a browser, about 124 KB; their times are scattered over a month. */
const TEMPLATE = JSON.stringify({
  batch: ID,
  events: Array.from({ length: EVENTS }, (_, index) => ({
    kind: EVENT_KINDS[index % EVENT_KINDS.length],
    at: Date.now() - ((index * 7919) % 2_592_000) * 1000,
    properties: {
      lesson: index % 7,
      device: ['simulator', 'hardware A', 'cloud B'][index % 3],
      shots: 1024 + index,
      passed: index % 2 === 0,
      language: 'en',
      topic: `superposition and entanglement, part ${index}`,
      tier: 'offline',
      variant: 'control',
    },
  })),
})

export interface Ingest {
  /** Posts so many batches, each under an id of its own; gives events a second. */
  load(batches: number): Promise<number>
  /** The 99th percentile of the event loop's delay since the last call of `load`, and the WAL's size. */
  stats(): Promise<{ readonly p99Ms: number; readonly walBytes: number }>
  close(): Promise<void>
}

/** One way of taking events, in a process of its own. */
export async function openIngest(way: 'ours' | 'ordinary' | 'parse'): Promise<Ingest> {
  const child = owned(fork(fileURLToPath(new URL('./ingest-server.ts', import.meta.url)), [way]))
  const [{ port }] = (await first(child, once(child, 'message'))) as [{ port: number }]
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS, pipelining: 1 })
  let sent = 0
  return {
    async load(batches) {
      child.send('begin')
      const rate = await perSecond(batches, CONNECTIONS, async () => {
        sent += 1
        const body = TEMPLATE.replace(ID, String(sent).padStart(ID.length, '0'))
        const answer = await pool.request({
          path: '/api/analytics',
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        const text = await answer.body.text()
        if (answer.statusCode !== 202) throw new Error(`${way} answered ${answer.statusCode}: ${text}`)
      })
      return rate * EVENTS
    },
    async stats() {
      child.send('stats')
      const [stats] = (await once(child, 'message')) as [{ p99Ms: number; walBytes: number }]
      return stats
    },
    async close() {
      await pool.destroy()
      if (!child.connected) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
