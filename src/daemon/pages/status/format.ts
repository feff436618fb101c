import { escapeHtml } from '../../../core/mail/render.ts'
import type { Window } from '../../../core/status/summary.ts'

/** Rounded down: only time without a single failing minute reads 100 %. */
export function percent(uptime: number | undefined): string {
  if (uptime === undefined) return '–'
  return uptime === 1 ? '100 %' : `${(Math.floor(uptime * 10_000) / 100).toFixed(2)} %`
}

/** `3.1 · 12 · 140 ms` */
export function latencies(latency: Window['latency']): string {
  if (latency === undefined) return '–'
  const inSeconds = latency.p99 >= 10_000
  const figure = (ms: number) => {
    const value = inSeconds ? ms / 1000 : ms
    return value < 10 ? value.toFixed(1) : value.toFixed(0)
  }
  return `${[latency.p50, latency.p95, latency.p99].map(figure).join(' · ')} ${inSeconds ? 's' : 'ms'}`
}

/** A moment that programs can read too: `21 Nov 2026, 07:26 UTC`. */
export function moment(ms: number, { seconds = false, date = true } = {}): string {
  const iso = new Date(ms).toISOString()
  const day = `${Number(iso.slice(8, 10))} ${MONTHS[Number(iso.slice(5, 7)) - 1]} ${iso.slice(0, 4)}, `
  return `<time datetime="${iso}">${date ? day : ''}${iso.slice(11, seconds ? 19 : 16)} UTC</time>`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** A build stamp can be a whole commit hash: enough of it to compare. */
export function buildName(build: string | null): string {
  if (build === null) return 'unstamped'
  return escapeHtml(/^[0-9a-f]{16,}$/.test(build) ? build.slice(0, 12) : build.slice(0, 40))
}
