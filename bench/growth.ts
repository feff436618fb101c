import { availableParallelism, loadavg } from 'node:os'
import { GROWTHS } from './growth-measures.ts'
import { floorOf, growthOf } from './growth-report.ts'
import { readGrowths, writeGrowths, writePages } from './pages.ts'

/**
 * `npm run bench:growth` measures how ingest, claims, health and drains grow with what they work on,
 * `npm run bench:growth -- NAME …` those named; both write their part of docs/reference/performance.md.
 */
const names = process.argv.slice(2)
const unknown = names.filter((name) => !Object.hasOwn(GROWTHS, name))
if (unknown.length > 0) {
  console.error(`no growth ${unknown.join(', ')}; there are: ${Object.keys(GROWTHS).join(', ')}`)
  process.exit(2)
}

const measured = new Map((await readGrowths()).map((growth) => [growth.name, growth]))
for (const [name, measure] of Object.entries(GROWTHS)) {
  if (names.length > 0 && !names.includes(name)) continue
  const machine = {
    node: process.version,
    cores: availableParallelism(),
    load: Number(loadavg()[0]?.toFixed(2)),
  }
  const growth = { ...(await measure()), date: new Date().toISOString(), machine }
  measured.set(name, growth)
  for (const line of growth.lines) {
    const { label, points, floor } = line
    const { exponent, lastDecade, verdict } = growthOf(line, floor ? undefined : floorOf(growth))
    console.log(
      `${name}, ${label}: ${points.map(({ size, value }) => `${size}: ${value.toPrecision(3)} ${growth.unit}`).join(', ')}; exponent ${exponent.toFixed(2)}, in the last decade ${lastDecade.toFixed(2)}: ${verdict}`,
    )
    if (verdict === 'worse than linear' && !floor) process.exitCode = 1
  }
}
await writeGrowths(Object.keys(GROWTHS).flatMap((name) => measured.get(name) ?? []))
await writePages()
