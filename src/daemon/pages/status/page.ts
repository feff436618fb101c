import { escapeHtml } from '../../../core/mail/render.ts'
import { DAY_MS, DAYS_KEPT } from '../../../core/status/history.ts'
import type { RootIncident } from '../../../core/status/incidents.ts'
import type { Line, ServiceStatus, Summary } from '../../../core/status/summary.ts'
import { verdict } from '../../../core/status/verdict.ts'
import { duration, type Labels, listed } from '../../../core/status/words.ts'
import { type Page, page } from '../layout.ts'
import { bars, legend } from './bars.ts'
import { buildName, latencies, moment, percent, percentiles } from './format.ts'
import { SIGN_SHAPES, STATE_WORD, sign, stateIcon } from './sign.ts'
import { STATUS_STYLE } from './style.ts'

export interface StatusPageInput {
  readonly labels: Labels
  /** What the course is, in HTML of ours; undefined without a course. */
  readonly invitation: string | undefined
  readonly summary: Summary
  readonly recorded: 'file' | 'memory' | 'none'
  /** UTC milliseconds; what is recorded before is sample data. */
  readonly sampleUntil: number | undefined
  /** What is not configured, and what that means. */
  readonly notConfigured: readonly { readonly name: string; readonly means: string }[]
  /** For who showed the health token: reasons and addresses. */
  readonly details: { readonly targetOf: (probe: string) => string | undefined } | undefined
  /** Where a person signs in for the details; undefined when nobody can. */
  readonly detailsLink: string | undefined
}

const INCIDENTS_SHOWN = 12

/** The first page that visitors see: from the record alone, without a script, in at most 50 KB. */
export function statusPage(input: StatusPageInput): Page {
  const { summary } = input
  return page({
    title: `${verdict(summary, input.labels)} · Status`,
    wide: true,
    icon: stateIcon(summary.state),
    style: STATUS_STYLE,
    body: [
      `${SIGN_SHAPES}<p class="eyebrow">Status</p>`,
      head(input),
      // What goes on now stands beneath what it does; what is over stands below the services.
      ...(hasOngoing(summary) ? [incidents(input)] : []),
      ...notes(input),
      ...(summary.services.length === 0
        ? []
        : [
            `<div class="key"><p>The last ${DAYS_KEPT} days, by the worst of each day</p>${legend()}</div>`,
            ...summary.services.map((service) => section(service, input)),
            ...(hasOngoing(summary) ? [] : [incidents(input)]),
          ]),
      off(input),
      ...(input.invitation === undefined ? [] : [`<h2>The course</h2>\n<p>${input.invitation}</p>`]),
      foot(input),
    ].join('\n'),
  })
}

function hasOngoing({ incidents }: Summary): boolean {
  return incidents.some(({ endedAt }) => endedAt === undefined)
}

function head({ summary, labels }: StatusPageInput): string {
  const { state, checkedAt, now } = summary
  const ongoing = summary.incidents.filter((one) => one.endedAt === undefined && one.state === state)
  const since =
    ongoing.length === 0 ? '' : `for ${duration(Math.max(...ongoing.map(({ lengthMs }) => lengthMs)))} · `
  const age =
    checkedAt === undefined
      ? ''
      : `<small>${since}checked ${duration(Math.max(0, now - checkedAt))} ago, at ${moment(checkedAt, { seconds: true })}</small>`
  return `<div class="verdict ${state}">${sign(state)}<div><h1>${escapeHtml(verdict(summary, labels))} ${age}</h1></div></div>`
}

function notes({ summary, recorded, sampleUntil, labels }: StatusPageInput): string[] {
  const builds = summary.services.flatMap(({ service, build }) =>
    build === undefined ? [] : [`${labels.service(service)} ${buildName(build)}`],
  )
  const texts = [
    sampleUntil === undefined
      ? ''
      : `<strong>Sample history.</strong> The demo made up everything before ${moment(sampleUntil)}; what follows is real.`,
    recorded === 'none'
      ? 'This page shows what <code>platformctl daemon</code> records each minute. Here the platform runs inside another program, which records nothing.'
      : '',
    recorded === 'memory'
      ? 'The record cannot be kept in its file: it is kept in memory and ends with the process.'
      : '',
    recorded !== 'none' && summary.checkedAt === undefined ? 'The first check is under way.' : '',
    summary.skew ? `The services run different builds: ${listed(builds)}.` : '',
  ]
  return texts.filter(Boolean).map((text) => `<p class="note">${text}</p>`)
}

function section(status: ServiceStatus, input: StatusPageInput): string {
  const { labels } = input
  const { whole, service, seenFrom, probes } = status
  const { now } = input.summary
  // Never configured in all that time: those stand in a list of their own.
  const shown = probes.filter(({ state, days }) => state !== 'skipped' || days.some((day) => day !== 'none'))
  const facts = [
    seenFrom === undefined ? '' : `as seen from ${labels.service(seenFrom)}`,
    status.build === undefined
      ? ''
      : `build ${buildName(status.build)}${status.buildSince === undefined ? '' : `, first seen ${duration(Math.max(0, now - status.buildSince), 1)} ago`}`,
    whole.allDays.latency === undefined ? '' : percentiles(whole.allDays.latency),
  ].filter(Boolean)
  return `<section class="service" aria-labelledby="${service}">
<header><div class="head"><h2 id="${service}">${escapeHtml(labels.service(service))}</h2><span class="word ${whole.state}">${sign(whole.state)} ${STATE_WORD[whole.state]}</span><span class="up">${whole.allDays.uptime === undefined ? '' : `${percent(whole.allDays.uptime)} uptime`}</span></div>
${bars({ id: service, line: whole, now, notes: true })}
<p class="axis"><span>${DAYS_KEPT} days ago</span><span>${facts.join(' · ')}</span><span>today</span></p>${why(whole, input)}</header>
${shown.length === 0 ? '' : `<table><thead><tr><th scope="col">Probe</th><th scope="col">Days</th><th scope="col" class="num">Uptime</th><th scope="col" class="num">p50 · p95 · p99</th></tr></thead><tbody>${shown.map((probe) => row(probe, input)).join('\n')}</tbody></table>`}
</section>`
}

function row(line: Line, input: StatusPageInput): string {
  const { service, state, probe, allDays } = line
  return `<tr><th scope="row">${sign(state)} ${escapeHtml(input.labels.probe(probe))} <span class="word ${state}">${state === 'ok' ? '' : STATE_WORD[state]}</span>${why(line, input)}</th><td class="days">${bars({ id: `${service}-${probe}`, line, now: input.summary.now, notes: false })}</td><td class="num">${percent(allDays.uptime)}</td><td class="num">${latencies(allDays.latency)}</td></tr>`
}

/** Reasons and addresses are for operators. */
function why({ probe, state, reason }: Line, { details }: StatusPageInput): string {
  const target = details?.targetOf(probe)
  const texts = [state === 'ok' || details === undefined ? undefined : reason, target].filter(
    (text) => text !== undefined,
  )
  return texts.length === 0 ? '' : `<span class="why">${texts.map(escapeHtml).join(' · ')}</span>`
}

function incidents({ summary, details, labels }: StatusPageInput): string {
  const shown = summary.incidents.slice(0, INCIDENTS_SHOWN)
  const more = summary.incidents.length - shown.length
  const one = ({ service, probe, state, reason, beganAt, endedAt, lengthMs, feltBy }: RootIncident) => {
    const felt = feltBy.length === 0 ? '' : `, felt by ${listed(feltBy.map((name) => labels.service(name)))}`
    const what = labels.isService(probe)
      ? `${labels.service(probe)}, as seen from ${labels.service(service)},`
      : `${labels.probe(probe)} (${labels.service(service)})`
    const until = endedAt === undefined ? 'now' : moment(endedAt, { date: !sameDay(beganAt, endedAt) })
    const cause = details === undefined || reason === undefined ? '' : `<br>${escapeHtml(reason)}`
    return `<li>${sign(state)}<div><p><strong>${escapeHtml(what)}</strong> ${endedAt === undefined ? `has been ${state} for` : `was ${state} for`} ${duration(lengthMs)}${felt}</p><p class="quiet">${moment(beganAt)} to ${until}${cause}</p></div></li>`
  }
  return `<h2>Incidents</h2>
${shown.length === 0 ? `<p>None ${sinceWhen(summary)}.</p>` : `<ul class="list">${shown.map(one).join('\n')}</ul>`}
${more > 0 ? `<p class="quiet">${more} more in <a href="/status.json">status.json</a>.</p>` : ''}`
}

function sinceWhen({ since, now }: Summary): string {
  return since === undefined || now - since > DAYS_KEPT * DAY_MS
    ? `in the last ${DAYS_KEPT} days`
    : `since the record began, on ${moment(since)}`
}

function off({ notConfigured }: StatusPageInput): string {
  if (notConfigured.length === 0) return ''
  const rows = notConfigured.map(
    ({ name, means }) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(sentence(means))}</dd></div>`,
  )
  return `<h2>Not configured</h2>
<p>Every integration is optional. Without these, the platform works like this:</p>
<dl class="off">${rows.join('')}</dl>`
}

function foot({ recorded, detailsLink, details }: StatusPageInput): string {
  const links = [
    '<a href="/status.json">JSON</a>',
    '<a href="/badge.svg">Badge</a>',
    '<a href="/api/health">Health</a>',
    '<a href="/insights">Insights</a>',
    detailsLink === undefined || details !== undefined
      ? ''
      : `<a href="${detailsLink}">Details for operators</a>`,
  ]
  return `<footer><p>${recorded === 'none' ? 'Nothing is recorded here.' : 'Recorded once a minute. Time without a record is no data, and not uptime; degraded counts as up. Days are in UTC.'}</p>${links.filter(Boolean).join(' ')}</footer>`
}

function sameDay(a: number, b: number): boolean {
  return new Date(a).toISOString().slice(0, 10) === new Date(b).toISOString().slice(0, 10)
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}
