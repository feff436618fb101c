import { globSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { optionsOf, refuse } from '../scripts/options.ts'
import { progressOn } from '../scripts/progress.ts'
import { type Benchmark, runBenchmark } from './harness.ts'
import { missing, peerVersions, usesPeers } from './needs.ts'
import { RESULTS, writePages } from './pages.ts'
import { told } from './report.ts'

const USAGE = `npm run bench [-- OPTIONS] [NAME …]
  Measures every benchmark, or those named, and makes docs/reference/performance.md from the results of all that were ever
  measured on this checkout.
  --check          only says whether what they need is there
  --trial FOLDER   one round without a warm-up; leaves the result in that folder, and the page as it is`
const { values, positionals: names } = optionsOf(USAGE, {
  options: { check: { type: 'boolean', default: false }, trial: { type: 'string' } },
  allowPositionals: true,
})
const known = globSync('*.bench.ts', { cwd: fileURLToPath(new URL('.', import.meta.url)) })
  .map((file) => file.replace(/\.bench\.ts$/, ''))
  .sort()
const unknown = names.filter((name) => !known.includes(name))
const chosen = names.length > 0 ? names : known
if (unknown.length > 0) refuse(USAGE, `no benchmark ${unknown.join(', ')}; there are: ${known.join(', ')}`)
const refusal = missing(chosen)
if (refusal !== undefined) {
  console.error(refusal)
  process.exit(2)
}
if (values.check) process.exit(0)

const folder = values.trial ?? RESULTS
await mkdir(folder, { recursive: true })
const peers = peerVersions()
let failed = false
for (const name of chosen) {
  const progress = progressOn()
  try {
    const { benchmark } = (await import(`./${name}.bench.ts`)) as { benchmark: Benchmark }
    const machine = {
      node: process.version,
      cores: availableParallelism(),
      load: Number(loadavg()[0]?.toFixed(2)),
    }
    const result = await runBenchmark(
      benchmark,
      {
        date: new Date().toISOString(),
        machine,
        ...(peers && usesPeers(new URL(`./${name}.bench.ts`, import.meta.url)) && { peers }),
      },
      (round, rounds) => progress.tell(`${name}: round ${round} of ${rounds}`),
      values.trial !== undefined,
    )
    progress.end()
    console.log(`${name}: ${benchmark.title}`)
    for (const line of told(result)) console.log(`  ${line}`)
    await writeFile(`${folder}/${name}.json`, `${JSON.stringify(result, null, 1)}\n`)
  } catch (fault) {
    progress.end()
    console.error(
      `${name} failed: ${fault instanceof Error ? (fault.stack ?? fault.message) : String(fault)}`,
    )
    failed = true
    break
  }
}
if (values.trial === undefined) await writePages()
// Exit explicitly: resources that a failed benchmark could not close would keep this process and its servers running.
if (failed) process.exit(1)
