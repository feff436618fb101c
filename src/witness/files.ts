import path from 'node:path'
import { writeWhole } from '../core/daemon-record.ts'
import { MINUTE_MS } from '../core/durations.ts'
import type { Clock } from '../core/host.ts'
import { awsRegion, awsSigned, sha256 } from '../core/network/aws-signature.ts'
import { CAUSES } from '../core/network/causes.ts'
import { get, type Network } from '../core/network/get.ts'
import type { Secret } from '../core/secret.ts'
import { makeFolder } from '../core/store/sqlite/files.ts'
import { trimEnd } from '../core/trim-end.ts'
import type { StatusContent } from '../core/witness.ts'

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

const fileNames = ({ calendar, incidents }: StatusContent): readonly string[] => [
  ...Object.keys(incidents?.pages ?? {}),
  ...(calendar === undefined ? [] : ['status.ics']),
  // The page with the links to the others is the last to be written.
  ...ALWAYS,
]
export const ALWAYS: readonly string[] = ['status.json', 'status.atom', 'badge.svg', 'index.html']

/** What is at a path, if anything is. Pages say how old they are once they are not current. */
export function fileText(kept: KeptStatus, name: string, now: number): string | undefined {
  const { json, atom, calendar, badge, badgeUnreachable, html, incidents } = kept.snapshot
  if (name === 'status.json') return json
  if (name === 'status.atom') return atom
  if (name === 'status.ics') return calendar
  if (name === 'badge.svg') return kept.isOutage ? badgeUnreachable : badge
  if (name === 'index.html') return withAge(html, kept, now)
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

export interface BucketKey {
  readonly id: string
  readonly secret: Secret
  readonly region: string | undefined
}

const ANSWER_MS = 20_000

/** Keeps the status as files in a folder, or under the address of a bucket. Writes those that have changed, and deletes none. */
export function publisher(clock: Clock, target: string, key?: BucketKey, network?: Network) {
  const kept = new Map<string, string>()
  const keep = key ? intoBucket(clock, target, key, network) : intoFolder(target)
  return async (status: KeptStatus) => {
    for (const name of fileNames(status.snapshot)) {
      const text = fileText(status, name, clock.now()) ?? ''
      const sum = sha256(text)
      if (kept.get(name) === sum) continue
      await keep(name, text)
      kept.set(name, sum)
    }
  }
}

function intoFolder(folder: string) {
  return async (name: string, text: string) => {
    const file = path.join(folder, name)
    makeFolder(path.dirname(file), 0o777)
    writeWhole(file, text, 0o666)
  }
}

/** Of the bucket in the address, as in `https://s3.eu-central-1.amazonaws.com/BUCKET`. */
function intoBucket(clock: Clock, target: string, { id, secret, region }: BucketKey, network?: Network) {
  const at = region ?? awsRegion(target) ?? 'us-east-1'
  const signing = { id, secret: secret.reveal(), region: at, service: 's3' }
  return async (name: string, text: string) => {
    const url = new URL(`${trimEnd(target, '/')}/${name}`)
    const headers = { 'x-amz-content-sha256': sha256(text) }
    const request = { method: 'PUT', host: url.host, path: url.pathname, body: text, headers }
    const outcome = await get({
      url,
      put: text,
      headers: {
        'content-type': typeOf(name),
        'content-length': String(Buffer.byteLength(text)),
        'cache-control': 'max-age=30',
        ...awsSigned(request, signing, clock.now()),
      },
      timeoutMs: ANSWER_MS,
      largestBytes: 0,
      wantsBody: () => false,
      monotonic: clock.monotonic,
      network,
    })
    if (!outcome.answered) throw new Error(CAUSES[outcome.cause].meaning)
    if (outcome.status >= 300) throw new Error(`the bucket answers with ${outcome.status} for ${name}`)
  }
}
