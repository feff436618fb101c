import type { Result } from './harness.ts'
import { escapeXml, figure, STYLE } from './report.ts'

/** How the cost of one part grows with the size of what it works on. */
export interface Growth {
  readonly name: string
  readonly title: string
  /** The things that the size counts: `events stored already`. */
  readonly size: string
  readonly unit: string
  readonly lines: readonly Line[]
  readonly notes: string
  readonly date: string
  readonly machine: Result['machine']
}

export interface Line {
  readonly label: string
  /** A baseline that shows how the machine and the runtime themselves scale with the size. */
  readonly floor?: true
  /** By size, smallest first. */
  readonly points: readonly Point[]
}

export interface Point {
  readonly size: number
  readonly value: number
}

export type GrowthVerdict =
  | 'flat'
  | 'better than linear'
  | 'linear'
  | 'linear beside its floor'
  | 'worse than linear'
  | 'worse than linear, as the floor is'

/** Exponents that differ by no more than this count as equal: repeated runs of the same code differ by as much. */
const TOLERANCE = 0.1

/**
 * The exponent e of cost = c × size^e: by least squares over all points, and over the last decade alone, because fixed
 * costs hide growth at small sizes. The verdict uses the larger of the two.
 */
export function growthOf(
  { points }: Pick<Line, 'points'>,
  floor?: Line,
): {
  readonly exponent: number
  readonly lastDecade: number
  readonly verdict: GrowthVerdict
} {
  const at = points.map(({ size, value }) => ({ x: Math.log10(size), y: Math.log10(value) }))
  const mean = (of: (point: { x: number; y: number }) => number) =>
    at.reduce((sum, point) => sum + of(point), 0) / at.length
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)]
  const exponent = mean((point) => (point.x - x) * (point.y - y)) / mean((point) => (point.x - x) ** 2)
  const [before, last] = at.slice(-2)
  const lastDecade = before && last ? (last.y - before.y) / (last.x - before.x) : Number.NaN
  const worst = Math.max(exponent, lastDecade)
  return { exponent, lastDecade, verdict: verdictOf(worst, floor && growthOf(floor)) }
}

function verdictOf(
  worst: number,
  floor: { readonly exponent: number; readonly lastDecade: number } | undefined,
): GrowthVerdict {
  if (worst > 1 + TOLERANCE) {
    const beside = floor ? Math.max(floor.exponent, floor.lastDecade) : 1
    if (worst - beside > TOLERANCE) return 'worse than linear'
    return beside > 1 + TOLERANCE ? 'worse than linear, as the floor is' : 'linear beside its floor'
  }
  if (worst < 1 - TOLERANCE) return worst <= TOLERANCE ? 'flat' : 'better than linear'
  return 'linear'
}

export function floorOf({ lines }: Growth): Line | undefined {
  return lines.find(({ floor }) => floor)
}

/** The section of bench/README.md on how costs grow with size, and how each was measured. */
export function growthSection(growths: readonly Growth[]): string {
  if (growths.length === 0) return ''
  const rows = growths.flatMap((growth) =>
    growth.lines.map((line, index) => {
      const { exponent, lastDecade, verdict } = growthOf(line, line.floor ? undefined : floorOf(growth))
      const sound = verdict === 'worse than linear' && !line.floor ? `**${verdict}**` : verdict
      const [first, last] = [line.points[0], line.points.at(-1)]
      const title =
        index === 0 ? `[${growth.title}](../docs/images/performance/growth-${growth.name}.svg)` : ''
      const sizes = index === 0 ? `${count(first?.size ?? 0)}–${count(last?.size ?? 0)} ${growth.size}` : ''
      const cost = `${figure(first?.value ?? 0)}–${figure(last?.value ?? 0)} ${growth.unit}`
      return `| ${[title, sizes, line.label, cost, exponent.toFixed(2), lastDecade.toFixed(2), sound].join(' | ')} |`
    }),
  )
  return `
## Growth

The exponent e in cost = c × size^e, fitted over all sizes and over the last decade alone: 0 is flat, 1 is linear. Above 1.1 in either is worse than linear and a defect; with a floor, the limit is the floor’s exponent plus 0.1. \`npm run bench:growth -- NAME\` repeats one.

| | size | | cost, first to last | exponent | last decade | |
|---|---|---|---|---|---|---|
${rows.join('\n')}

${growths.map(({ name, notes }) => `- **${name}**: ${notes}\n`).join('')}`
}

const [LEFT, TOP, WIDTH, HEIGHT] = [80, 34, 600, 250]
/** The width of a letter, about. */
const LETTER = 7

/** Points joined by lines, both axes logarithmic; the dashed line grows in step with the size. */
export function growthChart(growth: Growth): string {
  const points = growth.lines.flatMap((line) => line.points)
  const [fromX, toX] = decades(points.map(({ size }) => size))
  const [fromY, toY] = decades(points.map(({ value }) => value))
  const x = (size: number) => LEFT + ((Math.log10(size) - fromX) / (toX - fromX)) * WIDTH
  const y = (value: number) => TOP + HEIGHT - ((Math.log10(value) - fromY) / (toY - fromY)) * HEIGHT
  const between = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)
  const grid = [
    ...between(fromX, toX).map(
      (at) =>
        `<path class="grid" d="M${round(x(10 ** at))} ${TOP}v${HEIGHT}"/><text x="${round(x(10 ** at))}" y="${TOP + HEIGHT + 18}" text-anchor="middle">${count(10 ** at)}</text>`,
    ),
    ...between(fromY, toY).map(
      (at) =>
        `<path class="grid" d="M${LEFT} ${round(y(10 ** at))}h${WIDTH}"/><text x="${LEFT - 8}" y="${round(y(10 ** at) + 4)}" text-anchor="end">${tick(at)} ${escapeXml(growth.unit)}</text>`,
    ),
  ]
  const first = growth.lines[0]?.points[0]
  // Cut where it leaves the box.
  const reach = first ? Math.min(10 ** toX, first.size * (10 ** toY / first.value)) : 0
  const step = first
    ? `<path class="step" stroke-dasharray="4 5" d="M${round(x(first.size))} ${round(y(first.value))}L${round(x(reach))} ${round(y(first.value * (reach / first.size)))}"/>`
    : ''
  const highest = growth.lines.toSorted(
    (a, b) => (b.points.at(-1)?.value ?? 0) - (a.points.at(-1)?.value ?? 0),
  )[0]
  const lines = growth.lines.map((line, index) => {
    const path = line.points.map(({ size, value }) => `${round(x(size))} ${round(y(value))}`).join('L')
    const dots = line.points.map(
      ({ size, value }) => `<circle class="ours" cx="${round(x(size))}" cy="${round(y(value))}" r="4"/>`,
    )
    const [before, last] = line.points.slice(-2)
    // Above the first line; below the others, by what they fall along the name, so that none crosses it.
    const fall = before && last ? (y(before.value) - y(last.value)) / (x(last.size) - x(before.size)) : 0
    const below = 24 + Math.max(0, fall) * (12 + line.label.length * LETTER)
    const name =
      growth.lines.length > 1 && last
        ? `<text x="${round(x(last.size) - 12)}" y="${round(y(last.value) + (line === highest ? -12 : below))}" text-anchor="end">${escapeXml(line.label)}</text>`
        : ''
    return `<path class="drawn"${index > 0 ? ' stroke-dasharray="8 3"' : ''} d="M${path}"/>${dots.join('')}${name}`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 ${TOP + HEIGHT + 50}" role="img" aria-label="${escapeXml(growth.title)}, by ${escapeXml(growth.size)}">
${STYLE}
<text x="${LEFT}" y="18">${escapeXml(growth.title)}</text><text x="${LEFT + WIDTH}" y="18" text-anchor="end">dashed: in step with the size</text>
${grid.join('\n')}
${step}
${lines.join('\n')}
<text x="${LEFT + WIDTH / 2}" y="${TOP + HEIGHT + 40}" text-anchor="middle">${escapeXml(growth.size)}</text>
</svg>
`
}

/** The whole decades around all values; never none. */
function decades(values: readonly number[]): [number, number] {
  const from = Math.floor(Math.log10(Math.min(...values)))
  return [from, Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))))]
}

function tick(exponent: number): string {
  return exponent >= 0 ? count(10 ** exponent) : (10 ** exponent).toFixed(-exponent)
}

function count(value: number): string {
  return value.toLocaleString('en')
}

function round(value: number): string {
  return value.toFixed(1)
}
