import { DAY_MS } from '../../../core/durations.ts'
import type { StatusUpdate } from '../../../core/incidents/incident.ts'
import { escapeHtml } from '../../../core/mail/render.ts'
import type { Messages } from '../../../core/messages/en.ts'
import type { RootIncident } from '../../../core/status/history.ts'
import { DAYS_KEPT } from '../../../core/status/history.ts'
import type { Line, ServiceStatus, Summary } from '../../../core/status/summary.ts'
import { verdict } from '../../../core/status/verdict.ts'
import type { Labels } from '../../../core/status/words.ts'
import { type Frame, type Page, page } from '../layout.ts'
import { SUBSCRIBE_STYLE } from '../pages.ts'
import { bars, legend, SIGN_SHAPES, sign, stateIcon } from './bars.ts'
import { buildName, latencies, moment, percent, percentiles, responseTimes } from './format.ts'
import { type MailReport, mailSection } from './mail.ts'
import { STATUS_STYLE } from './style.ts'

export interface StatusPageInput {
  readonly frame: Frame
  readonly labels: Labels
  /** Description of the course, in our own HTML; undefined without a course. */
  readonly invitation: string | undefined
  /** The form that subscribes to the course; undefined where nobody can. */
  readonly signUp: string | undefined
  /** The form that subscribes to incidents; undefined where they are not mailed. */
  readonly signUpForNotices: string | undefined
  readonly summary: Summary
  readonly recorded: 'file' | 'memory' | 'none'
  /** UTC milliseconds; what is recorded before is sample data. */
  readonly sampleUntil: number | undefined
  /** Features that visitors miss because they are not configured: a sentence each. */
  readonly off: readonly string[]
  /** Groups and probes that are not configured, with the consequence for operators. */
  readonly notConfigured: readonly { readonly name: string; readonly means: string }[]
  /** Reasons and addresses, for requests with the health token. */
  readonly details:
    | {
        readonly targetOf: (probe: string) => string | undefined
        /** Undefined while mail is not configured or no store is open. */
        readonly mail: MailReport | undefined
      }
    | undefined
  /** Makes the page refresh itself and its days answer; the page is whole without it. */
  readonly script: string | undefined
  /** Where a person signs in for the details; undefined when nobody can. */
  readonly detailsLink: string | undefined
}

const INCIDENTS_SHOWN = 12
const UPDATES_SHOWN = 5

/** With more services than this, each takes one line, and only those with trouble are expanded. */
const SERVICES_OPEN = 8

/** The first page that visitors see: from the record alone, whole without its script, in at most 60 KB. */
export function statusPage(input: StatusPageInput): Page {
  const { summary, labels, frame } = input
  const { messages } = labels
  const T = messages.status
  return page({
    frame,
    title: `${verdict(summary, labels)} · ${T.title}`,
    wide: true,
    icon: stateIcon(summary.state),
    style: STATUS_STYLE + ((input.signUp ?? input.signUpForNotices) ? SUBSCRIBE_STYLE : ''),
    head: `<link rel="alternate" type="application/atom+xml" title="${T.incidents}" href="/status.atom">`,
    connects: true,
    script: input.script,
    ...(input.script !== undefined && { data: T.script }),
    body: [
      SIGN_SHAPES,
      ...(input.details === undefined ? [] : [`<p class="operator">${T.operatorView}</p>`]),
      `<p class="eyebrow">${T.title}</p>`,
      `<p id="stale" class="note" role="status" hidden></p>`,
      head(input),
      ...announcements(input),
      // Open incidents come right after the headline; closed ones after the services.
      ...(hasOngoing(summary) ? [incidents(input)] : []),
      ...notes(input),
      ...(summary.services.length === 0
        ? []
        : [
            `<div class="key"><p>${T.lastDays(DAYS_KEPT)}</p>${legend(messages)}</div>`,
            ...(summary.services.length > SERVICES_OPEN
              ? byTrouble(summary.services).map((service) => folded(service, input))
              : summary.services.map((service) => section(service, input))),
            ...(hasOngoing(summary) ? [] : [incidents(input)]),
          ]),
      ...(input.details?.mail === undefined ? [] : [mailSection(input.details.mail, messages)]),
      ...(input.signUpForNotices === undefined
        ? []
        : [
            `<details class="by-mail"><summary>${messages.notices.words.subscribeHeading}</summary>${input.signUpForNotices}</details>`,
          ]),
      off(input),
      ...(input.invitation === undefined
        ? []
        : [`<h2>${messages.course.heading}</h2>\n<p>${input.invitation}</p>\n${input.signUp ?? ''}`]),
      foot(input),
    ].join('\n'),
  })
}

function hasOngoing({ incidents }: Summary): boolean {
  return incidents.some(({ endedAt }) => endedAt === undefined)
}

function head({ summary, labels }: StatusPageInput): string {
  const { state, checkedAt, now } = summary
  const T = labels.messages.status
  const ongoing = summary.incidents.filter((one) => one.endedAt === undefined && one.state === state)
  const since = ongoing.length === 0 ? '' : T.since(Math.max(...ongoing.map(({ lengthMs }) => lengthMs)))
  const age =
    checkedAt === undefined
      ? ''
      : `<small>${since}${T.checked(Math.max(0, now - checkedAt), moment(labels.messages, checkedAt, { seconds: true }))}</small>`
  return `<div class="verdict ${state}">${sign(state)}<div><h1>${escapeHtml(verdict(summary, labels))} ${age}</h1></div></div>`
}

function announcements({ summary: { announcements, now }, labels: { messages } }: StatusPageInput): string[] {
  const T = messages.status
  return announcements.map(({ id, text, from, until, updates }) => {
    const isPlanned = from > now
    const end =
      until === undefined ? undefined : moment(messages, until, { date: !isPlanned || !sameDay(from, until) })
    const when = isPlanned ? T.planned(moment(messages, from), end) : end === undefined ? '' : T.until(end)
    return `<div class="note announced" id="announcement-${escapeHtml(id)}"><strong>${escapeHtml(text)}</strong>${when && `<br><small>${when}</small>`}${timeline(updates, messages)}</div>`
  })
}

/** The newest of what operators wrote; /status.json has all of it. */
function timeline(updates: readonly StatusUpdate[] = [], messages: Messages): string {
  if (updates.length === 0) return ''
  const one = ({ at, state, text }: StatusUpdate) =>
    `<li><small>${moment(messages, at)} · ${messages.status.updateStates[state ?? 'update']}</small><br>${escapeHtml(text)}</li>`
  return `<ol class="updates">${updates.slice(-UPDATES_SHOWN).map(one).join('')}</ol>`
}

function notes({ summary, recorded, sampleUntil, labels, details }: StatusPageInput): string[] {
  const { messages } = labels
  const T = messages.status
  const builds = summary.services.flatMap(({ service, build }) =>
    build === undefined ? [] : [`${escapeHtml(labels.service(service))} ${buildName(messages, build)}`],
  )
  const texts = [
    sampleUntil === undefined ? '' : T.sampleHistory(moment(messages, sampleUntil)),
    recorded === 'none' ? T.notRecorded : '',
    recorded === 'memory' && details !== undefined ? T.recordedInMemory : '',
    recorded !== 'none' && summary.checkedAt === undefined ? T.firstCheck : '',
    !summary.skew ? '' : details === undefined ? T.versionsDiffer : T.skew(builds),
  ]
  return texts.filter(Boolean).map((text) => `<p class="note">${text}</p>`)
}

function section(status: ServiceStatus, input: StatusPageInput): string {
  const { service, whole } = status
  const { messages } = input.labels
  const { now } = input.summary
  return `<section class="service" aria-labelledby="${service}">
<header>${heading(status, input)}
${bars({ messages, id: service, line: whole, now, notes: true })}
${axis(status, input)}${why(whole, input)}${responseTimes(whole, now, messages)}</header>
${probeTable(status, input)}
</section>`
}

/** One of many: a line with its days, and the rest behind it. What has trouble is open. */
function folded(status: ServiceStatus, input: StatusPageInput): string {
  const { service, whole } = status
  const { messages } = input.labels
  const { now } = input.summary
  const open = whole.state === 'ok' || whole.state === 'skipped' ? '' : ' open'
  return `<details class="service" id="fold-${service}"${open}><summary>${heading(status, input)}</summary>
<header>${bars({ messages, id: service, line: whole, now, notes: false })}
${axis(status, input)}${why(whole, input)}${responseTimes(whole, now, messages)}</header>
${probeTable(status, input)}
</details>`
}

const RANK: Readonly<Record<Line['state'], number>> = {
  failing: 0,
  unknown: 1,
  degraded: 2,
  ok: 3,
  skipped: 4,
}

function byTrouble(services: readonly ServiceStatus[]): ServiceStatus[] {
  return services.toSorted((a, b) => RANK[a.whole.state] - RANK[b.whole.state])
}

function heading({ service, whole }: ServiceStatus, { labels }: StatusPageInput): string {
  const T = labels.messages.status
  const uptime = whole.allDays.uptime === undefined ? '' : T.uptime(percent(whole.allDays.uptime))
  return `<div class="head"><h2 id="${service}">${escapeHtml(labels.service(service))}</h2><span class="word ${whole.state}">${sign(whole.state)} ${T.states[whole.state]}</span><span class="up">${uptime}</span></div>`
}

function axis({ whole, seenFrom, build, buildSince }: ServiceStatus, input: StatusPageInput): string {
  const { labels, details, summary } = input
  const { messages } = labels
  const T = messages.status
  const facts = [
    seenFrom === undefined ? '' : T.seenFrom(escapeHtml(labels.service(seenFrom))),
    build === undefined || details === undefined
      ? ''
      : `${T.build(buildName(messages, build))}${buildSince === undefined ? '' : T.firstSeen(Math.max(0, summary.now - buildSince))}`,
    whole.allDays.latency === undefined || details === undefined ? '' : percentiles(whole.allDays.latency),
  ].filter(Boolean)
  return `<p class="axis"><span>${T.daysAgo(DAYS_KEPT)}</span><span>${facts.join(' · ')}</span><span>${T.today}</span></p>`
}

function probeTable({ probes }: ServiceStatus, input: StatusPageInput): string {
  // Probes that were never configured have a list of their own.
  const shown = probes.filter(({ state, days }) => state !== 'skipped' || days.some((day) => day !== 'none'))
  if (shown.length === 0) return ''
  const T = input.labels.messages.status
  const isOperators = input.details !== undefined
  const times = isOperators ? '<th scope="col" class="num">p50 · p95 · p99</th>' : ''
  return `<table><thead><tr><th scope="col">${isOperators ? T.probe : T.part}</th><th scope="col">${T.dayColumn}</th><th scope="col" class="num">${T.uptimeColumn}</th>${times}</tr></thead><tbody>${shown.map((probe) => row(probe, input)).join('\n')}</tbody></table>`
}

function row(line: Line, input: StatusPageInput): string {
  const { messages } = input.labels
  const { service, state, probe, allDays } = line
  const times = input.details === undefined ? '' : `<td class="num">${latencies(allDays.latency)}</td>`
  return `<tr><th scope="row">${sign(state)} ${escapeHtml(input.labels.probe(probe))} <span class="word ${state}">${state === 'ok' ? '' : messages.status.states[state]}</span>${why(line, input)}</th><td class="days">${bars({ messages, id: `${service}-${probe}`, line, now: input.summary.now, notes: false })}</td><td class="num">${percent(allDays.uptime)}</td>${times}</tr>`
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
  const { messages } = labels
  const T = messages.status
  const shown = summary.incidents.slice(0, INCIDENTS_SHOWN)
  const more = summary.incidents.length - shown.length
  const one = (incident: RootIncident) => {
    const { state, reason, beganAt, endedAt, lengthMs } = incident
    const { what, felt } = incidentName(incident, labels)
    const until =
      endedAt === undefined ? T.now : moment(messages, endedAt, { date: !sameDay(beganAt, endedAt) })
    const cause = details === undefined || reason === undefined ? '' : `<br>${escapeHtml(reason)}`
    return `<li id="${incidentId(incident)}">${sign(state)}<div><p><strong>${escapeHtml(what)}</strong> ${endedAt === undefined ? T.hasBeen(state, lengthMs) : T.was(state, lengthMs)}${escapeHtml(felt)}</p><p class="quiet">${T.fromTo(moment(messages, beganAt), until)}${cause}</p>${timeline(incident.updates, messages)}</div></li>`
  }
  return `<h2>${T.incidents}</h2>
${shown.length === 0 ? `<p>${T.noIncidents(sinceWhen(summary, messages))}</p>` : `<ul class="list">${shown.map(one).join('\n')}</ul>`}
${more > 0 ? `<p class="quiet">${T.moreIncidents(more)}</p>` : ''}`
}

/** The same for one incident in every answer: links and feed readers keep it. */
export function incidentId({ service, probe, beganAt }: RootIncident): string {
  return `incident-${service}-${probe}-${beganAt / 1000}`
}

/** Name of an incident and of others affected by it; plain text. */
export function incidentName(
  { service, probe, feltBy }: RootIncident,
  labels: Labels,
): { readonly what: string; readonly felt: string } {
  const T = labels.messages.status
  // Of a service, other services see that it fails; of a probe, they feel it.
  const isObserver = (name: string) => labels.isService(probe) && labels.isService(name)
  const observers = [service, ...feltBy.filter(isObserver)].map(labels.service)
  const felt = feltBy.filter((name) => !isObserver(name)).map(labels.probe)
  return {
    what: labels.isService(probe)
      ? T.seenFromClause(labels.service(probe), observers)
      : `${labels.probe(probe)} (${labels.service(service)})`,
    felt: felt.length === 0 ? '' : T.feltBy(felt),
  }
}

function sinceWhen({ since, now }: Summary, messages: Messages): string {
  return since === undefined || now - since > DAYS_KEPT * DAY_MS
    ? messages.status.inLastDays(DAYS_KEPT)
    : messages.status.sinceRecord(moment(messages, since))
}

/** Visitors see which features are missing; operators see what is not configured, and what that means. */
function off({ off: missed, notConfigured, details, labels }: StatusPageInput): string {
  if (details === undefined)
    return missed.length === 0
      ? ''
      : `<h2>${labels.messages.status.off}</h2>\n<ul class="list">${missed.map((text) => `<li>${sign('skipped')}<p>${escapeHtml(text)}</p></li>`).join('')}</ul>`
  if (notConfigured.length === 0) return ''
  const rows = notConfigured.map(
    ({ name, means }) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(sentence(means))}</dd></div>`,
  )
  const T = labels.messages.status
  return `<h2>${T.notConfigured}</h2>
<p>${T.notConfiguredLead}</p>
<dl class="off">${rows.join('')}</dl>`
}

function foot({ recorded, detailsLink, details, labels }: StatusPageInput): string {
  const T = labels.messages.status
  const links = [
    '<a href="/status.json">JSON</a>',
    `<a href="/status.atom">${T.feedLink}</a>`,
    `<a href="/badge.svg">${T.badgeLink}</a>`,
    `<a href="/api/health">${T.healthLink}</a>`,
    `<a href="/insights">${T.insightsLink}</a>`,
    detailsLink === undefined || details !== undefined ? '' : `<a href="${detailsLink}">${T.detailsLink}</a>`,
  ]
  return `<footer><p>${recorded === 'none' ? T.footNothing : T.footRecorded}</p>${links.filter(Boolean).join(' ')}</footer>`
}

function sameDay(a: number, b: number): boolean {
  return new Date(a).toISOString().slice(0, 10) === new Date(b).toISOString().slice(0, 10)
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`
}
