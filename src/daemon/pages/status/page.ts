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

/** Style of the status pages alone; the colors of the states are the frame's. */
const STATUS_STYLE = `
:root { --none: #b9b6ad; --wash: #f7f6f3; }
@media (prefers-color-scheme: dark) { :root { --none: #5a606e; --wash: #232833; } }
main.wide { padding-top: 1.5rem; overflow-wrap: anywhere; }
.sign { width: 1.1em; height: 1.1em; vertical-align: -.18em; flex: none; }
.shapes { position: absolute; width: 0; height: 0; }
symbol circle { fill: currentColor; }
symbol path { fill: none; stroke: var(--paper); stroke-width: 2; stroke-linecap: round; stroke-linejoin: round; }
.sign.unknown, .sign.skipped, .word.skipped, .word.unknown, small, .why { color: var(--quiet); }
.verdict, .service, .list, .off, .incident, .postmortem { background: var(--paper); border: 1px solid var(--line); border-radius: 14px; }
.verdict { display: flex; gap: 1.1rem; align-items: flex-start; border-inline-start: 6px solid currentColor; padding: 1.5rem 1.6rem 1.35rem; }
.verdict.unknown { color: var(--quiet); }
.verdict > .sign { width: 2.6rem; height: 2.6rem; margin-top: .1rem; }
.verdict div { color: var(--ink); min-width: 0; }
.verdict h1 { font-size: 1.75rem; letter-spacing: -.015em; margin: 0; text-wrap: balance; }
.verdict h1 small { display: block; font-size: 1rem; font-weight: 400; letter-spacing: 0; margin-top: .3rem; }
.verdict p, .list p, .key p, .updates p { margin: 0; }
.note, .announcement { border-inline-start: 3px solid var(--degraded); padding: .1rem 0 .1rem .9rem; margin: 1.25rem 0 0; }
.note + .verdict { margin-top: 1.1rem; }
.announcement { border-color: var(--accent); } .announcement.resolved { border-color: var(--ok); }
.announcement p { margin: 0; } .announcement strong { color: var(--ink); }
.written { white-space: pre-line; }
.incident { border-inline-start: 6px solid currentColor; padding: 1.1rem 1.4rem; margin: 1.1rem 0 0; }
.incident > * { color: var(--ink); } .incident h2 { margin: 0 0 .2rem; } .incident h2 a, .list a { color: inherit; font-weight: 600; } .incident > .quiet { color: var(--quiet); margin: 0; } .incident.failing .sign { color: var(--failing); } .incident.degraded .sign { color: var(--degraded); }
.updates { list-style: none; margin: .6rem 0 0; padding: 0; } .updates li { border-inline-start: 2px solid var(--line); padding: .25rem 0 .25rem .9rem; } .updates strong { color: var(--ink); }
.postmortem { padding: .2rem 1.4rem .8rem; margin: 1.25rem 0 0; } .postmortem h2 { margin-top: 1rem; }
.key { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .25rem 1.5rem; margin: 0 .2rem .6rem; font-size: .85rem; color: var(--quiet); }
.legend { display: flex; flex-wrap: wrap; gap: 0 1.1rem; list-style: none; margin: 0; padding: 0; }
.legend .bars { width: 12px; height: 16px; display: inline-block; vertical-align: -.2em; }
.bars { display: block; width: 100%; height: 26px; fill: none; stroke-dasharray: 3 1; }
.bars path { stroke-width: 24; } .o { stroke: url(#p-o); } .d { stroke: url(#p-d); } .f { stroke: url(#p-f); } .n { stroke: url(#p-n); }
.p-ok { fill: var(--ok); } .p-degraded { fill: var(--degraded); } .p-failing { fill: var(--failing); } .p-none { fill: var(--none); }
.mark { fill: var(--ink); fill-opacity: .16; stroke: var(--ink); stroke-width: 2; stroke-dasharray: none; vector-effect: non-scaling-stroke; }
.filter { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1.4rem; margin: 0 0 .9rem; } .filter[hidden] { display: none; } .filter p { margin: 0; color: var(--quiet); font-size: .9rem; }
.filter input[type=search] { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--quiet); border-radius: 8px; padding: .4rem .7rem; min-height: 44px; width: min(16rem, 60vw); }
.group h3 { margin: 1.4rem 0 .5rem; font-size: 1rem; } .group h3 small { font-weight: 400; }
.service { margin: 0 0 1.1rem; }
.service > header { padding: 1.15rem 1.4rem 1.1rem; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .8rem; margin-bottom: .7rem; min-width: 0; }
.head h3 { margin: 0; font-size: 1.15rem; min-width: 0; }
.head .up { margin-inline-start: auto; font-weight: 600; font-variant-numeric: tabular-nums; }
.word { font-weight: 600; white-space: nowrap; }
.axis { display: flex; justify-content: space-between; gap: 0 .8rem; font-size: .8rem; color: var(--quiet); margin: .3rem 0 0; }
.axis span:nth-child(2) { text-align: center; }
.service table { border-radius: 0 0 13px 13px; background: var(--wash); font-size: .93rem; table-layout: fixed; }
.service th, .service td { padding: .5rem .7rem; vertical-align: middle; }
.service tr > :first-child { padding-inline-start: 1.4rem; } .service tr > :last-child { padding-inline-end: 1.4rem; }
.service thead th { font-size: .78rem; font-weight: 500; color: var(--quiet); padding-top: .55rem; padding-bottom: .35rem; }
.service thead th:first-child { width: 27%; } .service thead th:nth-child(3) { width: 6.5rem; } .service thead th:nth-child(4) { width: 11rem; }
.service tbody th .sign { margin-inline-end: .35rem; }
.service .num { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
.service .days .bars { height: 20px; }
.why { display: block; font-weight: 400; font-size: .85rem; white-space: normal; }
.list { list-style: none; margin: 0 0 1rem; padding: 0; }
.list li { padding: .8rem 1.4rem; border-top: 1px solid var(--line); display: flex; gap: .8rem; } .list li:first-child { border-top: 0; }
.list li > div { min-width: 0; } .list .sign { margin-top: .22rem; }
.fold { margin: 1.5rem 0 0; } .fold summary { cursor: pointer; font-weight: 600; padding: .5rem 0; }
.off { margin: 0; padding: .4rem 1.4rem; }
.off div { display: grid; grid-template-columns: minmax(9rem, 15rem) 1fr; gap: .1rem 1.2rem; padding: .5rem 0; border-top: 1px solid var(--line); } .off div:first-child { border-top: 0; }
.off dt { font-weight: 600; } .off dd { margin: 0; color: var(--quiet); }
.operator { margin: 0 0 1.5rem; padding: .6rem 1rem; border: 2px solid var(--accent); border-radius: 10px; }
footer { margin-top: 2.5rem; padding-top: 1.1rem; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet); display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; }
footer p { margin: 0; flex: 1 1 20rem; }
.times { margin: .9rem 0 0; } .times svg { display: block; flex: 1; min-width: 0; height: 44px; border-bottom: 1px solid var(--line); border-top: 1px dashed var(--line); }
.times path { fill: none; stroke-width: 3; } path.t95 { stroke: var(--none); } path.t50 { stroke: var(--accent); }
.times figcaption { display: flex; flex-wrap: wrap; gap: 0 1.1rem; font-size: .8rem; color: var(--quiet); margin-bottom: .35rem; } .times figcaption span + span::before { content: ''; display: inline-block; width: .8em; height: .8em; margin-inline-end: .4em; background: var(--accent); } .times figcaption .t95::before { background: var(--none); }
.times div { display: flex; gap: .6rem; } .scale { display: flex; flex-direction: column; justify-content: space-between; margin: -.45em 0 -.5em; font-size: .75rem; line-height: 1.2; color: var(--quiet); white-space: nowrap; }
[role=slider] { cursor: crosshair; touch-action: pan-y; } [role=slider]:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
.tip { position: absolute; z-index: 2; padding: .45rem .7rem; border-radius: 8px; border: 1px solid transparent; background: var(--ink); color: var(--paper); font-size: .85rem; line-height: 1.4; pointer-events: none; overflow-wrap: anywhere; }
details.service { margin-bottom: .45rem; } details.service > summary { display: flex; align-items: baseline; gap: .55rem; padding: .7rem 1.4rem; cursor: pointer; } details.service > summary::before { content: '▸' / ''; color: var(--quiet); } details.service[open] > summary::before { content: '▾' / ''; } details.service .head { flex: 1; margin: 0; } details.service > header { padding-top: .2rem; }
.menu { position: relative; font-weight: 400; } .menu > summary { list-style: none; cursor: pointer; font-weight: 600; color: var(--on-accent); background: var(--accent); border-radius: 8px; padding: .45rem 1rem; min-height: 44px; display: flex; align-items: center; }
.menu > summary::-webkit-details-marker { display: none; } .menu > div { position: absolute; z-index: 3; inset-inline-end: 0; top: calc(100% + .5rem); width: min(24rem, calc(100vw - 2.5rem)); background: var(--paper); border: 1px solid var(--quiet); border-radius: 14px; padding: 1rem 1.2rem .2rem; box-shadow: 0 10px 30px rgb(0 0 0 / .25); } .menu h2 { margin: 0; }
@media (max-width: 38rem) {
  main.wide { padding: 1.25rem .8rem 3rem; } .brand { padding: .8rem .8rem 0; }
  .verdict { padding: 1.1rem 1.1rem 1rem; gap: .8rem; } .verdict > .sign { width: 1.9rem; height: 1.9rem; } .verdict h1 { font-size: 1.35rem; }
  .service > header { padding: 1rem 1rem .9rem; } details.service > summary { padding-inline: 1rem; } .list li, .off, .incident, .postmortem { padding-inline: 1rem; }
  .service table, .service tbody { display: block; } .service thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .service tr { display: grid; grid-template-columns: 1fr auto; gap: .3rem .7rem; padding: .7rem 1rem; border-top: 1px solid var(--line); }
  .service tbody tr > * { padding: 0; border: 0; }
  .service tbody th { grid-column: 1; grid-row: 1; } .service .days { grid-column: 1 / -1; grid-row: 2; }
  .service .num { grid-row: 1; } .service .num + .num { grid-row: 3; grid-column: 1 / -1; text-align: start; color: var(--quiet); font-size: .85rem; }
  .service td.num + .num::before { content: 'p50 · p95 · p99  ' / ''; white-space: pre; }
  .axis { flex-wrap: wrap; } .axis span:nth-child(2) { order: 3; flex: 1 0 100%; text-align: start; }
  .off div { grid-template-columns: 1fr; }
}
@media (forced-colors: active) { .bars, .sign, .times path, .times span::before { forced-color-adjust: none; } .menu > summary, button { color: ButtonText; background: ButtonFace; border: 1px solid ButtonBorder; } }
@media print {
  :root { --wash: #fff; --none: #b9b6ad; }
  .service, .incident, .list li, .off { break-inside: avoid; } .bars, .times { print-color-adjust: exact; } footer a, .menu, .filter { display: none; }
}
`
