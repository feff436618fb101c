import { escapeHtml } from '../../../core/mail/render.ts'
import type { RootIncident } from '../../../core/status/history.ts'
import type { Summary } from '../../../core/status/summary.ts'
import type { Labels } from '../../../core/status/words.ts'
import { incidentId, incidentName } from './page.ts'

const ENTRIES = 50

/** The incidents as an Atom feed (RFC 4287), newest first; an entry keeps its id and is updated when its incident ends. */
export function incidentFeed({
  summary,
  labels,
  name,
  origin,
}: {
  readonly summary: Summary
  readonly labels: Labels
  /** The platform's. */
  readonly name: string
  /** Where visitors reach the status page, without a trailing slash. */
  readonly origin: string
}): string {
  const T = labels.messages.status
  const shown = summary.incidents.slice(0, ENTRIES)
  const changed = (one: RootIncident) => one.endedAt ?? one.beganAt
  const updated = Math.max(summary.since ?? summary.now, ...shown.map(changed))
  const entries = shown.map((one) => {
    const { what, felt } = incidentName(one, labels)
    const title =
      one.endedAt === undefined
        ? T.goesOn(what, one.state, minute(one.beganAt))
        : T.endedAfter(what, one.state, one.lengthMs)
    const text =
      one.endedAt === undefined
        ? T.beganGoesOn(minute(one.beganAt))
        : T.beganEnded(minute(one.beganAt), minute(one.endedAt))
    return `<entry>
<id>${escapeHtml(`${origin}/#${incidentId(one)}`)}</id>
<title>${escapeHtml(title + felt)}</title>
<published>${iso(one.beganAt)}</published>
<updated>${iso(changed(one))}</updated>
<link href="${escapeHtml(`${origin}/#${incidentId(one)}`)}"/>
<content type="text">${escapeHtml(text)}</content>
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
