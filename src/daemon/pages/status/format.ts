import { HOUR_MS } from '../../../core/durations.ts'
import { escapeHtml } from '../../../core/mail/render.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { Line, Window } from '../../../core/status/summary.ts'

/** Rounded down: only time without a single failing minute reads 100 %. */
export function percent(uptime: number | undefined): string {
  if (uptime === undefined) return '–'
  return uptime === 1 ? '100 %' : `${(Math.floor(uptime * 10_000) / 100).toFixed(2)} %`
}

/** `3.1 · 12 · 140 ms` */
export function latencies(latency: Window['latency']): string {
  if (latency === undefined) return '–'
  const { figures, unit } = inOneUnit(latency)
  return `${figures.join(' · ')} ${unit}`
}

/** `p50 3.1, p95 12, p99 140 ms`: where no heading says which is which; on one line. */
export function percentiles(latency: Latency): string {
  const { figures, unit } = inOneUnit(latency)
  return `p50\u00a0${figures[0]},\u00a0p95\u00a0${figures[1]},\u00a0p99\u00a0${figures[2]}\u00a0${unit}`
}

type Latency = Exclude<Window['latency'], undefined>

function inOneUnit({ p50, p95, p99 }: Latency): {
  readonly figures: readonly string[]
  readonly unit: 'ms' | 's'
} {
  const inSeconds = p99 >= 10_000
  const figures = [p50, p95, p99].map((ms) => {
    const value = inSeconds ? ms / 1000 : ms
    return value < 10 ? value.toFixed(1) : value.toFixed(0)
  })
  return { figures, unit: inSeconds ? 's' : 'ms' }
}

/** A moment that programs can read too: `21 Nov 2026, 07:26 UTC`. */
export function moment(messages: Messages, ms: number, options: MomentOptions = {}): string {
  return `<time datetime="${new Date(ms).toISOString()}">${momentText(messages, ms, options)}</time>`
}

interface MomentOptions {
  readonly seconds?: boolean
  readonly date?: boolean
}

/** The same as plain text. */
export function momentText(
  { time }: Messages,
  ms: number,
  { seconds = false, date = true }: MomentOptions = {},
): string {
  const iso = new Date(ms).toISOString()
  const month = time.months[Number(iso.slice(5, 7)) - 1] ?? ''
  const day = `${time.date(Number(iso.slice(8, 10)), month, iso.slice(0, 4))}, `
  return `${date ? day : ''}${iso.slice(11, seconds ? 19 : 16)} UTC`
}

/** A build stamp can be a whole commit hash: enough of it to compare. */
export function buildName({ status }: Messages, build: string | null): string {
  if (build === null) return status.unstamped
  return escapeHtml(/^[0-9a-f]{16,}$/.test(build) ? build.slice(0, 12) : build.slice(0, 40))
}

const HOURS = 24
const HEIGHT = 30

/** A service's response times over the last 24 hours: the hours as columns to the median and to the 95th percentile, and a sentence. */
export function responseTimes({ hours, lastDay }: Line, now: number, messages: Messages): string {
  const T = messages.status
  const first = Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS
  const shown = hours.filter(({ start }) => start >= first)
  const slowest = shown.reduce((worst, hour) => (hour.p95 > (worst?.p95 ?? 0) ? hour : worst), shown[0])
  if (slowest === undefined || lastDay.latency === undefined || hours.length < 2) return ''
  const column = (ms: number) => Math.max(1, Math.round((ms / slowest.p95) * HEIGHT))
  const columns = (pick: 'p50' | 'p95') =>
    shown
      .map((hour) => `M${((hour.start - first) / HOUR_MS) * 4 + 1.5} ${HEIGHT}v-${column(hour[pick])}`)
      .join('')
  const { p50, p95 } = lastDay.latency
  const said = T.responded(time(p50), time(p95), moment(messages, slowest.start, { date: false }))
  return `<div class="times"><svg viewBox="0 0 ${HOURS * 4 - 1} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${T.responseTimes}"><path class="t95" d="${columns('p95')}"/><path class="t50" d="${columns('p50')}"/></svg><p>${said}</p></div>`
}

function time(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(0)} s`
  return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`
}
