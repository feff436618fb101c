import type { Ratio, Result } from './harness.ts'

/** docs/performance.md: one table a benchmark, made from the results and nothing else. */
export function page(results: readonly Result[]): string {
  const parts = results.map((result) => {
    const rows = result.series.map((series) => {
      const ratio = result.ratios.find((one) => one.against === series.name)
      return `| ${series.role === 'ours' ? `**${series.name}**` : series.name} | ${series.role} | ${figure(series.median)} ${result.unit} | ${ratio ? ratioText(ratio, result.better) : series.role === 'ours' ? boundText(result) : ''} |`
    })
    return `## ${result.title}

![${result.title}: medians as bars](images/performance/${result.name}.svg)

| | | median | ${result.ratiosOf === 'the others' ? 'divided by ours' : 'ours divided by it'} |
|---|---|---|---|
${rows.join('\n')}

${result.notes ? `${result.notes}\n\n` : ''}\`npm run bench -- ${result.name}\`: ${result.rounds} rounds in turn after a warm-up, Node ${result.machine.node}, ${result.machine.cores} cores, load ${result.machine.load}, ${result.date.slice(0, 10)}.
`
  })
  return `# Performance

Made by \`npm run bench\`; not edited by hand. Each row was measured in turn with the others of its table in one run, so the ratios hold where single figures drift with the machine. In brackets: the middle half of the rounds.

${parts.join('\n')}`
}

function boundText({ bound, better, unit }: Result): string {
  if (bound === undefined) return ''
  return `promised ${better === 'lower' ? '≤' : '≥'} ${figure(bound.promised)} ${unit}: ${bound.kept ? 'kept' : 'not kept'}`
}

function ratioText(ratio: Ratio, better: Result['better']): string {
  if (ratio.tooWide) return 'spread too wide to quote'
  const promise =
    ratio.promised === undefined
      ? ''
      : ` · promised ${better === 'lower' ? '≤' : '≥'} ${ratio.promised}: ${ratio.kept ? 'kept' : 'not kept'}`
  return `${ratio.median.toFixed(2)} (${ratio.low.toFixed(2)} to ${ratio.high.toFixed(2)})${promise}`
}

/** Horizontal bars that read in light and dark. */
export function chart(result: Result): string {
  const widest = Math.max(...result.series.map((series) => series.median))
  const bars = result.series.map((series, row) => {
    const y = 8 + row * 28
    const width = Math.max(1, (series.median / widest) * 380)
    return `<text x="190" y="${y + 14}" text-anchor="end">${escapeXml(series.name)}</text><rect class="${series.role}" x="200" y="${y}" width="${width.toFixed(1)}" height="20" rx="2"/><text x="${(206 + width).toFixed(1)}" y="${y + 14}">${figure(series.median)} ${escapeXml(result.unit)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 ${result.series.length * 28 + 12}" role="img" aria-label="${escapeXml(result.title)}">
<style>text{font:13px system-ui,sans-serif;fill:#333}.ours{fill:#3451b2}.floor{fill:#8a8f98}.peer{fill:#c4c8cf}@media(prefers-color-scheme:dark){text{fill:#ddd}.ours{fill:#9db2ff}.peer{fill:#555b66}}</style>
${bars.join('\n')}
</svg>
`
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
