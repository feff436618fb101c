import { DAY_MS } from '../../core/durations.ts'
import type { Paint } from '../paint.ts'
import { sizeText } from './amounts.ts'

/** The operator's aggregate view. Days are in UTC, oldest first, without gaps. */
export interface AnalyticsSummary {
  readonly version: 1
  readonly from: string
  readonly to: string
  readonly total: number
  /** The most frequent first. */
  readonly kinds: readonly { readonly kind: string; readonly count: number }[]
  readonly days: readonly {
    readonly day: string
    readonly count: number
    readonly kinds: Readonly<Record<string, number>>
  }[]
  /** Everything that is stored, whatever the days asked for. */
  readonly stored: { readonly batches: number; readonly events: number; readonly bytes: number | undefined }
}

export function summariseEvents({
  counts,
  stored,
  now,
  days,
}: {
  readonly counts: readonly { readonly day: string; readonly kind: string; readonly count: number }[]
  readonly stored: AnalyticsSummary['stored']
  readonly now: number
  readonly days: number
}): AnalyticsSummary {
  const names = Array.from({ length: days }, (_, index) => dayName(now - (days - 1 - index) * DAY_MS))
  const byDay = new Map(names.map((day) => [day, new Map<string, number>()]))
  const byKind = new Map<string, number>()
  for (const { day, kind, count } of counts) {
    const kinds = byDay.get(day)
    if (kinds === undefined) continue
    kinds.set(kind, count)
    byKind.set(kind, (byKind.get(kind) ?? 0) + count)
  }
  const sum = (kinds: ReadonlyMap<string, number>) => [...kinds.values()].reduce((a, b) => a + b, 0)
  return {
    version: 1,
    from: names[0] ?? '',
    to: names.at(-1) ?? '',
    total: sum(byKind),
    kinds: [...byKind].map(([kind, count]) => ({ kind, count })).sort((a, b) => b.count - a.count),
    days: [...byDay].map(([day, kinds]) => ({ day, count: sum(kinds), kinds: Object.fromEntries(kinds) })),
    stored,
  }
}

export function dayName(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

/** A bar for each kind and for each day, with its number, so that nothing is shown by length alone. */
export function summaryText(
  summary: AnalyticsSummary,
  { paint, columns }: { readonly paint: Paint; readonly columns: number },
): string {
  const { from, to, total, kinds, days, stored } = summary
  const size = stored.bytes === undefined ? '' : `, ${sizeText(stored.bytes)}`
  const lines = [
    `${paint.bold(`${number(total)} ${total === 1 ? 'event' : 'events'}`)} from ${from} to ${to} (UTC)`,
    paint.dim(
      `${number(stored.events)} stored in all, in ${number(stored.batches)} ${stored.batches === 1 ? 'batch' : 'batches'}${size}`,
    ),
  ]
  if (total > 0) {
    const rows = kinds.map(({ kind, count }) => ({ name: kind, count, share: percent(count, total) }))
    lines.push('', paint.bold('by kind'), ...bars(rows, columns, paint))
    // Quiet days before the first event say nothing.
    const first = days.findIndex(({ count }) => count > 0)
    lines.push('', paint.bold('by day'))
    lines.push(
      ...bars(
        days.slice(first).map(({ day, count }) => ({ name: day, count, share: '' })),
        columns,
        paint,
      ),
    )
  }
  return `${lines.join('\n')}\n`
}

interface Row {
  readonly name: string
  readonly count: number
  readonly share: string
}

function bars(rows: readonly Row[], columns: number, paint: Paint): string[] {
  const most = Math.max(...rows.map(({ count }) => count))
  const nameWidth = Math.max(...rows.map(({ name }) => name.length))
  const countWidth = number(most).length
  const shareWidth = Math.max(...rows.map(({ share }) => share.length))
  const room = Math.max(4, Math.min(48, columns - nameWidth - countWidth - shareWidth - 8))
  return rows.map(({ name, count, share }) => {
    const bar = paint.cyan(barOf(count / most, room))
    return `  ${name.padEnd(nameWidth)}  ${number(count).padStart(countWidth)}  ${share.padStart(shareWidth)}${share && '  '}${bar}`.trimEnd()
  })
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

/** In eighths of a character, and at least one for anything that is there. */
function barOf(share: number, room: number): string {
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * room * 8))
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '')
}

function number(value: number): string {
  return value.toLocaleString('en')
}

function percent(count: number, total: number): string {
  return `${((count / total) * 100).toFixed(1)} %`
}
