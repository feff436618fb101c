import { HOUR_MS } from '../../../core/durations.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { Line } from '../../../core/status/summary.ts'
import { moment } from './format.ts'

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
