import { escapeHtml } from '../../../core/mail/render.ts'
import { incidentKey } from '../../../core/status/words.ts'
import type { StatusContent } from '../../../core/witness.ts'
import { statusJson } from './answer.ts'
import { badge } from './badge.ts'
import { announcementCalendar, incidentFeed } from './feed.ts'
import { incidentPage, incidentsPage, type StatusPageInput, statusPage } from './page.ts'

/** The newest incidents have pages of their own on another host. */
const PAGES_KEPT = 50

/** All that visitors can see of the status, for another host to serve. Forms work on the platform alone. */
export function statusForVisitors(shown: StatusPageInput): StatusContent {
  const { labels, summary, frame } = shown
  const { messages } = labels
  const { name, siteUrl } = frame
  const input = { ...shown, home: siteUrl, signUp: undefined, signUpForNotices: undefined }
  const list = incidentsPage(input).html
  const pages = summary.incidents
    .slice(0, PAGES_KEPT)
    .map((one) => [`incidents/${incidentKey(one)}.html`, partsOf(incidentPage(input, one).html)] as const)
  const { title, main } = partsOf(list)
  return {
    html: statusPage(input).html,
    kept: escapeHtml(messages.status.kept),
    json: JSON.stringify(statusJson(input)),
    atom: incidentFeed(summary, labels, name, siteUrl),
    calendar: announcementCalendar(summary, labels, name, siteUrl),
    badge: badge(messages, undefined, summary.state),
    badgeUnreachable: badge(messages, undefined, 'failing'),
    incidents: {
      shell: list.replace(title, () => '{title}').replace(main, () => '{main}'),
      pages: { 'incidents/index.html': { title, main }, ...Object.fromEntries(pages) },
    },
  }
}

/** What differs between pages of one shell. */
function partsOf(html: string) {
  const between = (start: string, end: string) =>
    html.slice(html.indexOf(start), html.indexOf(end) + end.length)
  return { title: between('<title>', '</title>'), main: between('<main', '</main>') }
}
