import { HOUR_MS } from '../../../core/durations.ts'
import { escapeHtml } from '../../../core/mail/template.ts'
import type { Messages } from '../../../core/messages/en.ts'
import { timesIn } from '../../../core/messages/words.ts'
import type { Line, Window } from '../../../core/status/summary.ts'

const points = new Map<string, string>()

/** `94.10`, with the decimal separator of a language. */
export function figureIn(language: string, figure: string | number): string {
  const point = points.get(language) ?? new Intl.NumberFormat(language).format(0.5).slice(1, -1)
  points.set(language, point)
  return String(figure).replace('.', point)
}

/** Rounded down: only time without a single failing minute reads 100 %. */
export function percent(uptime: number | undefined, { language }: Messages): string {
  if (uptime === undefined) return '–'
  return uptime === 1 ? '100 %' : `${figureIn(language, (Math.floor(uptime * 10_000) / 100).toFixed(2))} %`
}

/** `3.1 · 12 · 140 ms`: the median, the 95th and the 99th percentile. */
export function latencies(latency: Window['latency'], { language }: Messages): string {
  if (latency === undefined) return '–'
  const { p50, p95, p99 } = latency
  const inSeconds = p99 >= 10_000
  const figures = [p50, p95, p99].map((ms) => {
    const value = inSeconds ? ms / 1000 : ms
    return figureIn(language, value.toFixed(value < 10 ? 1 : 0))
  })
  return `${figures.join(' · ')} ${inSeconds ? 's' : 'ms'}`
}

export const iso = (ms: number) => new Date(ms).toISOString()

/** A moment that programs can read too, in UTC. The page's script writes it in the reader's time zone. */
export const moment = ({ language }: Messages, ms: number) =>
  `<time datetime="${iso(ms)}">${timesIn(language).moment(ms)}</time>`

export const span = ({ language }: Messages, from: number, to: number) =>
  `<time datetime="${iso(from)}" data-to="${iso(to)}">${timesIn(language).span(from, to)}</time>`

/** How long ago something was; the page's script counts on. */
export const ago = ({ language }: Messages, ms: number, now: number) =>
  `<time class="ago" datetime="${iso(ms)}" data-age="${now - ms}">${timesIn(language).ago(now - ms)}</time>`

const LINK = /(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]])/

/** What operators wrote, as HTML: paragraphs, and addresses as links. */
export function written(text: string): string {
  const linked = (part: string, index: number) =>
    index % 2 === 1
      ? `<a href="${escapeHtml(part)}" rel="nofollow">${escapeHtml(part)}</a>`
      : escapeHtml(part)
  const paragraphs = text.trim().split(/\n\s*\n/)
  const html = (one: string) => `<p class="written" dir="auto">${one.split(LINK).map(linked).join('')}</p>`
  return paragraphs.map(html).join('')
}

/** A build stamp can be a whole commit hash: enough of it to compare. */
export function buildName({ status }: Messages, build: string | null): string {
  if (build === null) return status.unstamped
  return escapeHtml(/^[0-9a-f]{16,}$/.test(build) ? build.slice(0, 12) : build.slice(0, 40))
}

const HOURS = 24
/** Of every chart, in its own units; a column and the gap after it take `STEP`. */
export const HEIGHT = 40
export const STEP = 4
/** The height of a column for a share from 0 to 1: never so low that nobody sees it. */
export const heightOf = (share: number) => Math.max(1, Math.round(share * HEIGHT))
export const column = (n: number, share: number) => `M${n * STEP + 1.5} ${HEIGHT}v-${heightOf(share)}`

/** A service's response times over the last 24 hours: a column an hour to the median and to the 95th percentile, with a scale. */
export function responseTimes({ service, hours, lastDay }: Line, now: number, messages: Messages) {
  const T = messages.status
  const time = (ms: number) => responseTime(ms, messages)
  const first = Math.floor(now / HOUR_MS) * HOUR_MS - (HOURS - 1) * HOUR_MS
  const shown = hours.filter(({ start }) => start >= first)
  if (shown.length < 2 || lastDay.latency === undefined) return ''
  const top = roundUp(Math.max(...shown.map(({ p95 }) => p95)))
  const columns = (pick: 'p50' | 'p95') =>
    shown.map((hour) => column((hour.start - first) / HOUR_MS, hour[pick] / top)).join('')
  const { p50, p95 } = lastDay.latency
  const said = [T.script.half.replace('{time}', time(p50)), T.script.most.replace('{time}', time(p95))]
  return `<figure class="times"><figcaption><span>${T.responseTimes}</span><span class="t50">${said[0]}</span><span class="t95">${said[1]}</span></figcaption><div><svg class="hours" data-line="${service}/" data-first="${first}" viewBox="0 0 ${HOURS * STEP - 1} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${T.responseTimes}: ${said.join(', ')}"><path class="t95" d="${columns('p95')}"/><path class="t50" d="${columns('p50')}"/></svg><p class="scale"><span>${time(top)}</span><span>0</span></p></div></figure>`
}

/** The next of 1, 2, 5, 10, 20, 50 … */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5].find((step) => step * power >= value) ?? 10) * power
}

/** `12 ms`, `3.1 ms`, `14 s` */
function responseTime(ms: number, { language }: Messages): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(0)} s`
  return `${figureIn(language, Number(ms.toFixed(ms < 10 ? 1 : 0)))} ms`
}
