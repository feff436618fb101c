import type { StatusUpdate } from '../../../core/incidents/incident.ts'
import { escapeHtml } from '../../../core/mail/render.ts'
import type { RootIncident } from '../../../core/status/history.ts'
import type { Summary } from '../../../core/status/summary.ts'
import type { Labels } from '../../../core/status/words.ts'
import { incidentId, incidentName } from './page.ts'

const ENTRIES = 50

interface Entry {
  /** The same as on the page. */
  readonly anchor: string
  readonly title: string
  readonly began: number
  readonly changed: number
  readonly text: readonly string[]
}

/** Incidents and announcements as an Atom feed (RFC 4287), newest first; an entry keeps its id and is updated with its timeline. */
export function incidentFeed(
  summary: Summary,
  labels: Labels,
  /** The platform's. */
  name: string,
  /** Where visitors reach the status page, without a trailing slash. */
  origin: string,
): string {
  const T = labels.messages.status
  const timeline = ({ updates = [] }: { readonly updates?: readonly StatusUpdate[] }) =>
    updates.map(({ at, state, text }) => `${minute(at)}, ${T.updateStates[state ?? 'update']}: ${text}`)
  const shown = summary.incidents.slice(0, ENTRIES)
  const changed = (one: RootIncident) =>
    Math.max(one.endedAt ?? one.beganAt, ...(one.updates ?? []).map(({ at }) => at))
  const incidents = shown.map((one): Entry => {
    const { what, felt } = incidentName(one, labels)
    const title =
      one.endedAt === undefined
        ? T.goesOn(what, one.state, minute(one.beganAt))
        : T.endedAfter(what, one.state, one.lengthMs)
    const text =
      one.endedAt === undefined
        ? T.beganGoesOn(minute(one.beganAt))
        : T.beganEnded(minute(one.beganAt), minute(one.endedAt))
    return {
      anchor: incidentId(one),
      title: title + felt,
      began: one.beganAt,
      changed: changed(one),
      text: [text, ...timeline(one)],
    }
  })
  const announced = summary.announcements.map((one): Entry => {
    const lines = timeline(one)
    return {
      anchor: `announcement-${one.id}`,
      title: labels.messages.notices.announcedTitle(name),
      began: one.from,
      changed: Math.max(one.from, ...(one.updates ?? []).map(({ at }) => at)),
      text: [one.text, ...lines],
    }
  })
  const all = [...announced, ...incidents]
  const updated = Math.max(
    summary.since ?? summary.now,
    ...all.map((one) => Math.min(one.changed, summary.now)),
  )
  const entries = all.map(({ anchor, title, began, changed, text }) => {
    const link = escapeHtml(`${origin}/#${anchor}`)
    return `<entry>
<id>${link}</id>
<title>${escapeHtml(title)}</title>
<published>${iso(began)}</published>
<updated>${iso(changed)}</updated>
<link href="${link}"/>
<content type="text">${escapeHtml(text.join('\n'))}</content>
</entry>`
  })
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${escapeHtml(`${origin}/status.atom`)}</id>
<title>${escapeHtml(T.feedTitle(name))}</title>
<author><name>${escapeHtml(name)}</name></author>
<updated>${iso(updated)}</updated>
<link rel="self" href="${escapeHtml(`${origin}/status.atom`)}"/>
<link href="${escapeHtml(`${origin}/`)}"/>
${entries.join('\n')}
</feed>
`
}

const iso = (ms: number) => new Date(ms).toISOString()
const minute = (ms: number) => `${iso(ms).slice(0, 16).replace('T', ' ')} UTC`
