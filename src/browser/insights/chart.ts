import uPlot from 'uplot'
import type { Insights } from '../../core/analytics/insights.ts'

const HEIGHT = 220

/** Draws bars over days in `host`, in the colours of the page; `readout` tells what the pointer is on. */
export function barChart(
  host: HTMLElement,
  readout: HTMLElement,
  language: string,
  /** `12 events` */
  plural: (count: number) => string,
): (days: Insights['days']) => void {
  let chart: uPlot | undefined
  let days: Insights['days'] = []
  const shortDay = (day: string | undefined) =>
    day === undefined ? '' : format(day, language, { day: 'numeric', month: 'short' })

  const draw = () => {
    const style = getComputedStyle(document.documentElement)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const axis = {
      stroke: colour('--quiet'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, sans-serif',
    }
    chart?.destroy()
    chart = new uPlot(
      {
        width: host.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        // Days are row numbers, so that a bar is drawn at its day in any time zone.
        scales: {
          x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] },
          y: { range: (_, __, high) => [0, Math.max(4, high * 1.08)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 32,
            gap: 9,
            incrs: [1, 2, 7, 14, 28, 91, 182],
            space: 64,
            values: (_, rows) => rows.map((row) => shortDay(days[row]?.day)),
          },
          { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] },
        ],
        series: [
          {},
          {
            fill: colour('--accent'),
            stroke: colour('--accent'),
            width: 0,
            points: { show: false },
            ...(uPlot.paths.bars && { paths: uPlot.paths.bars({ size: [0.72, 40], radius: 0.15 }) }),
          },
        ],
        hooks: {
          setCursor: [
            ({ cursor }) => {
              const at = days[cursor.idx ?? -1]
              readout.textContent = at ? `${longDay(at.day, language)}: ${plural(at.count)}` : ' '
            },
          ],
        },
      },
      [days.map((_, row) => row), days.map(({ count }) => count)],
      host,
    )
  }

  // The width follows the page; the height stays.
  new ResizeObserver(() => {
    if (chart && host.clientWidth > 0 && Math.abs(host.clientWidth - chart.width) > 1)
      chart.setSize({ width: host.clientWidth, height: HEIGHT })
  }).observe(host)
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw())

  return (next) => {
    days = next
    draw()
  }
}

export const longDay = (day: string, language: string) =>
  format(day, language, { day: 'numeric', month: 'long', year: 'numeric' })

function format(day: string, language: string, options: Intl.DateTimeFormatOptions): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(language, { ...options, timeZone: 'UTC' })
}
