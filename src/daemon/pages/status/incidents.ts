import { DAY_MS } from '../../../core/durations.ts'
import { announcementKind, type StatusUpdate, saidIn } from '../../../core/incidents/incident.ts'
import { escapeHtml } from '../../../core/mail/template.ts'
import type { Messages } from '../../../core/messages/en.ts'
import { DAYS_KEPT, type RootIncident } from '../../../core/status/history.ts'
import { incidentKey, type Labels } from '../../../core/status/words.ts'
import { sign } from './bars.ts'
import { moment, span, written } from './format.ts'
import type { StatusView } from './services.ts'

const CARDS_SHOWN = 5
const CLOSED_SHOWN = 12
/** The page of all incidents stays small enough to open anywhere. */
const MOST_LISTED = 400
const UPDATES_SHOWN = 5

/** Name of an incident and of others affected by it; plain text. */
export function incidentName({ service, probe, feltBy }: RootIncident, labels: Labels) {
  // Of a service, other services see that it fails; of a probe, they feel it.
  const isObserver = (name: string) => labels.isService(probe) && labels.isService(name)
  const observers = [service, ...feltBy.filter(isObserver)].map(labels.service)
  return {
    what: labels.isService(probe)
      ? labels.messages.status.seenFromClause(labels.service(probe), observers)
      : `${labels.probe(probe)} (${labels.service(service)})`,
    felt: feltBy.filter((name) => !isObserver(name)).map(labels.probe),
  }
}

/** `Mail (Web) was failing for 40 minutes`; plain text. */
export function incidentTitle(incident: RootIncident, labels: Labels): string {
  const { state, lengthMs, endedAt } = incident
  const T = labels.messages.status
  const { what } = incidentName(incident, labels)
  return `${what} ${endedAt === undefined ? T.hasBeen(state, lengthMs) : T.was(state, lengthMs)}`
}

function facts(incident: RootIncident, { labels, details }: StatusView): string {
  const { beganAt, endedAt, reason } = incident
  const { messages } = labels
  const T = messages.status
  const { felt } = incidentName(incident, labels)
  const when =
    endedAt === undefined ? T.sinceMoment(moment(messages, beganAt)) : span(messages, beganAt, endedAt)
  const parts = [
    when,
    ...(felt.length === 0 ? [] : [escapeHtml(T.feltBy(felt))]),
    ...(details === undefined || reason === undefined ? [] : [escapeHtml(reason)]),
  ]
  return `<p class="quiet">${parts.join(' · ')}</p>`
}

interface Step {
  readonly at: number
  readonly name: string
  readonly text?: string
}

function stepsOf(updates: readonly StatusUpdate[] = [], { status }: Messages): readonly Step[] {
  return updates.flatMap(({ at, state, text }) =>
    state === 'postmortem' ? [] : [{ at, name: status.updateStates[state ?? 'update'], text }],
  )
}

/** The newest first. */
function timeline(steps: readonly Step[], messages: Messages): string {
  if (steps.length === 0) return ''
  const one = ({ at, name, text }: Step) =>
    `<li><small><strong>${name}</strong> · ${moment(messages, at)}</small>${text === undefined ? '' : written(text)}</li>`
  const sorted = steps.toSorted((a, b) => b.at - a.at)
  return `<ol class="updates">${sorted.map(one).join('')}</ol>`
}

const latest = (updates: readonly StatusUpdate[] | undefined, messages: Messages) =>
  timeline(stepsOf(updates, messages).slice(-UPDATES_SHOWN), messages)

/** The incidents that go on: the newest with what operators say about them, many more in a line each. */
export function ongoing(view: StatusView): string[] {
  const { messages } = view.labels
  const open = view.summary.incidents.filter(({ endedAt }) => endedAt === undefined)
  const cards = open.slice(0, CARDS_SHOWN).map((incident) => {
    const key = escapeHtml(incidentKey(incident))
    return `<article class="incident ${incident.state}" id="incident-${key}"><h2>${sign(incident.state)} <a href="incidents/${key}.html">${escapeHtml(incidentTitle(incident, view.labels))}</a></h2>
${facts(incident, view)}${latest(incident.updates, messages)}</article>`
  })
  const rest = open.slice(CARDS_SHOWN, CARDS_SHOWN + CLOSED_SHOWN)
  return rest.length === 0 ? cards : [...cards, list(rest, view, 'incidents/')]
}

/** What operators announced: what goes on first, then what is planned, then what is over. */
export function announcements({ summary, labels: { messages } }: StatusView): string[] {
  const T = messages.status
  return (['current', 'planned', 'resolved'] as const).flatMap((kind) =>
    summary.announcements
      .filter((one) => announcementKind(one, summary.now) === kind)
      .map((one) => {
        const { id, from, until, updates } = one
        const when =
          until !== undefined
            ? span(messages, from, until)
            : kind === 'planned'
              ? T.fromMoment(moment(messages, from))
              : T.sinceMoment(moment(messages, from))
        const calendar = kind === 'planned' ? ` · <a href="status.ics">${T.calendar}</a>` : ''
        return `<article class="announcement ${kind}" id="announcement-${escapeHtml(id)}"><p class="quiet"><strong>${T.announcements[kind]}</strong> · ${when}${calendar}</p>${written(saidIn(one, messages.language))}${latest(updates, messages)}</article>`
      }),
  )
}

export function closed(view: StatusView): string {
  const T = view.labels.messages.status
  const over = view.summary.incidents.filter(({ endedAt }) => endedAt !== undefined)
  const shown = over.slice(0, CLOSED_SHOWN)
  // Those that go on are above: that there were none would not be true.
  if (over.length === 0 && view.summary.incidents.length > 0) return ''
  return `<h2>${T.incidents}</h2>
${shown.length === 0 ? `<p>${T.noIncidents(sinceWhen(view))}</p>` : list(shown, view, 'incidents/')}
${over.length > shown.length ? `<p><a href="incidents/index.html">${T.allIncidents(view.summary.incidents.length)}</a></p>` : ''}`
}

function list(incidents: readonly RootIncident[], view: StatusView, folder: string): string {
  const one = (incident: RootIncident) => {
    const key = escapeHtml(incidentKey(incident))
    return `<li id="incident-${key}">${sign(incident.state)}<div><a href="${folder}${key}.html">${escapeHtml(incidentTitle(incident, view.labels))}</a>${facts(incident, view)}</div></li>`
  }
  return `<ul class="list">${incidents.map(one).join('\n')}</ul>`
}

function sinceWhen({ summary: { since, now }, labels: { messages } }: StatusView): string {
  return since === undefined || now - since > DAYS_KEPT * DAY_MS
    ? messages.status.inLastDays(DAYS_KEPT)
    : messages.status.sinceRecord(moment(messages, since))
}

export function allIncidents(view: StatusView): string {
  const T = view.labels.messages.status
  const { incidents } = view.summary
  const more = incidents.length - MOST_LISTED
  return `<h1>${T.incidents}</h1>
${incidents.length === 0 ? `<p>${T.noIncidents(sinceWhen(view))}</p>` : list(incidents.slice(0, MOST_LISTED), view, '')}
${more > 0 ? `<p class="quiet">${T.moreIncidents(more)}</p>` : ''}`
}

/** The body of an incident's own page: who felt it, all that was said about it, and what came of it. */
export function incidentBody(incident: RootIncident, view: StatusView): string {
  const { messages } = view.labels
  const T = messages.status
  const { state, beganAt, endedAt, updates = [] } = incident
  const steps = [
    { at: beganAt, name: T.began },
    ...stepsOf(updates, messages),
    ...(endedAt === undefined ? [] : [{ at: endedAt, name: T.ended }]),
  ]
  const postmortem = updates.findLast((one) => one.state === 'postmortem')
  return `<div class="verdict ${endedAt === undefined ? state : 'ok'}">${sign(endedAt === undefined ? state : 'ok')}<div><h1>${escapeHtml(incidentTitle(incident, view.labels))}</h1>${facts(incident, view)}</div></div>
${postmortem === undefined ? '' : `<section class="postmortem" aria-labelledby="postmortem"><h2 id="postmortem">${T.updateStates.postmortem}</h2>${written(postmortem.text)}<p class="quiet">${moment(messages, postmortem.at)}</p></section>`}
<h2>${T.timeline}</h2>
${timeline(steps, messages)}`
}
