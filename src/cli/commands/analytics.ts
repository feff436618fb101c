import { DAY_MS } from '../../core/durations.ts'
import { dayNameOf } from '../../core/mail/feedback/sending.ts'
import { type Answer, command, type Define } from '../command.ts'
import { loadPaint, type Paint, terminalColumns, wrongUsage } from '../context.ts'
import { loadEnvironment } from '../environment.ts'
import { ENV_FILE, value, wholeNumber } from '../inputs.ts'
import { plural, sizeText, thousands } from '../output/text.ts'

export const define: Define = () => ({
  description: 'Show aggregate figures of the visitors’ events that ingest has stored.',
  examples: ['summary --days 7'],
  commands: {
    summary: command({
      summary: 'counts per kind and day',
      description:
        'Counts per kind and day of what ingest has stored: a table of kinds, and a bar for each day. Reads the table that ANALYTICS_DATASTORE_TABLE names in the store of STORE_URL; days are in UTC.',
      exits:
        '0 written, 2 nothing is stored here, or the file cannot be read, 3 the server of STORE_URL was not reached or refused.',
      examples: ['--env-file .env', '--days 7', "--format json | jq '.kinds'"],
      document: 'analytics summary',
      inputs: {
        '--days <days>': value('how many days back, today included', wholeNumber(1, 400), 30),
        ...ENV_FILE,
      },
      async run(context, { days, envFile }) {
        const { findAnalytics } = await import('../local.ts')
        const { env } = await loadEnvironment(context, envFile)
        const found = await findAnalytics(context, env)
        if (found === undefined)
          throw wrongUsage(
            'events are not stored: set ANALYTICS_DATASTORE_TABLE and STORE_URL, or pass the env file that sets them with --env-file.',
          )
        const { location, store } = found
        if (store === undefined)
          throw wrongUsage(
            `nothing is stored at ${location} yet: the daemon makes it; check STORE_URL if it should be there.`,
          )
        const now = context.clock.now()
        const first = dayNameOf(now - (days - 1) * DAY_MS)
        const [counts, { batches, events, bytes }] = await Promise.all([
          store.counts(first),
          store.status(),
        ]).finally(() => store.close())
        const json = summariseEvents(counts, { batches, events, bytes }, now, days)
        const paint = await loadPaint(context.colour.stdout)
        return { json, text: summaryText(json, paint, Math.min(terminalColumns(context.stdout), 120)) }
      },
    }),
  },
})

type Summary = Answer<'analytics summary'>['json']

/** The operator's aggregate view. Days are in UTC, oldest first, without gaps; the most frequent kind first. */
export function summariseEvents(
  counts: readonly { readonly day: string; readonly kind: string; readonly count: number }[],
  stored: Summary['stored'],
  now: number,
  days: number,
): Summary {
  const names = Array.from({ length: days }, (_, index) => dayNameOf(now - (days - 1 - index) * DAY_MS))
  const known = counts.filter(({ day }) => names.includes(day))
  const sum = (some: typeof counts = []) => some.reduce((total, { count }) => total + count, 0)
  const [byDay, byKind] = [Map.groupBy(known, ({ day }) => day), Map.groupBy(known, ({ kind }) => kind)]
  return {
    from: names[0] ?? '',
    to: names.at(-1) ?? '',
    total: sum(known),
    kinds: [...byKind].map(([kind, of]) => ({ kind, count: sum(of) })).sort((a, b) => b.count - a.count),
    days: names.map((day) => {
      const of = byDay.get(day) ?? []
      return { day, count: sum(of), kinds: Object.fromEntries(of.map(({ kind, count }) => [kind, count])) }
    }),
    stored,
  }
}

/** A bar for each kind and for each day, with its number, so that nothing is shown by length alone. */
export function summaryText(summary: Summary, paint: Paint, columns: number): string {
  const { from, to, total, kinds, days, stored } = summary
  const size = stored.bytes === undefined ? '' : `, ${sizeText(stored.bytes)}`
  const lines = [
    `${paint.bold(plural(total, 'event'))} from ${from} to ${to} (UTC)`,
    paint.dim(
      `${thousands(stored.events)} stored in all, in ${plural(stored.batches, 'batch', 'batches')}${size}`,
    ),
  ]
  if (total > 0) {
    const shares = kinds.map(
      ({ kind, count }) => [kind, count, `${((count / total) * 100).toFixed(1)} %  `] as const,
    )
    // Quiet days before the first event say nothing.
    const first = days.findIndex(({ count }) => count > 0)
    const byDay = days.slice(first).map(({ day, count }) => [day, count, ''] as const)
    lines.push('', paint.bold('by kind'), ...bars(shares, columns, paint))
    lines.push('', paint.bold('by day'), ...bars(byDay, columns, paint))
  }
  return `${lines.join('\n')}\n`
}

type Bar = readonly [name: string, count: number, share: string]

function bars(rows: readonly Bar[], columns: number, paint: Paint): string[] {
  const most = Math.max(...rows.map(([, count]) => count))
  const widest = (texts: readonly string[]) => Math.max(...texts.map((text) => text.length))
  const names = widest(rows.map(([name]) => name))
  const counts = thousands(most).length
  const shares = widest(rows.map(([, , share]) => share))
  const room = Math.max(4, Math.min(48, columns - names - counts - shares - 6))
  return rows.map(([name, count, share]) => {
    const bar = paint.cyan(barOf(count / most, room))
    return `  ${name.padEnd(names)}  ${thousands(count).padStart(counts)}  ${share.padStart(shares)}${bar}`.trimEnd()
  })
}

/** In eighths of a character, and at least one for anything that is there. */
function barOf(share: number, room: number): string {
  const eighths = share === 0 ? 0 : Math.max(1, Math.round(share * room * 8))
  return '█'.repeat(Math.floor(eighths / 8)) + ' ▏▎▍▌▋▊▉'.charAt(eighths % 8).trim()
}
