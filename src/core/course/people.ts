import { parseAddress } from '../address.ts'
import { cellValue, csvLine, readCsv } from '../csv.ts'
import { DAY_MS, instantOf } from '../durations.ts'
import { isRecord, parsedJson } from '../is-record.ts'
import { type CourseDefinition, isLanguage, isTimeZone, NOTICES } from './definition.ts'
import { readSubscription } from './links.ts'
import { isUnderWay, type Subscription } from './subscription.ts'

const FIELDS = [
  ...(['address', 'course', 'state', 'language', 'timeZone', 'sent', 'lessons', 'sentLessons'] as const),
  ...(['lastSentAt', 'nextAt', 'consentAt', 'consentHow', 'subscription'] as const),
]
type Field = (typeof FIELDS)[number]
/** `timeZone` → `time_zone` */
const columnOf = (field: Field) => field.replace(/[A-Z]/g, '_$&').toLowerCase()

/** An enrolment as it is exported. Times are ISO 8601. */
export type ExportedPerson = Readonly<ReturnType<typeof exported>>

/** How people who were enrolled before this was recorded agreed. */
const UNRECORDED = 'confirmed by link, or enrolled by a program'

/** An enrolment for an export. `sentLessons`: the names of the lessons sent, as far as they are known. */
export function exported(one: Subscription, sentLessons: readonly string[]) {
  const { address, course, state, language, timeZone, sentDays, lessons, lastSentAt, dueAt } = one
  const unrecorded = { at: one.confirmedAt, how: one.confirmedAt === undefined ? undefined : UNRECORDED }
  const { at, how } = one.consent ?? unrecorded
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
  const isGoing = isUnderWay(one)
  return {
    address,
    course,
    state: state === 'confirmed' && !isGoing ? ('finished' as const) : state,
    language,
    timeZone,
    sent: sentDays.length,
    lessons,
    sentLessons,
    lastSentAt: time(lastSentAt),
    nextAt: isGoing ? time(dueAt) : undefined,
    consentAt: time(at),
    consentHow: how,
    /** Its id and the number of its enrolment, as links of its mails have them: an import keeps both, so that they work on. */
    subscription: `${one.id}.${one.enrolment}`,
  }
}

export const CSV_HEAD = csvLine(FIELDS.map(columnOf))

export const personLine = (person: ExportedPerson) =>
  csvLine(FIELDS.map((field) => [person[field] ?? ''].flat().join(' ')))

/** A person to import: agreed elsewhere, and had the first `sent` lessons there. */
export type Newcomer = Readonly<Exclude<ReturnType<typeof newcomer>, string>> & {
  /** The line of a CSV file, or the number of an entry of JSON. */
  readonly line: number
  readonly subscription: ReturnType<typeof readSubscription>
}

/** Why somebody is not imported, other than being in the course already. */
export type LeftOut = 'unsubscribed' | 'unconfirmed' | 'suppressed' | 'erased' | 'repeated'

export interface PeopleReading {
  readonly unit: 'line' | 'entry'
  readonly people: readonly Newcomer[]
  readonly leftOut: readonly { readonly line: number; readonly why: LeftOut }[]
  /** No message holds an address. */
  readonly faults: readonly { readonly line: number; readonly message: string }[]
  /** Columns that mean nothing here. */
  readonly ignored: readonly string[]
}

type Fields = Readonly<Record<Field, string>>
type Entry = { readonly line: number } & ({ readonly fields: Fields } | { readonly fault: string })
/** Beyond these a file is not read any further. */
const MOST_FAULTS = 1000

/** Reads an export, or a list in the same form. Every line is checked before anybody is imported. */
export function readPeople(
  text: string,
  { courses, now }: { readonly courses: readonly CourseDefinition[]; readonly now: number },
): PeopleReading {
  const isJson = /^\s*[[{]/.test(text)
  const { entries, ignored, missing } = isJson ? fromJson(text) : fromCsv(text)
  const faults = [...missing]
  const people: Newcomer[] = []
  const leftOut: { readonly line: number; readonly why: LeftOut }[] = []
  const seen = new Set<string>()
  for (const { line, ...entry } of missing.length > 0 ? [] : entries()) {
    if (faults.length === MOST_FAULTS) break
    if ('fault' in entry) {
      faults.push({ line, message: entry.fault })
      continue
    }
    const { fields } = entry
    const { state } = fields
    const link = readSubscription(fields.subscription)
    // Two people cannot have one: the second gets an id of their own.
    const subscription = link && seen.has(link.id) ? undefined : link
    const read = newcomer(fields, courses, now)
    if (state === 'unsubscribed' || state === 'unconfirmed') leftOut.push({ line, why: state })
    else if (typeof read === 'string') faults.push({ line, message: read })
    else if (seen.has(`${read.identity} ${read.course}`)) leftOut.push({ line, why: 'repeated' })
    else {
      seen.add(`${read.identity} ${read.course}`)
      if (link) seen.add(link.id)
      people.push({ ...read, line, subscription })
    }
  }
  return { unit: isJson ? 'entry' : 'line', people, leftOut, faults, ignored }
}

function newcomer(
  { address, course: id, state, language, timeZone, sent: count, sentLessons: names, ...fields }: Fields,
  courses: readonly CourseDefinition[],
  now: number,
) {
  const parsed = parseAddress(address)
  if (!parsed.ok) return parsed.reason
  const course = id === NOTICES ? STATUS : id === '' ? courses[0] : courses.find((one) => one.id === id)
  if (course === undefined)
    return `the course is none of this platform: ${courses.map((one) => one.id).join(', ')}`
  if (!['', 'confirmed', 'finished'].includes(state))
    return 'state is not confirmed, finished, unconfirmed or unsubscribed'
  if (language !== '' && !isLanguage(language)) return 'language is not a language tag, as de or pt-BR'
  if (timeZone !== '' && !isTimeZone(timeZone)) return 'time_zone is not an IANA time zone, as Europe/Berlin'
  const sentLessons = names === '' ? undefined : names.split(/\s+/)
  const sent = count === '' ? (sentLessons?.length ?? 0) : /^\d{1,4}$/.test(count) ? Number(count) : -1
  if (sent < 0) return 'sent is not a number of lessons'
  if (sentLessons !== undefined && sentLessons.length !== sent)
    return `sent is ${sent}, and sent_lessons names ${sentLessons.length}`
  if (new Set(sentLessons).size < (sentLessons?.length ?? 0)) return 'sent_lessons names a lesson twice'
  if (sent > course.lessons.length && course !== STATUS && !sentLessons)
    return `sent is ${sent}, and the course ${course.id} has ${course.lessons.length} lessons`
  const times = [fields.consentAt, fields.lastSentAt, fields.nextAt].map(timeOf)
  const wrong = ['consent_at', 'last_sent_at', 'next_at'].find((_, index) => Number.isNaN(times[index]))
  if (wrong !== undefined) return `${wrong} is not a time, as 2026-03-01 or 2026-03-01T09:30:00Z`
  const [consentAt, lastSentAt, nextAt] = times
  const how = fields.consentHow
  if (consentAt === undefined || how === '')
    return 'proof of consent is missing: consent_at says when this person agreed, and consent_how says how'
  if (consentAt > now + DAY_MS) return 'consent_at is in the future'
  if ((lastSentAt ?? 0) > now + DAY_MS) return 'last_sent_at is in the future'
  if ((nextAt ?? 0) > now + MOST_DAYS_AHEAD * DAY_MS)
    return `next_at is more than ${MOST_DAYS_AHEAD} days away`
  if (how.length > LONGEST_HOW) return `consent_how has more than ${LONGEST_HOW} characters`
  return {
    spelling: parsed.mailbox.address,
    identity: parsed.identity,
    course: course.id,
    /** Through with the course, however many lessons it has here. */
    isFinished: state === 'finished',
    language: language || undefined,
    timeZone: timeZone || undefined,
    sent,
    sentLessons,
    // A date without an hour can lie ahead in UTC although it has begun where the list is from.
    lastSentAt: lastSentAt && Math.min(lastSentAt, now),
    nextAt,
    consent: { at: Math.min(consentAt, now), how },
  }
}

const LONGEST_HOW = 300
const MOST_DAYS_AHEAD = 366
/** Whoever gets mails about incidents had any number of them. */
const STATUS = { id: NOTICES, lessons: [] } as const

/** UTC milliseconds; a time without a zone is in UTC. NaN: not a time. */
function timeOf(text: string): number | undefined {
  if (text === '') return undefined
  const [, day, clock = '00:00', zone = 'Z'] =
    /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/.exec(text) ??
    []
  return day === undefined ? Number.NaN : instantOf(`${day}T${clock}${zone}`)
}

interface Entries {
  /** Read as they are asked for, because a file may hold millions. */
  readonly entries: () => Iterable<Entry>
  readonly ignored: readonly string[]
  readonly missing: PeopleReading['faults']
}

const NEEDED: readonly Field[] = ['address', 'consentAt', 'consentHow']

const fieldsOf = (of: (field: Field) => string): Fields =>
  // Each field is given exactly once.
  Object.fromEntries(FIELDS.map((field) => [field, of(field)])) as Record<Field, string>

function fromCsv(text: string): Entries {
  const rows = readCsv(text)
  const { value: head } = rows.next()
  const names = head?.cells.map((name) => cellValue(name).toLowerCase()) ?? []
  const columns = new Map(FIELDS.map((field) => [field, names.indexOf(columnOf(field))]))
  const width = names.findLastIndex((name) => name !== '') + 1
  /** Spreadsheets end lines with empty fields; a field with text there is the rest of an unquoted one. */
  const overflow = (cells: readonly string[]) => {
    const filled = cells.findLastIndex((cell) => cell.trim() !== '') + 1
    if (filled <= width) return undefined
    return `there are ${filled} fields for ${width} columns: put quotes around a field that holds the separator, such as a comma`
  }
  return {
    *entries() {
      for (const { line, cells, fault = overflow(cells) } of rows) {
        yield fault === undefined
          ? { line, fields: fieldsOf((field) => cellValue(cells[columns.get(field) ?? -1] ?? '')) }
          : { line, fault }
      }
    },
    ignored: names.filter((name, at) => name !== '' && ![...columns.values()].includes(at)),
    missing: head?.fault
      ? [{ line: 1, message: head.fault }]
      : NEEDED.filter((field) => columns.get(field) === -1).map((field) => ({
          line: 1,
          message: `there is no column ${columnOf(field)}; the columns are ${FIELDS.map(columnOf).join(', ')}`,
        })),
  }
}

/** What is read takes some forty times its size in memory. */
const LARGEST_JSON = 8 * 1024 * 1024
const unread = (message: string) => ({ entries: () => [], ignored: [], missing: [{ line: 1, message }] })

/** `{ enrolments: [...] }` as an export has it, or the list alone. */
function fromJson(text: string): Entries {
  if (text.length > LARGEST_JSON)
    return unread('a list in JSON is read whole, so it may have 8 MB: import CSV, which may have 128 MB')
  // The parser's own message quotes the file.
  const parsed = parsedJson(text)
  if (parsed === undefined) return unread('the file is not JSON')
  if (isRecord(parsed) && parsed.version !== undefined && parsed.version !== 1)
    return unread('the file has another version than 1, which this build reads')
  const list = isRecord(parsed) ? parsed.enrolments : parsed
  if (!Array.isArray(list)) return unread('there is no list of enrolments')
  const named = new Set(list.flatMap((record) => (isRecord(record) ? Object.keys(record) : [])))
  return {
    *entries() {
      for (const [index, record] of list.entries()) {
        const of = (field: Field) => [isRecord(record) ? (record[field] ?? '') : ''].flat()
        const nested = FIELDS.find((field) => of(field).some((value) => typeof value === 'object'))
        yield nested
          ? { line: index + 1, fault: `${nested} is not a text` }
          : { line: index + 1, fields: fieldsOf((field) => of(field).map(String).join(' ').trim()) }
      }
    },
    ignored: [...named].filter((name) => !(FIELDS as readonly string[]).includes(name)),
    missing: [],
  }
}
