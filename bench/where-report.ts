import { figure } from './report.ts'
import type { Share } from './where-parts.ts'

/** The figures of `npm run bench:where`, as bench/results/where.json keeps them. */
export interface Where {
  readonly cold: { readonly ours: readonly Share[]; readonly bare: readonly Share[] }
  readonly drain: readonly Share[]
  readonly start: readonly Share[]
  readonly ingest: readonly Share[]
  readonly variables: number
  readonly lessons: number
  readonly preflights: number
  readonly drains: number
  readonly starts: number
  readonly batches: number
  /** Node, cores, load and date. */
  readonly machine: string
}

/** The section of bench/README.md that shows which part takes how much of the time. */
export function whereSection(where: Where | undefined): string {
  if (where === undefined) return ''
  const { cold, drain, start, ingest, variables, lessons, preflights, drains, starts, batches, machine } =
    where
  const bare = (name: string) => cold.bare.find(({ part }) => part.name === name)?.ms ?? 0
  return `
## Where time goes

From V8’s sampling profiler over the built command (\`npm run bench:where\`, ${machine}). Profiling slows everything: trust the shares, not the times. Parts below 3% are left out.

[A cold \`preflight\`](../docs/images/performance/where-preflight.svg) of ${variables} variables, mean of ${preflights} processes, from the moment V8 can be profiled:

| part | ms | share | ms in \`node -e 0\` |
|---|---|---|---|
${rows(cold.ours, (ms, name) => [figure(ms), bare(name) > 0 ? figure(bare(name)) : ''])}

[\`dispatch --local --drain --limit 1000\`](../docs/images/performance/where-drain.svg) with ${lessons.toLocaleString('en')} lessons due in an SQLite file and a mail API in another process, mean of ${drains} processes, start and end included:

| part | ms | share | µs a lesson |
|---|---|---|---|
${rows(drain, (ms) => [figure(ms), figure((ms / lessons) * 1000)])}

[\`daemon\`](../docs/images/performance/where-start.svg) with the definition of examples/ceramics and a new data folder, mean of ${starts} processes, from the moment V8 can be profiled to the first 200:

| part | ms | share | ms in \`node -e 0\` |
|---|---|---|---|
${rows(start, (ms, name) => [figure(ms), bare(name) > 0 ? figure(bare(name)) : ''])}

[Taking a batch of 500 events](../docs/images/performance/where-ingest.svg) over HTTP, as in the benchmark “ingest”, mean of ${batches.toLocaleString('en')} batches:

| part | ms | share | µs an event |
|---|---|---|---|
${rows(ingest, (ms) => [figure(ms), figure(ms * 2)])}
`
}

/** Parts below this share are left to bench/results/where.json. */
const SMALLEST = 0.03

function rows(
  shares: readonly Share[],
  figures: (ms: number, name: string) => readonly [string, string],
): string {
  const total = shares.reduce((sum, { ms }) => sum + ms, 0)
  return shares
    .filter(({ ms }) => ms / total >= SMALLEST)
    .map(({ part, ms }) => {
      const [first, last] = figures(ms, part.name)
      return `| ${part.name} | ${first} | ${percent(ms / total)} | ${last} |`
    })
    .join('\n')
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}%`
}
