import { escapeHtml } from '../../../core/mail/template.ts'
import { DAYS_KEPT } from '../../../core/status/history.ts'
import type { Line, ServiceStatus, Summary } from '../../../core/status/summary.ts'
import type { Labels } from '../../../core/status/words.ts'
import { bars, legend, sign } from './bars.ts'
import { ago, buildName, latencies, percent, responseTimes } from './format.ts'
import type { MailReport } from './mail.ts'

/** What the parts of the status pages are written from. */
export interface StatusView {
  readonly summary: Summary
  readonly labels: Labels
  /** Reasons, addresses and mail: for requests with the health token. */
  readonly details?:
    | {
        readonly targetOf: (probe: string) => string | undefined
        /** Undefined while mail is not configured or no store is open. */
        readonly mail: MailReport | undefined
      }
    | undefined
}

/** From this many on, each service takes one line, in groups and with a filter, and lists its parts only in trouble. */
const MANY = 12

const RANK: readonly Line['state'][] = ['failing', 'unknown', 'degraded', 'ok', 'skipped']
const isTrouble = ({ whole: { state } }: ServiceStatus) => state !== 'ok' && state !== 'skipped'

export function services(view: StatusView): string[] {
  const { messages, groupOf } = view.labels
  const T = messages.status
  const all = view.summary.services
  if (all.length === 0) return []
  const key = `<h2>${T.services}</h2>\n<div class="key"><p>${T.lastDays(DAYS_KEPT)}</p>${legend(messages)}</div>`
  if (all.length < MANY) return [key, ...all.map((one) => section(one, view))]
  const groups = Map.groupBy(all, ({ service }) => groupOf(service))
  const headed = groups.size > 1
  return [
    key,
    `<div class="filter" hidden><label>${T.filter} <input type="search" id="filter" autocomplete="off" spellcheck="false"></label><label><input type="checkbox" id="trouble" autocomplete="off"> ${T.onlyTrouble}</label><p id="found" role="status"></p></div>`,
    ...[...groups].map(([group, members], index) => {
      const troubled = members.filter(isTrouble).length
      const heading = headed
        ? `<h3 id="group-${index}">${escapeHtml(group ?? T.otherServices)} <small>${troubled === 0 ? T.countOk(members.length) : T.countTrouble(troubled, members.length)}</small></h3>\n`
        : ''
      const sorted = members.toSorted((a, b) => RANK.indexOf(a.whole.state) - RANK.indexOf(b.whole.state))
      return `<section class="group"${headed ? ` aria-labelledby="group-${index}"` : ''}>${heading}${sorted.map((one) => folded(one, view)).join('\n')}</section>`
    }),
  ]
}

function section(status: ServiceStatus, view: StatusView): string {
  const { service } = status
  return `<section class="service" id="service-${service}" aria-labelledby="${service}"><header>${heading(status, view)}
${days(status, view)}</header>
${probeTable(status, view)}</section>`
}

/** One of many: a line, and the rest behind it. What has trouble is open. */
function folded(status: ServiceStatus, view: StatusView): string {
  const isOpen = isTrouble(status)
  const parts = isOpen || view.details !== undefined ? probeTable(status, view) : ''
  return `<details class="service" id="service-${status.service}"${isOpen ? ' open data-trouble' : ''}><summary>${heading(status, view)}</summary>
<header>${days(status, view)}</header>
${parts}</details>`
}

function heading({ service, whole }: ServiceStatus, { labels }: StatusView): string {
  const T = labels.messages.status
  const uptime =
    whole.allDays.uptime === undefined ? '' : T.uptime(percent(whole.allDays.uptime, labels.messages))
  return `<div class="head"><h3 id="${service}">${escapeHtml(labels.service(service))}</h3><span class="word ${whole.state}">${sign(whole.state)} ${T.states[whole.state]}</span><span class="up">${uptime}</span></div>`
}

function days({ whole, seenFrom, build, buildSince }: ServiceStatus, view: StatusView): string {
  const { labels, details, summary } = view
  const { messages } = labels
  const T = messages.status
  const since = buildSince === undefined ? '' : T.firstSeen(ago(messages, buildSince, summary.now))
  const facts = [
    seenFrom === undefined ? '' : T.seenFrom(escapeHtml(labels.service(seenFrom))),
    build === undefined || details === undefined ? '' : `${T.build(buildName(messages, build))}${since}`,
    whole.allDays.latency === undefined || details === undefined
      ? ''
      : `p50 · p95 · p99: ${latencies(whole.allDays.latency, messages)}`,
  ].filter(Boolean)
  return `${bars(messages, whole)}
<p class="axis"><span>${T.daysAgo(DAYS_KEPT)}</span><span>${facts.join(' · ')}</span><span>${T.today}</span></p>${why(whole, view)}${responseTimes(whole, summary.now, messages)}`
}

function probeTable({ probes }: ServiceStatus, view: StatusView): string {
  // Probes that were never configured have a list of their own.
  const shown = probes.filter(({ state, days }) => state !== 'skipped' || days.some((day) => day !== 'none'))
  if (shown.length === 0) return ''
  const T = view.labels.messages.status
  const isOperators = view.details !== undefined
  const times = isOperators ? '<th scope="col" class="num">p50 · p95 · p99</th>' : ''
  return `<table><thead><tr><th scope="col">${isOperators ? T.probe : T.part}</th><th scope="col">${T.dayColumn}</th><th scope="col" class="num">${T.uptimeColumn}</th>${times}</tr></thead><tbody>${shown.map((probe) => row(probe, view)).join('\n')}</tbody></table>`
}

function row(line: Line, view: StatusView): string {
  const { messages, probe: nameOf } = view.labels
  const { state, probe, allDays } = line
  const times =
    view.details === undefined ? '' : `<td class="num">${latencies(allDays.latency, messages)}</td>`
  const word = state === 'ok' ? '' : ` <span class="word ${state}">${messages.status.states[state]}</span>`
  return `<tr><th scope="row">${sign(state)} <span>${escapeHtml(nameOf(probe))}</span>${word}${why(line, view)}</th><td class="days">${bars(messages, line)}</td><td class="num">${percent(allDays.uptime, messages)}</td>${times}</tr>`
}

/** Reasons and addresses are for operators. */
function why({ probe, state, reason }: Line, { details }: StatusView): string {
  const said = state === 'ok' || details === undefined ? undefined : reason
  const texts = [said, details?.targetOf(probe)].filter((text) => text !== undefined)
  return texts.length === 0 ? '' : `<span class="why">${texts.map(escapeHtml).join(' · ')}</span>`
}
