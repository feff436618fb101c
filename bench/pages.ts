import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Result } from './harness.ts'
import { chart, page } from './report.ts'

export const RESULTS = fileURLToPath(new URL('results/', import.meta.url))
const docs = fileURLToPath(new URL('../docs/', import.meta.url))

/** Makes docs/performance.md and its charts of all that was ever measured on this checkout. */
export async function writePages(): Promise<void> {
  const measured: Result[] = []
  for (const file of (await readdir(RESULTS)).filter((name) => name.endsWith('.json')).sort())
    measured.push(JSON.parse(await readFile(`${RESULTS}${file}`, 'utf8')) as Result)
  await mkdir(`${docs}images/performance`, { recursive: true })
  for (const result of measured)
    await writeFile(`${docs}images/performance/${result.name}.svg`, chart(result))
  await writeFile(`${docs}performance.md`, page(measured))
}
