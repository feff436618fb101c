import type { Result } from './harness.ts'
import { escapeXml, figure, STYLE } from './report.ts'

/** How the cost of one part grows with the size of what it works on. */
export interface Growth {
  readonly name: string
  readonly title: string
  /** What the size counts: `events stored already`. */
  readonly size: string
  readonly unit: string
  readonly lines: readonly Line[]
  readonly notes: string
  readonly date: string
  readonly machine: Result['machine']
}

export interface Line {
  readonly label: string
  /** What stands beside ours, to tell what the machine and the runtime themselves make of the size. */
  readonly floor?: true
  /** By size, smallest first. */
  readonly points: readonly Point[]
}

export interface Point {
  readonly size: number
  readonly value: number
}

export type Verdict =
  | 'flat'
  | 'better than linear'
  | 'linear'
  | 'linear beside its floor'
  | 'worse than linear'
  | 'worse than linear, as the floor is'

/** What an exponent may be above another before it counts as more: runs of the same thing differ by as much. */
const TOLERANCE = 0.1

/**
 * The exponent e of cost = c × size^e: by least squares over all points, and over the last decade alone, because what
 * costs the same at every size hides at first what grows. The verdict is of the larger of both.
 */
export function growthOf(
  { points }: Pick<Line, 'points'>,
  floor?: Line,
): {
  readonly exponent: number
  readonly lastDecade: number
  readonly verdict: Verdict
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
): Verdict {
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

/** The part of docs/performance.md that tells of growth. */
export function growthSection(growths: readonly Growth[]): string {
  if (growths.length === 0) return ''
  const summary = growths.flatMap((growth) =>
    growth.lines.map((line) => {
      const { exponent, lastDecade, verdict } = growthOf(line, line.floor ? undefined : floorOf(growth))
      const [from, to] = [line.points[0]?.size ?? 0, line.points.at(-1)?.size ?? 0]
      const sound = verdict === 'worse than linear' && !line.floor ? `**${verdict}**` : verdict
      return `| ${growth.title}${growth.lines.length > 1 ? `: ${line.label}` : ''} | ${count(from)} to ${count(to)} ${growth.size} | ${exponent.toFixed(2)} | ${lastDecade.toFixed(2)} | ${sound} |`
    }),
  )
  const parts = growths.map(
    (growth) => `### ${growth.title}

![${growth.title}, by ${growth.size}: both axes logarithmic](images/performance/growth-${growth.name}.svg)

| ${growth.size} | ${growth.lines.map(({ label }) => label).join(' | ')} |
|---|${growth.lines.map(() => '---').join('|')}|
${sizes(growth)
  .map(
    (size) =>
      `| ${count(size)} | ${growth.lines.map(({ points }) => valueAt(points, size, growth.unit)).join(' | ')} |`,
  )
  .join('\n')}

${growth.notes}

\`npm run bench:growth -- ${growth.name}\`: Node ${growth.machine.node}, ${growth.machine.cores} cores, load ${growth.machine.load}, ${growth.date.slice(0, 10)}.
`,
  )
  return `
## Growth

What a thing costs when there is ten times as much of it, over four decades. The exponent e is that of cost = c × size^e, fitted over all sizes and over the last decade alone: 0 is a cost that does not grow, 1 one that grows in step. Above 1.1 in either is worse than linear, and a defect; where a floor stands beside, it is held against the floor’s growth by the same 0.1, because client, kernel and runtime are part of both.

| | | exponent | in the last decade | verdict |
|---|---|---|---|---|
${summary.join('\n')}

${parts.join('\n')}`
}

function sizes({ lines }: Growth): number[] {
  return [...new Set(lines.flatMap(({ points }) => points.map(({ size }) => size)))].sort((a, b) => a - b)
}

function valueAt(points: readonly Point[], size: number, unit: string): string {
  const point = points.find((one) => one.size === size)
  return point ? `${figure(point.value)} ${unit}` : ''
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
