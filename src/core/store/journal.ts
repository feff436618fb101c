import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import type { AuditEntry } from '../audit.ts'
import { isRecord, parsedJson } from '../is-record.ts'
import type { Suppression } from '../mail/feedback/event.ts'
import { readWhole } from '../regular-file.ts'
import { counted } from '../sentences.ts'
import { refusal, type StoreMaintenanceError } from './errors.ts'

interface ErasedRows {
  readonly subscription: string | undefined
  /** Enrolments in further courses; missing where a build that knew only one course wrote it. */
  readonly others?: readonly string[]
  readonly invites: readonly string[]
  readonly logins: readonly string[]
}

/**
 * A change that must survive a restore, which a backup from before it does not have: a line of JSON in the journal, with
 * random ids and keyed hashes. Only suppressions name an address, as the backup may not know it; an erasure removes them.
 */
export type JournalEntry = { readonly at: number } & (
  | {
      readonly what: 'unsubscribed' | 'undone'
      readonly id: string
      readonly enrolment: number
      /** Keeps the person out of the course where the enrolment is not known; missing where an older build wrote it. */
      readonly hash?: string | undefined
    }
  | { readonly what: 'erased'; readonly hash: string; readonly rows: ErasedRows }
  | { readonly what: 'suppressed'; readonly identity: string; readonly suppression: Suppression }
  | { readonly what: 'released'; readonly identity: string }
  | { readonly what: 'paused'; readonly name: string; readonly reason: string }
  | { readonly what: 'resumed'; readonly name: string }
  | { readonly what: 'audited'; readonly entry: AuditEntry }
  /** A store that this journal follows; its backups carry the same id. `number`: of an export. */
  | { readonly what: 'anchor'; readonly id: string; readonly number?: number | undefined }
  /** A whole line that is no entry: damaged, or of a newer build. */
  | { readonly what: 'unread'; readonly line: string }
)

/** How a restore of either store learns of what happened since. */
export interface SinceOptions {
  readonly now: number
  /** A journal of the replaced store, from beside it or as `db journal` wrote it. */
  readonly journal?: string | undefined
  /** Restore although nobody knows who left since. */
  readonly withoutJournal?: boolean | undefined
  readonly audit?: AuditEntry | undefined
}

/** UTC milliseconds that a date can have. */
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && !Number.isNaN(new Date(value).getTime())

/** An example of each kind of entry, to which one has to be like: a file from elsewhere may hold anything. */
const LIKE: Readonly<Partial<Record<JournalEntry['what'], object>>> = {
  unsubscribed: { id: '', enrolment: 0, 'hash?': '' },
  undone: { id: '', enrolment: 0 },
  erased: { hash: '', rows: { 'subscription?': '', 'others?': [''], invites: [''], logins: [''] } },
  suppressed: { identity: '', suppression: { cause: '', at: 0, source: '', reason: '' } },
  released: { identity: '' },
  paused: { name: '', reason: '' },
  resumed: { name: '' },
  audited: { entry: { at: 0, id: '', action: '', who: '', place: '' } },
  anchor: { id: '', 'number?': 0 },
}

function isLike(value: unknown, example: unknown): boolean {
  if (Array.isArray(example)) return Array.isArray(value) && value.every((one) => isLike(one, example[0]))
  if (!isRecord(example))
    return typeof value === typeof example && (typeof value !== 'number' || isTime(value))
  return (
    isRecord(value) &&
    Object.entries(example).every(([name, one]) => {
      const found = value[name.replace('?', '')]
      return (found === undefined && name.endsWith('?')) || isLike(found, one)
    })
  )
}

/** The names in `meta` of the id that ties a store and its backups to their journal, with when it last said so, and of lines that it lacks. */
export const ANCHOR = 'journal_anchor'
export const ANCHORED_AT = 'journal_anchored_at'
export const OWED = 'journal_owed'

/** `/data/platform.sqlite` → `/data/platform-journal.jsonl` */
export function journalFile(storeFile: string): string {
  const { dir, name } = path.parse(storeFile)
  return path.join(dir, `${name}-journal.jsonl`)
}

/** Each line starts with a line end too, so that a line torn by a power cut does not spoil the next one. */
export const linesOf = (entries: readonly JournalEntry[]): string =>
  entries.map((entry) => `\n${'line' in entry ? entry.line : JSON.stringify(entry)}\n`).join('')

/** Every entry in order; a torn line is left out. */
export const entriesOf = (text: string): readonly JournalEntry[] =>
  text
    .split('\n')
    .flatMap((line) => entryOf(line) ?? (line.endsWith('}') ? { what: 'unread', at: 0, line } : []))

export const readJournal = (file: string): readonly JournalEntry[] | undefined =>
  statSync(file, { throwIfNoEntry: false })?.isFile() ? entriesOf(readWhole(file)) : undefined

export function entryOf(line: string): JournalEntry | undefined {
  const entry = line && parsedJson(line)
  if (!isLike(entry, { what: '', at: 0 })) return undefined
  // Like an entry in what all of them have.
  const known = entry as JournalEntry
  return Object.hasOwn(LIKE, known.what) && isLike(known, LIKE[known.what]) ? known : undefined
}

/** Whether a journal has every change since a backup; of one made by a build without anchors, any is believed. */
export const covers = (entries: Entries | undefined, anchor: string | undefined, since = 0): boolean =>
  entries !== undefined &&
  (anchor === undefined || entries.some((entry) => isAnchor(entry, anchor) && entry.at >= since))

const isAnchor = (entry: JournalEntry, id: string | undefined) => entry.what === 'anchor' && entry.id === id

function subjectOf(entry: JournalEntry): string {
  if ('identity' in entry) return entry.identity
  if ('enrolment' in entry) return `${entry.id} ${entry.enrolment}`
  if ('entry' in entry) return entry.entry.id
  if ('line' in entry) return entry.line
  return 'hash' in entry ? entry.hash : 'name' in entry ? entry.name : entry.id
}

type Entries = readonly JournalEntry[]
/** Those `rows` that a journal, which may be an older copy, does not have: nothing in it about their subject is as new. */
export function laterThan(journal: Entries, rows: Entries): Entries {
  const last = new Map(journal.map((entry) => [subjectOf(entry), entry.at]))
  return rows.filter((row) => row.at > (last.get(subjectOf(row)) ?? Number.NEGATIVE_INFINITY))
}

/** A pipe is read as a file is. */
export const readNamedJournal = (file: string | undefined): readonly JournalEntry[] | undefined =>
  file === undefined ? undefined : entriesOf(readFileSync(file, 'utf8'))

/** Refuses a journal with lines that nobody can do again, where the backup does not have what they say. */
export function assertRead(entries: Entries, anchor: string | undefined, state: string): void {
  const start = entries.findIndex((entry) => isAnchor(entry, anchor))
  const unread = entries.filter(({ what }, index) => what === 'unread' && index > start).length
  if (unread === 0) return
  const why = `${counted(unread, 'line')} of the journal cannot be read`
  throw uncovered(state, why, 'Name a whole copy of it with --journal, or use the build that wrote it')
}

/** No journal tells what happened since `state`. */
export const uncovered = (state: string, why: string, fix: string): StoreMaintenanceError =>
  refusal`${state}, and ${why}: people who unsubscribed, bounced or were erased since then would be mailed again. ${fix}, or accept that with --without-journal; nothing was changed.`
