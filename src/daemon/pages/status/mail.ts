import { BREAKER, type DayOfMail } from '../../../core/mail/feedback/sending.ts'
import { type Hold, heldTogether } from '../../../core/mail/holds.ts'
import { escapeHtml } from '../../../core/mail/template.ts'
import type { Messages } from '../../../core/messages/en.ts'
import { column, figureIn, HEIGHT, heightOf, moment, STEP } from './format.ts'

export interface MailReport {
  /** Oldest first; the last is today. */
  readonly days: readonly DayOfMail[]
  readonly holds: readonly Hold[]
}

/** The delivery section: the rates by which providers judge a sender, each as a chart with its limit, and a table of days. */
export function mailSection({ days, holds }: MailReport, messages: Messages): string {
  const T = messages.status.mail
  const share = (count: number, of: number) => figureIn(messages.language, percentage(count, of))
  const sum = (pick: (day: DayOfMail) => number) => days.reduce((total, day) => total + pick(day), 0)
  const sent = sum((day) => day.sent)
  const charts = [
    { name: T.hardBounces, limit: BREAKER.hardBounces, pick: (day: DayOfMail) => day.hardBounces },
    { name: T.complaints, limit: BREAKER.complaints, pick: (day: DayOfMail) => day.complaints },
  ].map(({ name, limit, pick }) => {
    const said = T.rate(
      name,
      share(sum(pick), sent),
      sum(pick),
      sent,
      `${figureIn(messages.language, limit * 100)} %`,
    )
    return `<figure>${chart(days, limit, pick, said)}<figcaption>${said}</figcaption></figure>`
  })
  const note = heldTogether(holds)
    .map(({ streams, at, reason }) => {
      const since = moment(messages, at)
      return `<p class="note">${streams.join() === 'course' ? T.paused(since, escapeHtml(reason)) : T.mailPaused(streams.join(', '), since, escapeHtml(reason))}</p>`
    })
    .join('')
  const heads = [T.day, T.sent, T.hardBounces, T.softBounces, T.complaints]
  const row = ({ day, sent: of, hardBounces, softBounces, complaints }: DayOfMail) => {
    const cells = [hardBounces, softBounces, complaints].map((count) =>
      count === 0 ? '0' : `${count} <small>${share(count, of)}</small>`,
    )
    // On a narrow screen each figure takes a line of its own, with its name.
    return `<tr><th scope="row">${day}</th>${[of, ...cells].map((text, n) => `<td data-name="${heads[n + 1]}">${text}</td>`).join('')}</tr>`
  }
  const rows = days
    .filter((day) => day.sent + day.hardBounces + day.softBounces + day.complaints > 0)
    .toReversed()
    .map(row)
  const table =
    rows.length === 0
      ? ''
      : `<details><summary>${T.byDay}</summary><div class="wide"><table><thead><tr>${heads.map((name) => `<th scope="col">${name}</th>`).join('')}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div></details>`
  return `<section class="service mail" aria-labelledby="mail-rates">
<header><div class="head"><h3 id="mail-rates">${T.heading(days.length)}</h3></div>
${note}<div class="charts">${charts.join('\n')}</div>
<p class="quiet">${T.more}</p></header>${table}
</section>`
}

/** A column for each day, as high as its share of what was sent, and a line at the limit. */
function chart(days: readonly DayOfMail[], limit: number, pick: (day: DayOfMail) => number, label: string) {
  const rates = days.map((day) => (pick(day) === 0 ? 0 : pick(day) / Math.max(day.sent, pick(day))))
  const top = Math.max(limit * 1.25, ...rates)
  const columns = (over: boolean) =>
    rates.map((rate, n) => (rate > 0 && rate >= limit === over ? column(n, rate / top) : '')).join('')
  const width = days.length * STEP - 1
  return `<svg viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}"><path class="under" d="${columns(false)}"/><path class="over" d="${columns(true)}"/><path class="limit" d="M0 ${HEIGHT - heightOf(limit / top)}h${width}"/></svg>`
}

/** Three decimals below one in a thousand, so that a complaint is not 0 %. */
function percentage(count: number, of: number): string {
  if (of === 0) return '–'
  const percent = (count / of) * 100
  return `${percent.toFixed(percent > 0 && percent < 0.1 ? 3 : percent % 1 === 0 ? 0 : 2)} %`
}

export const MAIL_STYLE = `
.charts { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem 2rem; } .charts figure { margin: 0; } .charts svg { display: block; width: 100%; height: 64px; border-bottom: 1px solid var(--line); } .charts path { fill: none; stroke-width: 3; } .charts .under { stroke: var(--accent); } .charts .over { stroke: var(--failing); } .charts .limit { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; } .charts figcaption { margin-top: .4rem; font-size: .85rem; color: var(--quiet); }
.mail .quiet { margin: .9rem 0 0; font-size: .85rem; } .mail .note { margin: 0 0 1rem; } .mail summary { padding: .6rem 1.4rem; cursor: pointer; border-top: 1px solid var(--line); } .mail .wide { overflow-x: auto; } .mail td, .mail thead th:not(:first-child) { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media (max-width: 38rem) { .charts { grid-template-columns: 1fr; } .mail summary { padding: .6rem 1rem; } .service.mail td { grid-column: 1 / -1; display: flex; align-items: baseline; gap: .5rem; } .mail td::before { content: attr(data-name); margin-inline-end: auto; color: var(--quiet); } }
@media (forced-colors: active) { .charts path { forced-color-adjust: none; } }
`
