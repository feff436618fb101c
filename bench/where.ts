import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { VARIABLES } from '../test/support/learning.ts'
import { inFolder } from './folder.ts'
import { writePages, writeWhere } from './pages.ts'
import { profiled, type Sample } from './profile.ts'
import { bars, figure } from './report.ts'
import { startSink } from './sink.ts'
import { subscriptionsFile } from './subscriptions.ts'
import { lessonPart, preflightPart, type Share, shares } from './where-parts.ts'
import type { Where } from './where-report.ts'

/**
 * `npm run bench:where`: profiles a cold preflight and a drain with the built command, and writes each part's share of
 * the time to docs/performance.md.
 */
const LESSONS = 5000
const PREFLIGHTS = 20
const DRAINS = 3
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
    // Both exclusive pairs cannot be set at once.
    const set = VARIABLES.filter(({ name }) => name !== 'MAILER_API_URL' && name !== 'DATASTORE_JWKS_URL')
    const lines = set.map(
      ({ name, example, prefixes }) =>
        `${name}=${example || `${prefixes?.test[0] ?? ''}a-value-that-is-long-enough-0123456789`}`,
    )
    await writeFile(env, lines.join('\n'))
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

const machine = `Node ${process.version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(2)}, ${new Date().toISOString().slice(0, 10)}`
const where: Where = {
  cold: await preflight(),
  drain: await drain(),
  lessons: LESSONS,
  preflights: PREFLIGHTS,
  drains: DRAINS,
  machine,
}
await mkdir(`${docs}images/performance`, { recursive: true })
for (const [name, title, parts] of [
  ['where-preflight', 'Where a cold preflight spends its time', where.cold.ours],
  ['where-drain', 'Where a drain spends its time', where.drain],
] as const)
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
await writeWhere(where)
await writePages()
for (const { part, ms } of [...where.cold.ours, ...where.drain])
  console.log(`${ms.toFixed(1)} ms  ${part.name}`)
