import { MINUTE_MS } from '../core/durations.ts'
import type { StatusContent } from '../core/witness.ts'

/** A status that is kept here in place of the platform. */
export interface KeptStatus {
  readonly snapshot: StatusContent
  /** When the platform last said that it is current; UTC milliseconds. */
  readonly confirmedAt: number
  /** The majority cannot reach the platform. */
  readonly isOutage: boolean
}

/** After that without a word from the platform, a page says how old it is. */
const STALE_MS = 3 * MINUTE_MS
const PLACE = '<p id="stale" class="note" role="status" hidden></p>'

/** The paths that visitors can ask for. */
export const fileNames = ({ calendar, incidents }: StatusContent): readonly string[] => [
  ...Object.keys(incidents?.pages ?? {}),
  ...(calendar === undefined ? [] : ['status.ics']),
  // The page with the links to the others is the last to be written.
  ...ALWAYS,
]
export const ALWAYS: readonly string[] = ['status.json', 'status.atom', 'badge.svg', 'index.html']

/** What is at a path, if anything is. Pages say how old they are once they are not current. */
export function fileText(kept: KeptStatus, name: string, now: number): string | undefined {
  const { json, atom, calendar, badge, badgeUnreachable, html, incidents } = kept.snapshot
  switch (name) {
    case 'status.json':
      return json
    case 'status.atom':
      return atom
    case 'status.ics':
      return calendar
    case 'badge.svg':
      return kept.isOutage ? badgeUnreachable : badge
    case 'index.html':
      return withAge(html, kept, now)
  }
  if (incidents === undefined || !Object.hasOwn(incidents.pages, name)) return undefined
  const { title = '', main = '' } = incidents.pages[name] ?? {}
  const page = incidents.shell.replace('{title}', () => title).replace('{main}', () => main)
  return withAge(page, kept, now)
}

function withAge(page: string, { snapshot, confirmedAt, isOutage }: KeptStatus, now: number): string {
  const age = now - confirmedAt
  if (!isOutage && age < STALE_MS) return page
  const at = new Date(confirmedAt).toISOString()
  const said = snapshot.kept
    .replace('{minutes}', String(Math.max(0, Math.round(age / MINUTE_MS))))
    .replace('{time}', `<time datetime="${at}">${at.slice(0, 16).replace('T', ' ')} UTC</time>`)
  return page.replace(PLACE, () => `<p id="stale" class="note" role="status"><strong>${said}</strong></p>`)
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.json': 'application/json',
  '.atom': 'application/atom+xml',
  '.ics': 'text/calendar',
  '.svg': 'image/svg+xml',
}

export const typeOf = (file: string): string =>
  `${TYPES[/\.\w+$/.exec(file)?.[0] ?? ''] ?? 'text/plain'}; charset=utf-8`
