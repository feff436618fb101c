import { globSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { type Benchmark, runBenchmark } from './harness.ts'
import { writePages } from './pages.ts'

/**
 * `npm run bench` measures every benchmark, `npm run bench -- NAME …` those named, and makes
 * docs/performance.md from the results of all that were ever measured on this checkout.
 */
const here = fileURLToPath(new URL('.', import.meta.url))
const names = process.argv.slice(2)
const files = globSync('*.bench.ts', { cwd: here }).sort()
const known = files.map((file) => file.replace(/\.bench\.ts$/, ''))
const unknown = names.filter((name) => !known.includes(name))
if (unknown.length > 0) {
  console.error(`no benchmark ${unknown.join(', ')}; there are: ${known.join(', ')}`)
  process.exit(2)
}

await mkdir(`${here}results`, { recursive: true })
for (const name of names.length > 0 ? names : known) {
  const { benchmark } = (await import(`./${name}.bench.ts`)) as { benchmark: Benchmark }
  const machine = {
    node: process.version,
    cores: availableParallelism(),
    load: Number(loadavg()[0]?.toFixed(2)),
  }
  const result = await runBenchmark(benchmark, { date: new Date().toISOString(), machine }, (round, rounds) =>
    process.stderr.write(`\r${benchmark.name}: round ${round} of ${rounds} `),
  )
  process.stderr.write('\n')
  for (const { name: contender, median } of result.series)
    console.log(`  ${contender}: ${median.toPrecision(4)} ${result.unit}`)
  if (result.bound)
    console.log(
      `  promised ${benchmark.better === 'lower' ? '≤' : '≥'} ${result.bound.promised} ${result.unit}: ${result.bound.kept ? 'kept' : 'NOT KEPT'}`,
    )
  for (const ratio of result.ratios) {
    const verdict = ratio.tooWide
      ? 'too wide to quote'
      : ratio.kept === undefined
        ? ''
        : ratio.kept
          ? 'kept'
          : 'NOT KEPT'
    console.log(
      `  ${result.ratiosOf === 'the others' ? `${ratio.against} / ours` : `ours / ${ratio.against}`}: ${ratio.median.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})${ratio.promised === undefined ? '' : `, promised ${benchmark.better === 'lower' ? '≤' : '≥'} ${ratio.promised}`} ${verdict}`,
    )
  }
  await writeFile(`${here}results/${name}.json`, `${JSON.stringify(result, null, 1)}\n`)
}

await writePages()
