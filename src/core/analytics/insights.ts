import { DAY_MS } from '../durations.ts'
import type { Messages } from '../messages/en.ts'
import type { AnalyticsEvent, EventDefinition, EventKind, Properties } from './events.ts'

/** One column of an insights table: what is computed from the events of `kind` in a row. */
export interface InsightsColumn {
  readonly head: string
  readonly kind: string
  /** `count` counts the events (with `property`, those where it is a number), `true` those where it is true; `max` and `mean` take a number. */
  readonly compute: 'count' | 'true' | 'max' | 'mean'
  readonly property?: string
}

/** A table of the insights page. With `by`, each value of its first property that is set has a row; else each column. */
export interface InsightsSection {
  readonly id: string
  readonly heading: string
  readonly caption: string
  readonly empty: string
  readonly by?: readonly string[]
  readonly rowHead: string
  readonly columns: readonly InsightsColumn[]
  /** Orders rows by name, or puts those with the most in the first column first. Default: by name. */
  readonly order?: 'name' | 'most'
  readonly bars?: boolean
  /** A number at the top of the page: how many rows have something in the column with this head. */
  readonly tile?: { readonly label: string; readonly column: string }
}

/** The parts of the insights page that a platform adds to days and kinds. */
export interface InsightsDefinition {
  readonly sections: readonly InsightsSection[]
  /** Events shown to a browser that has recorded nothing, as if it were `now`. */
  readonly sample?: (now: number) => readonly AnalyticsEvent[]
}

/** JSON that the insights page carries for its script. */
export interface InsightsPageData {
  readonly events: readonly EventDefinition[]
  readonly sections: readonly InsightsSection[]
  /** Sample events. `at` counts from the moment at which the page is viewed, so it is negative. */
  readonly sample: readonly AnalyticsEvent[]
  readonly texts: Messages['insights']['script']
  /** The language of the texts, in which numbers and dates are written too. */
  readonly language: string
}

/** A section's rows; a cell is undefined where there is nothing to compute from. */
export type InsightsTable = Readonly<ReturnType<typeof tablesOf>[number]>

/** Summary of a visitor's own events. Computed from one device's buffer and shown only there. */
export type Insights = Readonly<ReturnType<typeof insightsOf>>

/** The most days that are drawn. A device whose clock once stood at 1970 would otherwise draw twenty thousand. */
const MOST_DAYS = 730

/** Aggregates what the buffer holds. Pure; ten thousand events take a few milliseconds. */
export function insightsOf(input: {
  readonly events: readonly AnalyticsEvent[]
  readonly now: number
  /** How many days back, today included; undefined: since the first event. */
  readonly range: number | undefined
  readonly kind: EventKind | undefined
  readonly sections: readonly InsightsSection[]
  /** The calendar day of a time where the visitor is. */
  readonly dayOf: (time: number) => string
}) {
  const { events, now, range, kind, sections, dayOf } = input
  // A clock that was wrong by thousands of years wrote days that are no calendar days here.
  const dated = events
    .map((event) => ({ event, day: dayOf(event.at) }))
    .filter(({ day }) => /^\d{4}-/.test(day))
  const active = new Set(dated.map(({ day }) => day))
  const today = dayOf(now)
  const first = range === undefined ? firstOf(active, today) : shifted(today, 1 - range)
  const counts = new Map<string, number>()
  for (let day = first; day <= today; day = shifted(day, 1)) counts.set(day, 0)
  const kinds = new Map<EventKind, number>()
  const shown: AnalyticsEvent[] = []
  for (const { event, day } of dated) {
    const count = counts.get(day)
    if (count === undefined || (kind !== undefined && event.kind !== kind)) continue
    counts.set(day, count + 1)
    kinds.set(event.kind, (kinds.get(event.kind) ?? 0) + 1)
    shown.push(event)
  }
  return {
    total: shown.length,
    /** Every day of the range, the oldest first, also those without an event. */
    days: [...counts].map(([day, count]) => ({ day, count })),
    /** The most frequent first. */
    kinds: [...kinds].map(([name, count]) => ({ kind: name, count })).sort((a, b) => b.count - a.count),
    tables: tablesOf(sections, shown),
    /** Days in a row with an event, over all that is there; one still counts as current until its next day is over. */
    streak: streakOf(active, today),
  }
}

function tablesOf(sections: readonly InsightsSection[], events: readonly AnalyticsEvent[]) {
  const tables = sections.map((section) => ({ section, rows: new Map<string, number[][]>() }))
  for (const { kind, properties } of events) {
    for (const { section, rows } of tables) {
      if (!section.columns.some((column) => column.kind === kind)) continue
      const by = section.by?.find((one) => properties[one] !== undefined)
      const name = by === undefined ? '' : String(properties[by])
      const row = rows.get(name) ?? section.columns.map(() => [])
      rows.set(name, row)
      section.columns.forEach((column, index) => {
        const value = column.kind === kind ? measured(column, properties) : undefined
        if (value !== undefined) row[index]?.push(value)
      })
    }
  }
  return tables.map(({ section, rows }) => ({
    section,
    rows: [...rows]
      .map(([name, row]) => ({
        /** Empty where the events name nothing. */
        name,
        cells: section.columns.map(({ compute }, index) => computed(compute, row[index])),
      }))
      .sort((a, b) =>
        section.order === 'most'
          ? (b.cells[0] ?? 0) - (a.cells[0] ?? 0)
          : a.name.localeCompare(b.name, undefined, { numeric: true }),
      ),
  }))
}

/** The amount that an event adds to a cell of this column; undefined if it does not count there. */
function measured({ compute, property }: InsightsColumn, properties: Properties): number | undefined {
  if (property === undefined) return 1
  const value = properties[property]
  if (compute === 'true') return value === true ? 1 : undefined
  return typeof value === 'number' ? value : undefined
}

function computed(compute: InsightsColumn['compute'], values: readonly number[] = []): number | undefined {
  if (compute === 'count' || compute === 'true') return values.length
  if (values.length === 0) return undefined
  if (compute === 'max') return values.reduce((a, b) => Math.max(a, b))
  return values.reduce((a, b) => a + b) / values.length
}

function streakOf(active: ReadonlySet<string>, today: string) {
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
  const [first = today] = [...days, today].sort()
  return first < earliest ? earliest : first
}

/** The day that is `by` days later. Counted in calendar days, so that a day of 23 or 25 hours makes no difference. */
const shifted = (day: string, by: number) =>
  new Date(Date.parse(`${day}T00:00:00Z`) + by * DAY_MS).toISOString().slice(0, 10)
