import { existsSync, globSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Growth, growthChart, growthSection } from './growth-report.ts'
import type { Result } from './harness.ts'
import { chart, page } from './report.ts'

export const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
/** Not of the harness: growth is measured by a script of its own. */
const GROWTH = 'growth.json'
const docs = fileURLToPath(new URL('../docs/', import.meta.url))

/** Makes docs/performance.md and its charts of all that was ever measured on this checkout; the page links to the newest proof. */
export async function writePages(): Promise<void> {
  const measured: Result[] = []
  for (const file of (await readdir(RESULTS)).filter((name) => name.endsWith('.json')).sort())
    if (file !== GROWTH) measured.push(JSON.parse(await readFile(`${RESULTS}${file}`, 'utf8')) as Result)
  await mkdir(`${docs}images/performance`, { recursive: true })
  for (const result of measured)
    await writeFile(`${docs}images/performance/${result.name}.svg`, chart(result))
  const growths = await readGrowths()
  for (const growth of growths)
    await writeFile(`${docs}images/performance/growth-${growth.name}.svg`, growthChart(growth))
  await writeFile(
    `${docs}performance.md`,
    page(measured, {
      proof: globSync('proof-*.md', { cwd: docs }).sort().at(-1),
      whereTimeGoes: globSync('where-time-goes.md', { cwd: docs })[0],
    }) + growthSection(growths),
  )
}

export async function readGrowths(): Promise<readonly Growth[]> {
  if (!existsSync(`${RESULTS}${GROWTH}`)) return []
  return JSON.parse(await readFile(`${RESULTS}${GROWTH}`, 'utf8')) as Growth[]
}

export async function writeGrowths(growths: readonly Growth[]): Promise<void> {
  await mkdir(RESULTS, { recursive: true })
  await writeFile(`${RESULTS}${GROWTH}`, `${JSON.stringify(growths, null, 1)}\n`)
}
