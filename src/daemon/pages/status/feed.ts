import { type Announcement, type StatusUpdate, saidIn } from '../../../core/incidents/incident.ts'
import { timesIn } from '../../../core/messages/words.ts'
import type { RootIncident } from '../../../core/status/history.ts'
import type { Summary } from '../../../core/status/summary.ts'
import { headline, incidentKey, type Labels } from '../../../core/status/words.ts'
import { escapeXml } from '../../../core/xml.ts'
import { iso } from './format.ts'
import { incidentName, incidentTitle } from './incidents.ts'

const ENTRIES = 50

/** Incidents and announcements as an Atom feed (RFC 4287), newest first; an entry keeps its id and is updated with its timeline. */
export function incidentFeed(
  { now, since = now, announcements, incidents }: Summary,
  labels: Labels,
  name: string,
  /** Where visitors reach the status page, without a trailing slash. */
  origin: string,
): string {
  const T = labels.messages.status
  const { moment } = timesIn(labels.messages.language)
  const said = (updates: readonly StatusUpdate[] = []) =>
    updates.map(({ at, state, text }) => `${T.updateStates[state ?? 'update']}, ${moment(at)}: ${text}`)
  const newest = (from: number, updates: readonly StatusUpdate[] = []) =>
    Math.max(from, ...updates.map(({ at }) => at))
  const ofIncident = (one: RootIncident) => {
    const { what, felt } = incidentName(one, labels)
    const { beganAt, endedAt, state, updates } = one
    const key = incidentKey(one)
    const title = endedAt === undefined ? T.goesOn(what, state, moment(beganAt)) : incidentTitle(one, labels)
    const when =
      endedAt === undefined ? T.beganGoesOn(moment(beganAt)) : T.beganEnded(moment(beganAt), moment(endedAt))
    return {
      id: `${origin}/#incident-${key}`,
      title,
      link: `${origin}/incidents/${key}.html`,
      began: beganAt,
      changed: newest(endedAt ?? beganAt, updates),
      text: [when, ...(felt.length === 0 ? [] : [T.feltBy(felt)]), ...said(updates)],
    }
  }
  const ofAnnouncement = (announcement: Announcement) => {
    const { id, from, updates } = announcement
    const text = saidIn(announcement, labels.messages.language)
    const link = `${origin}/#announcement-${id}`
    const title = labels.messages.notices.announcedTitle(name, headline(text))
    const changed = newest(from, updates)
    return { id: link, title, link, began: from, changed, text: [text, ...said(updates)] }
  }
  const all = [...announcements.map(ofAnnouncement), ...incidents.slice(0, ENTRIES).map(ofIncident)]
  const updated = Math.max(since, ...all.map(({ changed }) => Math.min(changed, now)))
  const entries = all.map(
    ({ id, title, link, began, changed, text }) => `<entry>
<id>${escapeXml(id)}</id>
<title>${escapeXml(title)}</title>
<published>${iso(began)}</published>
<updated>${iso(changed)}</updated>
<link href="${escapeXml(link)}"/>
<content type="text">${escapeXml(text.join('\n'))}</content>
</entry>`,
  )
  return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>${escapeXml(`${origin}/status.atom`)}</id>
<title>${escapeXml(T.feedTitle(name))}</title>
<author><name>${escapeXml(name)}</name></author>
<updated>${iso(updated)}</updated>
<link rel="self" href="${escapeXml(`${origin}/status.atom`)}"/>
<link href="${escapeXml(`${origin}/`)}"/>
${entries.join('\n')}
</feed>
`
}

/** What is announced, as a calendar (RFC 5545) that can be subscribed to; an event keeps its id. */
export function announcementCalendar(
  { announcements, now }: Summary,
  { messages }: Labels,
  name: string,
  origin: string,
): string {
  const stamp = (ms: number) => `${iso(ms).slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const text = (value: string) =>
    value
      .replaceAll(/[\\,;]/g, '\\$&')
      .replaceAll(/\r?\n/g, '\\n')
      .replaceAll(/\p{Cc}/gu, '')
  const events = announcements
    .map((one) => ({ ...one, said: saidIn(one, messages.language) }))
    .flatMap(({ id, said, from, until, updates = [] }) => [
      'BEGIN:VEVENT',
      `UID:announcement-${id}@${new URL(origin).hostname}`,
      `DTSTAMP:${stamp(Math.max(Math.min(from, now), ...updates.map(({ at }) => at)))}`,
      `DTSTART:${stamp(from)}`,
      ...(until === undefined ? [] : [`DTEND:${stamp(until)}`]),
      `SUMMARY:${text(`${name}: ${headline(said)}`)}`,
      `DESCRIPTION:${text([said, ...updates.map((one) => one.text)].join('\n\n'))}`,
      `URL:${origin}/#announcement-${id}`,
      'END:VEVENT',
    ])
  const head = ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//platformctl//status//EN']
  const title = `X-WR-CALNAME:${text(messages.status.calendarTitle(name))}`
  return [...head, title, ...events, 'END:VCALENDAR'].map((line) => `${folded(line)}\r\n`).join('')
}

/** Lines of at most 75 bytes, broken between characters. */
function folded(line: string): string {
  let bytes = 0
  let text = ''
  for (const character of line) {
    const size = Buffer.byteLength(character)
    if (bytes + size > 75) {
      text += '\r\n '
      bytes = 1
    }
    text += character
    bytes += size
  }
  return text
}
