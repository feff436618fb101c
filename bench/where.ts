import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { stopped } from './child.ts'
import { SOUND_LINES } from './filled-env.ts'
import { inFolder } from './folder.ts'
import { daemonServer } from './http-load.ts'
import { openIngest } from './ingest.ts'
import { writePages, writeWhere } from './pages.ts'
import { profileClock, profiled, profileIn, profiling, type Sample } from './profile.ts'
import { bars, figure } from './report.ts'
import { startSink } from './sink.ts'
import { subscriptionsFile } from './subscriptions.ts'
import { ingestPart, lessonPart, preflightPart, type Share, shares, startPart } from './where-parts.ts'
import type { Where } from './where-report.ts'

/**
 * `npm run bench:where`: profiles a cold preflight, a drain and a start of the daemon with the built command, and ingest,
 * and writes each part's share of the time to bench/README.md.
 */
const LESSONS = 5000
const PREFLIGHTS = 20
const DRAINS = 3
const STARTS = 20
const BATCHES = 1500
const bin = fileURLToPath(new URL('../bin/platformctl.js', import.meta.url))
const docs = fileURLToPath(new URL('../docs/', import.meta.url))

/** Each part's mean time over `times` profiled processes, after one warm-up. */
async function average(
  times: number,
  one: () => Promise<readonly Sample[]>,
  partOf: Parameters<typeof shares>[1],
): Promise<readonly Share[]> {
  await one()
  const all: Sample[] = []
  for (let n = 0; n < times; n += 1) all.push(...(await one()))
  return shares(all, partOf).map(({ part, ms }) => ({ part, ms: ms / times }))
}

async function preflight(): Promise<{ readonly ours: readonly Share[]; readonly bare: readonly Share[] }> {
  return inFolder(async (folder) => {
    const env = path.join(folder, 'sound.env')
    await writeFile(env, SOUND_LINES.join('\n'))
    const run = (args: readonly string[]) =>
      average(
        PREFLIGHTS,
        () => inFolder((into) => profiled({ args, everyMicroseconds: 100, folder: into })),
        preflightPart,
      )
    return { ours: await run([bin, 'preflight', '--env-file', env]), bare: await run(['-e', '0']) }
  })
}

async function drain(): Promise<readonly Share[]> {
  const sink = await startSink('./drip-sink.ts')
  const one = () =>
    inFolder(async (folder) => {
      const file = await subscriptionsFile({ folder, subscriptions: LESSONS, due: LESSONS })
      return profiled({
        args: [bin, 'dispatch', '--local', '--drain', '--limit', '1000'],
        env: {
          STORE_URL: `sqlite:${file}`,
          NEXT_PUBLIC_SITE_URL: 'https://www.example.com',
          MAILER_API_KEY: 'provider-key',
          MAILER_FROM: 'Course <course@example.com>',
          MAILER_API_URL: `http://127.0.0.1:${sink.port}/emails`,
        },
        everyMicroseconds: 200,
        folder,
      })
    })
  try {
    return await average(DRAINS, one, lessonPart)
  } finally {
    sink.close()
  }
}

/** From the start of the process to its first 200. */
async function start(): Promise<readonly Share[]> {
  const definition = fileURLToPath(new URL('../examples/ceramics/platform.config.ts', import.meta.url))
  const one = () =>
    inFolder(async (folder) => {
      const server = await daemonServer(
        { NODE_OPTIONS: profiling(folder, 100).join(' ') },
        '--config',
        definition,
      )
      const answer = await fetch(`http://127.0.0.1:${server.port}/api/health`)
      const until = profileClock()
      await answer.text()
      // Cleanly, so that the profile is written, and Node’s compile cache.
      await stopped(server.child)
      await server.stop()
      return profileIn(folder, { until })
    })
  return average(STARTS, one, startPart)
}

/** A batch, once the code is warm. */
async function ingest(): Promise<readonly Share[]> {
  return inFolder(async (folder) => {
    // The server is a process that inherits this.
    process.env.NODE_OPTIONS = profiling(folder, 200).join(' ')
    const server = await openIngest('ours')
    delete process.env.NODE_OPTIONS
    await server.load(BATCHES / 5)
    const from = profileClock()
    await server.load(BATCHES)
    const until = profileClock()
    await server.close()
    return shares(await profileIn(folder, { from, until }), ingestPart).map(({ part, ms }) => ({
      part,
      ms: ms / BATCHES,
    }))
  })
}

const machine = `Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(2)}, ${new Date().toISOString().slice(0, 10)}`
const where: Where = {
  cold: await preflight(),
  drain: await drain(),
  start: await start(),
  ingest: await ingest(),
  variables: SOUND_LINES.length,
  lessons: LESSONS,
  preflights: PREFLIGHTS,
  drains: DRAINS,
  starts: STARTS,
  batches: BATCHES,
  machine,
}
await mkdir(`${docs}images/performance`, { recursive: true })
for (const [name, title, parts] of [
  ['where-preflight', 'Where a cold preflight spends its time', where.cold.ours],
  ['where-drain', 'Where a drain spends its time', where.drain],
  ['where-start', 'Where a start of the daemon spends its time', where.start],
  ['where-ingest', 'Where a batch of 500 events spends its time', where.ingest],
] as const) {
  console.log(`${title}: ${parts.map(({ part, ms }) => `${part.name} ${figure(ms)} ms`).join(', ')}`)
  await writeFile(
    `${docs}images/performance/${name}.svg`,
    bars({
      title,
      rows: parts.map(({ part, ms }) => ({
        name: part.name,
        shade: part.ours ? 'ours' : 'floor',
        value: ms,
        text: `${figure(ms)} ms`,
      })),
      left: 330,
    }),
  )
}
await writeWhere(where)
await writePages()
