import type { AnalyticsEvent, EventKind } from './events.ts'

/** What a visitor's own events say; made from the buffer of one device, and shown to nobody else. */
export interface Insights {
  readonly total: number
  /** Every day of the range, the oldest first, also those without an event. */
  readonly days: readonly { readonly day: string; readonly count: number }[]
  /** The most frequent first. */
  readonly kinds: readonly { readonly kind: EventKind; readonly count: number }[]
  readonly lessons: readonly {
    readonly lesson: string
    readonly viewed: number
    readonly completed: number
  }[]
  readonly exams: readonly {
    readonly exam: string
    readonly started: number
    readonly completed: number
    readonly passed: number
    readonly best: number | undefined
  }[]
  readonly devices: readonly { readonly device: string; readonly count: number }[]
  readonly tutor: { readonly asked: number; readonly rated: number; readonly rating: number | undefined }
  /** Days in a row with an event, over all that is there; one still counts as current until its next day is over. */
  readonly streak: { readonly current: number; readonly longest: number }
}

export interface InsightsInput {
  readonly events: readonly AnalyticsEvent[]
  readonly now: number
  /** How many days back, today included; undefined: since the first event. */
  readonly range: number | undefined
  readonly kind: EventKind | undefined
  /** The calendar day of a time where the visitor is, as `2026-11-21`. */
  readonly dayOf: (time: number) => string
}

const DAY_MS = 86_400_000
/** A device whose clock once stood at 1970 would otherwise draw twenty thousand days. */
const MOST_DAYS = 730

/** Aggregates what the buffer holds. Pure; ten thousand events take a few milliseconds. */
export function insightsOf({ events, now, range, kind, dayOf }: InsightsInput): Insights {
  const dated = events.map((event) => ({ event, day: dayOf(event.at) }))
  const active = new Set(dated.map(({ day }) => day))
  const today = dayOf(now)
  const days = calendar(range === undefined ? firstOf(active, today) : shifted(today, 1 - range), today)
  const counts = new Map(days.map((day) => [day, 0]))
  const kinds = new Map<EventKind, number>()
  const lessons = new Map<string, { viewed: number; completed: number }>()
  const exams = new Map<string, { started: number; completed: number; passed: number; best?: number }>()
  const devices = new Map<string, number>()
  const tutor = { asked: 0, rated: 0, sum: 0 }
  let total = 0

  for (const { event, day } of dated) {
    const count = counts.get(day)
    if (count === undefined || (kind !== undefined && event.kind !== kind)) continue
    total += 1
    counts.set(day, count + 1)
    kinds.set(event.kind, (kinds.get(event.kind) ?? 0) + 1)
    const { properties } = event
    switch (event.kind) {
      case 'lesson.viewed':
      case 'lesson.completed': {
        const row = rowOf(lessons, named(properties.lesson ?? properties.day), { viewed: 0, completed: 0 })
        row[event.kind === 'lesson.viewed' ? 'viewed' : 'completed'] += 1
        break
      }
      case 'exam.started':
      case 'exam.completed': {
        const row = rowOf(exams, named(properties.exam), { started: 0, completed: 0, passed: 0 })
        row[event.kind === 'exam.started' ? 'started' : 'completed'] += 1
        if (properties.passed === true) row.passed += 1
        if (typeof properties.score === 'number') row.best = Math.max(row.best ?? 0, properties.score)
        break
      }
      case 'device.selected': {
        const device = named(properties.device)
        devices.set(device, (devices.get(device) ?? 0) + 1)
        break
      }
      case 'tutor.asked':
        tutor.asked += 1
        break
      case 'tutor.rated':
        if (typeof properties.rating === 'number') {
          tutor.rated += 1
          tutor.sum += properties.rating
        }
        break
    }
  }

  return {
    total,
    days: [...counts].map(([day, count]) => ({ day, count })),
    kinds: [...kinds].map(([name, count]) => ({ kind: name, count })).sort((a, b) => b.count - a.count),
    lessons: [...lessons]
      .map(([lesson, row]) => ({ lesson, ...row }))
      .sort((a, b) => a.lesson.localeCompare(b.lesson, undefined, { numeric: true })),
    exams: [...exams]
      .map(([exam, row]) => ({ exam, best: undefined, ...row }))
      .sort((a, b) => a.exam.localeCompare(b.exam, undefined, { numeric: true })),
    devices: [...devices].map(([device, count]) => ({ device, count })).sort((a, b) => b.count - a.count),
    tutor: {
      asked: tutor.asked,
      rated: tutor.rated,
      rating: tutor.rated === 0 ? undefined : tutor.sum / tutor.rated,
    },
    streak: streakOf(active, today),
  }
}

function rowOf<Row>(rows: Map<string, Row>, name: string, fresh: Row): Row {
  const row = rows.get(name) ?? fresh
  rows.set(name, row)
  return row
}

function named(value: unknown): string {
  return value === undefined || value === '' ? '(unnamed)' : String(value)
}

function streakOf(active: ReadonlySet<string>, today: string): Insights['streak'] {
  let longest = 0
  for (const day of active) {
    if (active.has(shifted(day, -1))) continue
    let length = 1
    while (active.has(shifted(day, length))) length += 1
    longest = Math.max(longest, length)
  }
  let current = 0
  const last = active.has(today) ? today : shifted(today, -1)
  while (active.has(shifted(last, -current))) current += 1
  return { current, longest }
}

function firstOf(days: ReadonlySet<string>, today: string): string {
  const earliest = shifted(today, 1 - MOST_DAYS)
  let first = today
  for (const day of days) if (day < first) first = day
  return first < earliest ? earliest : first
}

function calendar(from: string, to: string): string[] {
  const days: string[] = []
  for (let day = from; day <= to; day = shifted(day, 1)) days.push(day)
  return days
}

/** Calendar days, so that a night with 23 or 25 hours makes no difference. */
function shifted(day: string, by: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + by * DAY_MS).toISOString().slice(0, 10)
}
