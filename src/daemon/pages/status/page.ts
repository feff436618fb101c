import { escapeHtml } from '../../../core/mail/template.ts'
import type { RootIncident } from '../../../core/status/history.ts'
import { verdict } from '../../../core/status/words.ts'
import { type Frame, type Page, page } from '../layout.ts'
import { SUBSCRIBE_STYLE } from '../pages.ts'
import { SHAPES, sign, stateIcon } from './bars.ts'
import { ago, buildName, moment } from './format.ts'
import { allIncidents, announcements, closed, incidentBody, incidentTitle, ongoing } from './incidents.ts'
import { MAIL_STYLE, mailSection } from './mail.ts'
import { type StatusView, services } from './services.ts'
import { STATUS_STYLE } from './style.ts'

export interface StatusPageInput extends StatusView {
  readonly frame: Frame
  /** The prefix of links to pages that are not kept with this one: empty on the platform itself. */
  readonly home: string
  /** Description of the course, in our own HTML; undefined without a course. */
  readonly invitation?: string | undefined
  readonly signUp?: string | undefined
  readonly signUpForNotices?: string | undefined
  readonly recorded: 'file' | 'memory' | 'none'
  /** UTC milliseconds; what is recorded before is sample data. */
  readonly sampleUntil: number | undefined
  /** Features that visitors miss because they are not configured: a sentence each. */
  readonly off: readonly string[]
  /** Groups and probes that are not configured, with the consequence for operators. */
  readonly notConfigured: readonly { readonly name: string; readonly means: string }[]
  /** Makes the page refresh itself and its days answer; the page is whole without it. */
  readonly script?: string | undefined
  /** Where a person signs in for the details; undefined when nobody can. */
  readonly detailsLink?: string | undefined
}

/** The first page that visitors see: from the record alone, whole without its script, in at most 60 KB. */
export function statusPage(input: StatusPageInput): Page {
  const { summary, labels, details } = input
  const { messages } = labels
  const said = verdict(summary, labels)
  // A page that is kept elsewhere outlives what it says; a title and an icon are seen without the note about its age.
  return framed(input, '.', input.home === '' ? said : undefined, [
    ...(details === undefined ? [] : [`<p class="operator">${messages.status.operatorView}</p>`]),
    head(input, said),
    ...ongoing(input),
    ...announcements(input),
    ...notes(input),
    ...services(input),
    ...(summary.services.length === 0 ? [] : [closed(input)]),
    ...(details?.mail === undefined ? [] : [mailSection(details.mail, messages)]),
    off(input),
    course(input),
    foot(input),
  ])
}

/** The page that links to an incident lead to; it stays as long as the incident is kept. */
export function incidentPage(input: StatusPageInput, incident: RootIncident): Page {
  const title = incidentTitle(incident, input.labels)
  return framed(input, '..', title, [back(input), incidentBody(incident, input)])
}

export function incidentsPage(input: StatusPageInput): Page {
  return framed(input, '..', input.labels.messages.status.incidents, [back(input), allIncidents(input)])
}

const back = (input: StatusPageInput) =>
  `<p><a href="${startOf(input, '..')}">← ${input.labels.messages.status.title}</a></p>`

/** A file server need not know which file a folder opens with. */
const startOf = ({ home }: StatusPageInput, root: string) => `${root}/${home === '' ? '' : 'index.html'}`

/** The frame of all pages of the status. Their links are relative, so that they also work as files in any folder. */
function framed(input: StatusPageInput, root: string, title: string | undefined, parts: string[]): Page {
  const { frame, labels, summary, script, home } = input
  const T = labels.messages.status
  const whole = title === undefined ? T.title : `${title} · ${T.title}`
  return page(frame, whole, [SHAPES, STALE, ...parts].join('\n'), {
    wide: true,
    description: T.description(frame.name),
    icon: home === '' ? stateIcon(summary.state) : undefined,
    style: STATUS_STYLE + SUBSCRIBE_STYLE + (input.details?.mail === undefined ? '' : MAIL_STYLE),
    head: `<link rel="alternate" type="application/atom+xml" title="${T.incidents}" href="${root}/status.atom">`,
    start: startOf(input, root),
    aside: subscribe(input, root),
    connects: true,
    script,
    data: { texts: T.script, language: labels.messages.language, isKept: home !== '' },
  })
}

/** A witness fills this in too. */
const STALE = '<p id="stale" class="note" role="status" hidden></p>'

function subscribe({ labels: { messages }, signUpForNotices }: StatusPageInput, root: string): string {
  const T = messages.status
  const byMail =
    signUpForNotices === undefined
      ? ''
      : `<h2>${messages.notices.words.subscribeHeading}</h2>${signUpForNotices}`
  return `<details class="menu" id="subscribe"><summary>${T.subscribe}</summary><div>${byMail}<p><a href="${root}/status.atom">${T.feedLink}</a> · <a href="${root}/status.ics">${T.calendarLink}</a></p></div></details>`
}

function head({ summary, labels: { messages } }: StatusPageInput, said: string): string {
  const { state, checkedAt, now, incidents } = summary
  const T = messages.status
  const open = incidents.filter((one) => one.endedAt === undefined && one.state === state)
  const since = open.length === 0 ? '' : T.since(Math.max(...open.map(({ lengthMs }) => lengthMs)))
  const age =
    checkedAt === undefined ? '' : `<small>${since}${T.checked(ago(messages, checkedAt, now))}</small>`
  return `<div class="verdict ${state}">${sign(state)}<div><h1>${escapeHtml(said)} ${age}</h1></div></div>`
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

/** Visitors find out which features are missing; operators see what is not configured, and what that means. */
function off({ off: missed, notConfigured, details, labels }: StatusPageInput): string {
  const T = labels.messages.status
  if ((details === undefined ? missed : notConfigured).length === 0) return ''
  if (details === undefined)
    return `<details class="fold" id="off"><summary>${T.off(missed.length)}</summary><ul class="list">${missed.map((text) => `<li>${sign('skipped')}<p>${escapeHtml(text)}</p></li>`).join('')}</ul></details>`
  const rows = notConfigured.map(({ name, means }) => {
    const sentence = `${means.slice(0, 1).toUpperCase()}${means.slice(1)}.`
    return `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(sentence)}</dd></div>`
  })
  return `<h2>${T.notConfigured}</h2>
<p>${T.notConfiguredLead}</p>
<dl class="off">${rows.join('')}</dl>`
}

function course({ invitation, signUp = '', home, labels }: StatusPageInput): string {
  return invitation === undefined
    ? ''
    : `<h2>${labels.messages.course.heading}</h2>\n<p>${invitation.replaceAll('href="/', `href="${home}/`)}</p>\n${signUp}`
}

function foot({ recorded, detailsLink, details, home, labels }: StatusPageInput): string {
  const { status: T, insights } = labels.messages
  const links = [
    '<a href="status.json">JSON</a>',
    `<a href="badge.svg">${T.badgeLink}</a>`,
    `<a href="${home}/api/health">${T.healthLink}</a>`,
    `<a href="${home}/insights">${insights.title}</a>`,
    detailsLink === undefined || details !== undefined ? '' : `<a href="${detailsLink}">${T.detailsLink}</a>`,
  ]
  return `<footer><p>${recorded === 'none' ? T.footNothing : T.footRecorded}</p>${links.filter(Boolean).join(' ')}</footer>`
}
