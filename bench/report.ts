import { type Ratio, type Result, type Series, spread } from './harness.ts'

/** Other results that the page names, where they exist. */
interface Links {
  /** The newest report of `npm run proof`: a file of the repository, not of the package. */
  readonly proof?: string | undefined
}

/** docs/reference/performance.md: a table of every promise. Made from the results alone. */
export function page(results: readonly Result[], { proof }: Links = {}): string {
  const rows = results.flatMap(promises)
  const kept = rows.filter(({ kept }) => kept).length
  const lowered = results
    .flatMap(({ ratios }) => ratios)
    .filter(({ kept, first }) => kept && first !== undefined)
  const versions = new Set(results.map(({ machine }) => `Node ${machine.node} on ${machine.cores} cores`))
  const days = results.map(({ date }) => date.slice(0, 10)).sort()
  return `# Performance

Made by \`npm run bench\`; do not edit. ${kept} of ${rows.length} promises are kept, ${lowered.length} since they were lowered. Medians of ${[...versions].join(', ')}, ${[...new Set([days[0], days.at(-1)])].join(' to ')}, with the rounds' middle half, or their range if that spans over 40 % of it. Ratios are ours by the other. Beside broken or lowered promises: their floor, the least work. Methods: \`bench/README.md\`${proof === undefined ? '' : `; newest proof: \`${proof}\``}. [Scaling](../guides/scaling.md) says what machines need.

| | ours | compared with | ratio | promised | kept |
|---|---|---|---|---|---|
${rows.map(({ cells }) => `| ${cells.join(' | ')} |`).join('\n')}
`
}

/** The first part of bench/README.md: what each benchmark measures, with the ratios that nothing is promised about. */
export function measurements(results: readonly Result[]): string {
  return `# How performance is measured

Made by \`npm run bench\`; do not edit. The promises and their figures are in [docs/reference/performance.md](../docs/reference/performance.md).

On a quiet machine with Redis and Chromium, \`npm run bench:peers\` and then \`npm run bench\` repeats all, \`npm run bench -- NAME\` one. Each name links to a chart of all medians. \`bench/peers/package-lock.json\` pins what we compare with.

${results.map(measurement).join('\n')}
`
}

/** A row for each promise: about the figure itself, or about its ratio to another. */
function promises(result: Result): readonly { readonly cells: readonly string[]; readonly kept: boolean }[] {
  const { better, bound, ratios, title } = result
  const sign = better === 'lower' ? '≤' : '≥'
  const verdict = (kept: boolean | undefined) => (kept === undefined ? 'unclear' : kept ? '✓' : '**no**')
  const rows = [
    ...(bound
      ? [
          {
            cells: ['', '', `${sign} ${figure(bound.promised)}`, verdict(bound.kept)],
            kept: bound.kept === true,
          },
        ]
      : []),
    ...ratios.flatMap((ratio) =>
      ratio.promised === undefined
        ? []
        : [
            {
              cells: [
                comparedWith(ratio, result),
                ratioText(ratio),
                `${sign} ${ratio.promised}${ratio.first === undefined ? '' : `, first ${sign} ${ratio.first}`}`,
                verdict(ratio.tooWide ? undefined : ratio.kept) +
                  (ratio.kept && ratio.first === undefined ? '' : floorText(ratio, result)),
              ],
              kept: !ratio.tooWide && ratio.kept === true,
            },
          ],
    ),
  ]
  return rows.map(({ cells, kept }, index) => ({
    cells: [...(index === 0 ? [title, oursText(result)] : ['', '']), ...cells],
    kept,
  }))
}

/** What the floor nearest to ours reaches against the same contender, in the same run. */
function floorText({ against }: Ratio, { better, series }: Result): string {
  const other = series.find(({ name }) => name === against)
  const [nearest] = series
    .filter(({ name, role }) => role === 'floor' && name !== against)
    .sort((a, b) => (better === 'lower' ? b.median - a.median : a.median - b.median))
  return nearest && other ? `; ${nearest.name} ${(nearest.median / other.median).toFixed(2)}` : ''
}

/** How one figure was measured, and the ratios about which nothing is promised. */
function measurement(result: Result): string {
  const { bound, name, notes, ratios, title } = result
  const others = ratios.filter(({ promised }) => promised === undefined)
  const known = bound !== undefined || others.length < ratios.length
  const figures = others.map((ratio) => `${comparedWith(ratio, result)} ${ratioText(ratio)}`).join('; ')
  return [
    `- **[${name}](../docs/images/performance/${name}.svg)**:`,
    ...(known ? [] : [`${title}: ${oursText(result)}.`]),
    ...(notes ? [notes] : []),
    ...(figures === '' ? [] : [`${known ? 'Other ratios' : 'Ratios'}: ${figures}.`]),
    ...(notes || figures ? [] : [`${result.rounds} rounds.`]),
  ].join(' ')
}

function comparedWith({ against }: Ratio, { ratiosOf }: Result): string {
  return ratiosOf === 'the others' ? `${against}, divided by ours` : against
}

function oursText({ series, unit }: Result): string {
  const ours = series.find(({ role }) => role === 'ours')
  return ours === undefined ? '' : medianText(ours, unit)
}

/** The lines that `npm run bench` prints for a result. */
export function told(result: Result): string[] {
  return [
    ...result.series.map((series) => `${series.name}: ${medianText(series, result.unit)}`),
    ...(result.bound ? [boundText(result)] : []),
    ...result.ratios.map(
      (ratio) =>
        `${result.ratiosOf === 'the others' ? `${ratio.against} / ours` : `ours / ${ratio.against}`}: ${ratioWithVerdict(ratio, result.better)}`,
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

function ratioText({ median, low, high, tooWide }: Ratio): string {
  return tooWide ? 'spread too wide to quote' : `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
}

function ratioWithVerdict(ratio: Ratio, better: Result['better']): string {
  if (ratio.promised === undefined) return ratioText(ratio)
  const promised = `${ratioText(ratio)} · promised ${better === 'lower' ? '≤' : '≥'} ${ratio.promised}`
  return ratio.tooWide ? promised : `${promised}: ${ratio.kept ? 'kept' : 'not kept'}`
}

/** The style of every chart: colors that are readable in light and dark. */
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
