import { figure } from './report.ts'
import type { Share } from './where-parts.ts'

/** docs/where-time-goes.md: shares by part, and what was done about the largest of those that are ours to change. */
export function wherePage(input: {
  readonly cold: { readonly ours: readonly Share[]; readonly bare: readonly Share[] }
  readonly drain: readonly Share[]
  readonly lessons: number
  readonly preflights: number
  readonly drains: number
  readonly machine: string
}): string {
  const { cold, drain, lessons, preflights, drains, machine } = input
  const bare = (name: string) => cold.bare.find(({ part }) => part.name === name)?.ms ?? 0
  const beyond = cold.ours.map(({ part, ms }) => ({ part, ms: ms - bare(part.name) }))
  const [coldSum, bareSum, drainSum] = [sum(cold.ours), sum(cold.bare), sum(drain)]
  return `# Where time goes

Made by \`npm run bench:where\` from V8’s sampling profiler over the built command; not edited by hand. Profiling makes both slower than they are: the shares hold, the times of the whole are in [performance](performance.md).

## One cold preflight

\`platformctl preflight\` on a file of 64 variables, beside \`node -e 0\` under the same profiler: means of ${preflights} processes each, from the moment at which V8 can be profiled.

![Where a cold preflight spends its time: bars by part](images/performance/where-preflight.svg)

| | preflight | share | \`node -e 0\` |
|---|---|---|---|
${cold.ours.map(({ part, ms }) => `| ${part.name} | ${figure(ms)} ms | ${percent(ms / coldSum)} | ${bare(part.name) > 0 ? `${figure(bare(part.name))} ms` : ''} |`).join('\n')}
| together | ${figure(coldSum)} ms | | ${figure(bareSum)} ms |

What was done about the largest parts beyond what a bare Node takes:

${done(beyond)}

## One dispatch

\`platformctl dispatch --local --drain --limit 1000\` with ${lessons.toLocaleString('en')} lessons due in an SQLite file, to a mail API in another process: means of ${drains} processes, start and end of the command included.

![Where a drain spends its time: bars by part](images/performance/where-drain.svg)

| | the drain | a lesson | share |
|---|---|---|---|
${drain.map(({ part, ms }) => `| ${part.name} | ${figure(ms)} ms | ${figure((ms / lessons) * 1000)} µs | ${percent(ms / drainSum)} |`).join('\n')}
| together | ${figure(drainSum)} ms | ${figure((drainSum / lessons) * 1000)} µs | |

What was done about the largest parts:

${done(drain)}

${machine}.
`
}

/** Of the three that take most of those that are ours to change. */
function done(parts: readonly Share[]): string {
  return parts
    .filter(({ part }) => part.done !== undefined)
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, 3)
    .map(({ part }, index) => `${index + 1}. **${part.name}.** ${part.done}`)
    .join('\n')
}

function sum(parts: readonly Share[]): number {
  return parts.reduce((total, { ms }) => total + ms, 0)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`
}
