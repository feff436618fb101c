import { existsSync, globSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Growth, growthChart, growthSection } from './growth-report.ts'
import type { Result } from './harness.ts'
import { chart, measurements, page } from './report.ts'
import { type Where, whereSection } from './where-report.ts'

export const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
/** Written by scripts of their own, not by the harness. */
const [GROWTH, WHERE] = ['growth.json', 'where.json']
const docs = fileURLToPath(new URL('../docs/', import.meta.url))

/** Makes docs/reference/performance.md, its charts and bench/README.md from every result in bench/results, with a link to the newest proof. */
export async function writePages(): Promise<void> {
  const measured: Result[] = []
  for (const file of (await readdir(RESULTS)).filter((name) => name.endsWith('.json')).sort())
    if (file !== GROWTH && file !== WHERE)
      measured.push(JSON.parse(await readFile(`${RESULTS}${file}`, 'utf8')) as Result)
  await mkdir(`${docs}images/performance`, { recursive: true })
  for (const result of measured)
    await writeFile(`${docs}images/performance/${result.name}.svg`, chart(result))
  const growths = await readGrowths()
  for (const growth of growths)
    await writeFile(`${docs}images/performance/growth-${growth.name}.svg`, growthChart(growth))
  const proof = globSync('proof-*.md', { cwd: RESULTS }).sort().at(-1)
  await writeFile(
    `${docs}reference/performance.md`,
    page(measured, { proof: proof && `bench/results/${proof}` }),
  )
  await writeFile(
    fileURLToPath(new URL('README.md', import.meta.url)),
    measurements(measured) + growthSection(growths) + whereSection(await readResult<Where>(WHERE)),
  )
}

export async function readGrowths(): Promise<readonly Growth[]> {
  return (await readResult<readonly Growth[]>(GROWTH)) ?? []
}

export async function writeGrowths(growths: readonly Growth[]): Promise<void> {
  await writeResult(GROWTH, growths)
}

export async function writeWhere(where: Where): Promise<void> {
  await writeResult(WHERE, where)
}

async function readResult<Kind>(file: string): Promise<Kind | undefined> {
  if (!existsSync(`${RESULTS}${file}`)) return undefined
  // Written by `writeResult` and by nothing else.
  return JSON.parse(await readFile(`${RESULTS}${file}`, 'utf8')) as Kind
}

async function writeResult(file: string, result: unknown): Promise<void> {
  await mkdir(RESULTS, { recursive: true })
  await writeFile(`${RESULTS}${file}`, `${JSON.stringify(result, null, 1)}\n`)
}
