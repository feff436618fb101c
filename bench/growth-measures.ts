import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createIngest } from '../src/core/analytics/store.ts'
import { systemClock } from '../src/core/host.ts'
import { openAnalyticsStore, openStore } from '../src/core/store/open.ts'
import { EVENT_KINDS, EVENTS } from '../test/support/learning.ts'
import { writeSchool } from '../test/torture/school.ts'
import { claimTimes, quantile, ROWS } from './claims.ts'
import { openDispatchers } from './dispatchers.ts'
import { inFolder } from './folder.ts'
import type { Growth, Point } from './growth-report.ts'
import { openConnections } from './load.ts'
import { daemonServer } from './servers.ts'
import { startSink } from './sink.ts'
import { replaceByDue, subscriptionsFile } from './subscriptions.ts'
import { waitingServer } from './waiting-server.ts'

type Measured = Omit<Growth, 'date' | 'machine'>

const median = (times: readonly number[]) => quantile(times, 0.5)
const decades = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => 10 ** (from + n))

const SAMPLES = 60
const BATCH = 20

function batch(id: string, events: number) {
  return {
    id,
    events: Array.from({ length: events }, (_, n) => ({
      kind: EVENT_KINDS[n % EVENT_KINDS.length],
      at: Date.now() - ((n * 7919) % 2_592_000) * 1000,
      properties: {
        lesson: n % 7,
        device: 'simulator',
        passed: n % 2 === 0,
        topic: `superposition, part ${n}`,
      },
    })),
  }
}

/** Measures only a few batches per store, so that its size hardly changes, and fills more stores instead. */
async function ingestAt(stored: number): Promise<number> {
  const each = Math.max(1, Math.min(SAMPLES, Math.floor(stored / 2 / BATCH)))
  const times: number[] = []
  while (times.length < SAMPLES)
    await inFolder(async (folder) => {
      const file = path.join(folder, 'store.sqlite')
      const store = await openAnalyticsStore({ kind: 'sqlite', file }, { table: 'visits' })
      const ingest = createIngest({
        events: EVENTS,
        destination: { store: async () => store },
        budget: { totalBytes: Number.MAX_SAFE_INTEGER, dailyBytes: Number.MAX_SAFE_INTEGER },
        clock: systemClock,
      })
      for (let at = 0; at < stored; at += 500)
        await ingest.take(batch(`fill-${at}`, Math.min(500, stored - at)), { objects: false })
      for (let n = 0; n < each; n += 1) {
        const one = batch(`batch-${n}`, BATCH)
        const began = performance.now()
        await ingest.take(one, { objects: false })
        times.push(performance.now() - began)
      }
      await store.close()
    })
  return median(times)
}

async function ingest(): Promise<Measured> {
  await ingestAt(10_000)
  const points: Point[] = []
  for (const size of decades(2, 6)) points.push({ size, value: await ingestAt(size) })
  return {
    name: 'ingest',
    title: `Taking a batch of ${BATCH} events`,
    size: 'events stored already',
    unit: 'ms',
    lines: [{ label: 'a batch', points }],
    notes: `Medians of ${SAMPLES} batches, each sanitized, counted and committed to SQLite.`,
  }
}

async function claim(): Promise<Measured> {
  const points: Point[] = []
  for (const size of decades(2, process.env.BENCH_LARGE === '1' ? 7 : 6))
    await inFolder(async (folder) => {
      const file = await subscriptionsFile({ folder, subscriptions: size, due: ROWS })
      const store = await openStore({ kind: 'sqlite', file })
      await claimTimes(store, SAMPLES)
      points.push({ size, value: median(await claimTimes(store, SAMPLES * 2)) })
      await store.close()
    })
  return {
    name: 'claim',
    title: `Claiming ${ROWS} due lessons`,
    size: 'subscriptions in the store',
    unit: 'ms',
    lines: [{ label: 'a claim', points }],
    notes: `Medians of ${SAMPLES * 2} claims, SQLite with synchronous FULL.`,
  }
}

/** Milliseconds until so many requests, sent at once on connections that are open, are all answered. */
async function allAnswered(port: number, requests: number): Promise<number> {
  const lines: Awaited<ReturnType<typeof openConnections>> = []
  // A few hundred at a time, as many as may wait to be accepted. Servers end connections that say nothing for seconds.
  while (lines.length < requests) {
    const more = Math.min(400, requests - lines.length)
    lines.push(...(await openConnections({ port, path: '/api/health' }, more)))
  }
  const times: number[] = []
  for (let n = 0; n < Math.max(9, Math.min(500, 2000 / requests)); n += 1) {
    const began = performance.now()
    await Promise.all(lines.map(({ ask }) => ask()))
    times.push(performance.now() - began)
  }
  for (const { close } of lines) close()
  return median(times)
}

/** In turn, so that a machine whose speed drifts changes all of them alike. */
async function healthOf(ports: readonly number[]): Promise<Point[][]> {
  for (const port of ports) for (let warm = 0; warm < 20; warm += 1) await allAnswered(port, 100)
  const points: Point[][] = ports.map(() => [])
  for (const size of decades(0, 4)) {
    const times: number[][] = ports.map(() => [])
    for (let round = 0; round < 9; round += 1)
      for (const [index, port] of ports.entries()) times[index]?.push(await allAnswered(port, size))
    for (const [index, values] of times.entries()) points[index]?.push({ size, value: median(values) })
  }
  return points
}

async function health(): Promise<Measured> {
  const ours = await daemonServer()
  const waiting = await waitingServer(`http://127.0.0.1:${ours.port}/api/health`)
  const [daemon = [], floor = []] = await healthOf([ours.port, waiting.port])
  const lines = [
    { label: 'the daemon', points: daemon },
    { label: 'node:http, all at once', floor: true as const, points: floor },
  ]
  await ours.close()
  await waiting.close()
  return {
    name: 'health',
    title: 'Answering GET /api/health until the last has its answer',
    size: 'requests at once',
    unit: 'ms',
    lines,
    notes:
      'Each request on its own open connection; the client’s time is included, so a bare server is the floor. Both read all waiting requests before they answer the first.',
  }
}

async function drain(): Promise<Measured> {
  const points: Point[] = []
  const sink = await startSink('./drip-sink.ts')
  await inFolder(async (folder) => {
    const file = await subscriptionsFile({ folder, subscriptions: 1, due: 1 })
    const api = `http://127.0.0.1:${sink.port}/emails`
    const dispatchers = await openDispatchers({ count: 1, store: file, api })
    const seconds = (lessons: number) => {
      replaceByDue(file, lessons)
      return dispatchers.drain({ count: 1, lessons })
    }
    for (let warm = 0; warm < 3; warm += 1) await seconds(3000)
    for (const size of decades(1, 5)) {
      const times: number[] = []
      const runs = size < 10_000 ? 9 : size < 100_000 ? 3 : 1
      for (let n = 0; n < runs; n += 1) times.push((await seconds(size)) * 1000)
      points.push({ size, value: median(times) })
    }
    await dispatchers.close()
  })
  sink.close()
  return {
    name: 'drain',
    title: 'Draining what is due',
    size: 'lessons due',
    unit: 'ms',
    lines: [{ label: 'until all are sent and recorded', points }],
    notes: 'In calls of 1,000, from SQLite to a mail API in another process.',
  }
}

/** Limits each of V8's three spaces for young objects to 16 MB. */
const YOUNG = '--max-semi-space-size=16'

interface Memory {
  readonly heapMb: number
  readonly peakMb: number
}

/** The built command drains so many lessons, with a collection every 100 ms or as V8 sees fit. */
async function commandMemory(input: {
  readonly lessons: number
  readonly api: string
  readonly collect?: true
  readonly flags?: readonly string[]
  /** The courses of a platform of its own, in two languages; left out, the default platform's one. */
  readonly courses?: number
}): Promise<Memory> {
  const { lessons, api, collect, flags = [], courses } = input
  return inFolder(async (folder) => {
    const file = await subscriptionsFile({
      folder,
      subscriptions: lessons,
      due: lessons,
      ...(courses && { courses }),
    })
    const written = path.join(folder, 'memory.json')
    const watch = fileURLToPath(new URL('./memory-watch.ts', import.meta.url))
    const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
    const school = courses ? ['--config', (await writeSchool(folder, courses)).file] : []
    if (courses) execFileSync(process.execPath, [bin, 'email', 'build', ...school], { stdio: 'pipe' })
    const drain = ['dispatch', '--local', '--drain', '--limit', '1000', ...school]
    const child = spawn(process.execPath, ['--expose-gc', ...flags, '--import', watch, bin, ...drain], {
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        STORE_URL: `sqlite:${file}`,
        NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
        MAILER_API_KEY: 'provider-key',
        MAILER_FROM: 'Course <course@example.com>',
        MAILER_API_URL: api,
        MEMORY_FILE: written,
        ...(collect && { MEMORY_COLLECT: '1' }),
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`the drain ended with ${code}`)
    return JSON.parse(await readFile(written, 'utf8')) as Memory
  })
}

/** Everybody is in all of them. */
const COURSES = 10

async function drainMemory(): Promise<Measured> {
  const sink = await startSink('./drip-sink.ts')
  const api = `http://127.0.0.1:${sink.port}/emails`
  const [heap, courses, resident, bounded]: [Point[], Point[], Point[], Point[]] = [[], [], [], []]
  for (const lessons of decades(3, 5)) {
    const { heapMb } = await commandMemory({ lessons, api, collect: true })
    heap.push({ size: lessons, value: heapMb })
    const many = await commandMemory({ lessons, api, collect: true, courses: COURSES })
    courses.push({ size: lessons, value: many.heapMb })
    resident.push({ size: lessons, value: (await commandMemory({ lessons, api })).peakMb })
    const { peakMb } = await commandMemory({ lessons, api, flags: [YOUNG] })
    bounded.push({ size: lessons, value: peakMb })
  }
  sink.close()
  return {
    name: 'drain-memory',
    title: 'Memory of a drain',
    size: 'lessons due',
    unit: 'MB',
    lines: [
      { label: 'largest heap after a collection', points: heap },
      { label: `the same with ${COURSES} courses in two languages`, points: courses },
      { label: 'most that was resident', points: resident },
      { label: `the same with ${YOUNG}`, points: bounded },
    ],
    notes:
      'Of `dispatch --local --drain --limit 1000`, sampled every 100 ms. Resident memory includes garbage and V8’s room for young objects, which `NODE_OPTIONS=--max-semi-space-size=16` bounds.',
  }
}

export const GROWTHS: Readonly<Record<string, () => Promise<Measured>>> = {
  ingest,
  claim,
  health,
  drain,
  'drain-memory': drainMemory,
}
