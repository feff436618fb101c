import { medianText } from '../../bench/report.ts'
import { durationText } from '../../src/core/durations.ts'
import { typed } from './parts.ts'
import type { Known } from './prove.ts'
import type { Measured, PartResult } from './results.ts'

export interface Surroundings {
  /** `2026-11-21` */
  readonly date: string
  readonly commit: string
  /** Processor, cores, memory, kernel. */
  readonly machine: string
  readonly node: string
  readonly scale: number
}

interface Promised {
  readonly against: string
  readonly figure: string
  readonly promised: string
  readonly verdict: 'kept' | 'NOT KEPT' | 'too wide to say' | ''
}

/** True when every part has passed with this code and every promise of a benchmark is kept. */
export function proven(known: readonly Known[]): boolean {
  return faults(known).length === 0
}

/** The report of a proof: what ran on what, a sentence for each unkept promise, and each part's own figures. */
export function report(
  known: readonly Known[],
  { date, commit, machine, node, scale }: Surroundings,
): string {
  const results = known.flatMap(({ result }) => result ?? [])
  const passed = results.filter(({ verdict }) => verdict === 'passed').length
  const promises = known
    .flatMap(({ result }) => promisesOf(result?.measured))
    .filter(({ verdict }) => verdict !== '')
  const kept = promises.filter(({ verdict }) => verdict === 'kept').length
  const wrong = faults(known)
  const tests = known.filter(({ part }) => part.result === undefined)
  const benches = known.filter(({ part }) => part.result !== undefined)
  return `# Proof of ${date}

Made by \`npm run proof\`; do not edit. [CONTRIBUTING](../../CONTRIBUTING.md#the-whole-proof) says how to repeat it.${scale === 1 ? '' : `\n\n**A trial at scale ${scale}: it shows that the commands work, and nothing else.**`}

| | |
|---|---|
| Commit | ${commit} |
| Machine | ${machine} |
| Node | ${node} |
| Parts | ${passed} of ${known.length} passed, in ${durationText(1000 * Math.round(results.reduce((sum, one) => sum + one.seconds, 0)))} |
| Promised figures | ${kept} of ${promises.length} kept |

## What is not as promised

${wrong.length === 0 ? 'Nothing: every part passed, and every promised figure was kept.' : wrong.map((fault) => `- ${fault}`).join('\n')}

## Parts

${tests.map((one) => section(one, commit)).join('\n')}
## Benchmarks

${benches.length} with \`BENCH_LARGE=1 npm run bench -- NAME\`; [performance](../../docs/reference/performance.md) has their figures. ${unfinished(benches)}
`
}

/** Benchmarks that have no figures, by name. */
function unfinished(benches: readonly Known[]): string {
  const names = benches.flatMap(({ part, result, stale }) =>
    result?.measured === undefined
      ? [
          `${part.name.replace('bench/', '')} (${result?.verdict ?? (stale ? 'not run since the code changed' : 'not run')})`,
        ]
      : [],
  )
  return names.length === 0 ? 'All ran.' : `Without a figure: ${names.join(', ')}.`
}

/** A sentence each. */
function faults(known: readonly Known[]): string[] {
  return known.flatMap(({ part, result, stale }) => {
    if (result === undefined)
      return [
        `${part.name} has not been run${stale ? ' since the code changed' : ''}: \`npm run proof -- --part ${part.name}\`.`,
      ]
    if (result.verdict === 'failed')
      return [
        `${part.name} failed: ${result.reason ?? 'it did not say why'}${result.lines.length > 0 ? '; what it said last stands below' : ''}.`,
      ]
    return promisesOf(result.measured)
      .filter(({ verdict }) => verdict === 'NOT KEPT' || verdict === 'too wide to say')
      .map(({ against, figure, promised, verdict }) =>
        verdict === 'NOT KEPT'
          ? `${part.name}: ${figure}${against === '' ? '' : ` against ${against}`}, where ${promised} was promised.`
          : `${part.name}: the spread is too wide to say whether ${promised} was kept.`,
      )
  })
}

function section({ part, result, stale }: Known, commit: string): string {
  const head = `### ${part.name}: ${result?.verdict ?? (stale ? 'not run since the code changed' : 'not run')}\n\n${part.shows}\n\n`
  if (result === undefined) return `${head}\`${typed(part)}\`\n`
  const lines = result.lines.length === 0 ? '' : `\n\`\`\`text\n${result.lines.join('\n')}\n\`\`\`\n`
  return `${head}\`${typed(part)}\`: ${took(result, commit)}.${result.reason === undefined ? '' : ` Failed: ${result.reason}.`}\n${lines}`
}

function took({ seconds: spent, load, began, commit: of }: PartResult, commit: string): string {
  const elsewhere = of === commit ? '' : `, at ${of}, whose code for this part is the same`
  return `${durationText(1000 * Math.round(spent))}, begun ${began.slice(0, 16).replace('T', ' ')} UTC at load ${load.toFixed(2)}${elsewhere}`
}

/** A row for the promise about the figure itself, where there is one, and one for each that it stands beside. */
function promisesOf(measured: Measured | undefined): Promised[] {
  if (measured === undefined) return []
  const { better, bound, ratios, ratiosOf, series, unit } = measured
  const sign = better === 'lower' ? '≤' : '≥'
  const verdict = (kept: boolean | undefined) =>
    kept === undefined ? ('too wide to say' as const) : kept ? ('kept' as const) : ('NOT KEPT' as const)
  const ours = series.find(({ role }) => role === 'ours')
  const own: Promised[] =
    bound === undefined
      ? []
      : [
          {
            against: '',
            figure: medianText({ values: ours?.values ?? [], median: ours?.median ?? Number.NaN }, unit),
            promised: `${sign} ${bound.promised} ${unit}`,
            verdict: verdict(bound.kept),
          },
        ]
  const rows = ratios.map(({ against, median, low, high, tooWide, promised, kept }): Promised => {
    const text = (value: number | null) => (value === null ? '?' : value.toFixed(2))
    return {
      against: ratiosOf === 'the others' ? `${against}, divided by ours` : against,
      figure: tooWide ? 'too wide to quote' : `${text(median)} (${text(low)} to ${text(high)})`,
      promised: promised === undefined ? '' : `${sign} ${promised}`,
      verdict: promised === undefined ? '' : verdict(tooWide ? undefined : kept),
    }
  })
  const all = [...own, ...rows]
  return all.length > 0 ? all : [{ against: '', figure: '', promised: '', verdict: '' }]
}
