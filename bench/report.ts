import { anchorsOf } from '../scripts/markdown.ts'
import { type Ratio, type Result, type Series, spread } from './harness.ts'

/** Pages beside it that are named where they are there: the newest proof, and where time goes. */
interface Beside {
  readonly proof?: string | undefined
  readonly whereTimeGoes?: string | undefined
}

/** docs/performance.md: what is promised in one table, then a table for each benchmark, made from the results and nothing else. */
export function page(results: readonly Result[], { proof, whereTimeGoes }: Beside = {}): string {
  const parts = results.map((result) => {
    const rows = result.series.map((series) => {
      const ratio = result.ratios.find((one) => one.against === series.name)
      return `| ${series.role === 'ours' ? `**${series.name}**` : series.name} | ${series.role} | ${medianText(series, result.unit)} | ${ratio ? ratioText(ratio, result.better) : series.role === 'ours' ? boundText(result) : ''} |`
    })
    return `## ${result.title}

![${result.title}: medians as bars](images/performance/${result.name}.svg)

| | | median | ${result.ratiosOf === 'the others' ? 'divided by ours' : 'ours divided by it'} |
|---|---|---|---|
${rows.join('\n')}

${result.notes ? `${result.notes}\n\n` : ''}\`npm run bench -- ${result.name}\`: ${result.rounds === 1 ? 'one round' : `${result.rounds} rounds in turn`} after a warm-up, Node ${result.machine.node}, ${result.machine.cores} cores, load ${result.machine.load}, ${result.date.slice(0, 10)}.
`
  })
  return `# Performance

Made by \`npm run bench\`; not edited by hand. Each row was measured in turn with the others of its table in one run, so the ratios hold where single figures drift with the machine. In brackets: the middle half of the rounds. Where that half lies further than a fifth around its median there is no figure to quote, and none is.

To measure all of it yourself, on a quiet machine with Redis and Chromium installed:

\`\`\`sh
npm ci
npm run bench:peers
npm run bench
\`\`\`

\`npm run proof\` does that and all that runs for long: simulation, kills, fuzz, restarts, soak, backups under load. It goes on where it was stopped, and writes a dated report${proof === undefined ? '' : `: [${proof.replace('.md', '')}](${proof}) is the newest`}.${whereTimeGoes === undefined ? '' : ` [Where time goes](${whereTimeGoes}) takes a cold preflight and a drain apart.`}

## What is promised

${promises(results)}

${parts.join('\n')}${peersText(results)}`
}

/** A row for each promise: about the figure itself, or about what it stands beside. */
function promises(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const { bound, ratios, ratiosOf, series, title, unit } = result
    const sign = result.better === 'lower' ? '≤' : '≥'
    const ours = series.find(({ role }) => role === 'ours')
    const median = ours === undefined ? '' : medianText(ours, unit)
    const verdict = (kept: boolean | undefined) =>
      kept === undefined ? 'spread too wide to say' : kept ? 'kept' : '**not kept**'
    const figures = [
      ...(bound ? [['', median, `${sign} ${figure(bound.promised)} ${unit}`, verdict(bound.kept)]] : []),
      ...ratios.flatMap(({ against, kept, median, promised, tooWide }) =>
        promised === undefined
          ? []
          : [
              [
                ratiosOf === 'the others' ? `${against}, divided by ours` : against,
                tooWide ? 'too wide to quote' : median.toFixed(2),
                `${sign} ${promised}`,
                verdict(tooWide ? undefined : kept),
              ],
            ],
      ),
    ]
    return figures.map((row, index) =>
      [index === 0 ? `[${title}](#${[...anchorsOf(`## ${title}`)][0]})` : '', ...row].join(' | '),
    )
  })
  return `| | beside | measured | promised | |\n|---|---|---|---|---|\n${rows.map((row) => `| ${row} |`).join('\n')}`
}

/** What `npm run bench` prints of a result, a line each. */
export function told(result: Result): string[] {
  return [
    ...result.series.map((series) => `${series.name}: ${medianText(series, result.unit)}`),
    ...(result.bound ? [boundText(result)] : []),
    ...result.ratios.map(
      (ratio) =>
        `${result.ratiosOf === 'the others' ? `${ratio.against} / ours` : `ours / ${ratio.against}`}: ${ratioText(ratio, result.better)}`,
    ),
  ]
}

/** The median, or the middle half of the rounds where that is too wide to be quoted as one figure. */
export function medianText({ values, median }: Pick<Series, 'values' | 'median'>, unit: string): string {
  const { low, high, tooWide } = spread(values)
  return tooWide ? `${figure(low)} to ${figure(high)} ${unit}` : `${figure(median)} ${unit}`
}

function boundText({ bound, better, unit }: Result): string {
  if (bound === undefined) return ''
  return `promised ${better === 'lower' ? '≤' : '≥'} ${figure(bound.promised)} ${unit}: ${bound.kept === undefined ? 'spread too wide to say' : bound.kept ? 'kept' : 'not kept'}`
}

function ratioText(ratio: Ratio, better: Result['better']): string {
  const promised =
    ratio.promised === undefined ? '' : ` · promised ${better === 'lower' ? '≤' : '≥'} ${ratio.promised}`
  if (ratio.tooWide) return `spread too wide to quote${promised}`
  const verdict = promised === '' ? '' : `: ${ratio.kept ? 'kept' : 'not kept'}`
  return `${ratio.median.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})${promised}${verdict}`
}

/** All benchmarks of one run stand beside the same packages; results of several runs may not. */
function peersText(results: readonly Result[]): string {
  const versions = new Map<string, Set<string>>()
  for (const { peers = {} } of results)
    for (const [name, version] of Object.entries(peers))
      versions.set(name, (versions.get(name) ?? new Set()).add(version))
  if (versions.size === 0) return ''
  const list = [...versions].map(([name, all]) => `${name} ${[...all].join(' and ')}`)
  return `\n## Peers\n\n\`npm run bench:peers\` installs them, as bench/peers/package-lock.json pins them: ${list.join(', ')}.\n`
}

/** Of every chart: colours that read in light and dark. */
export const STYLE =
  '<style>text{font:13px system-ui,sans-serif;fill:#333}.ours{fill:#3451b2}.floor{fill:#8a8f98}.peer{fill:#c4c8cf}.drawn,.step,.grid{fill:none;stroke:#8a8f98}.drawn{stroke:#3451b2;stroke-width:2}.grid{stroke-opacity:.3}@media(prefers-color-scheme:dark){text{fill:#ddd}.ours{fill:#9db2ff}.peer{fill:#555b66}.drawn{stroke:#9db2ff}}</style>'

/** Medians as horizontal bars. */
export function chart(result: Result): string {
  return bars({
    title: result.title,
    rows: result.series.map((series) => ({
      name: series.name,
      shade: series.role,
      value: series.median,
      text: medianText(series, result.unit),
    })),
  })
}

/** Horizontal bars that read in light and dark; `left` is the room for their names. */
export function bars({
  title,
  rows,
  left = 200,
}: {
  readonly title: string
  readonly rows: readonly {
    readonly name: string
    readonly shade: 'ours' | 'floor' | 'peer'
    readonly value: number
    readonly text: string
  }[]
  readonly left?: number
}): string {
  const widest = Math.max(...rows.map(({ value }) => value))
  const drawn = rows.map(({ name, shade, value, text }, row) => {
    const y = 8 + row * 28
    const width = Math.max(1, (value / widest) * (580 - left))
    return `<text x="${left - 10}" y="${y + 14}" text-anchor="end">${escapeXml(name)}</text><rect class="${shade}" x="${left}" y="${y}" width="${width.toFixed(1)}" height="20" rx="2"/><text x="${(left + 6 + width).toFixed(1)}" y="${y + 14}">${escapeXml(text)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 ${rows.length * 28 + 12}" role="img" aria-label="${escapeXml(title)}">
${STYLE}
${drawn.join('\n')}
</svg>
`
}

export function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
