/** How pages and mails write time in each language; pages' scripts write it again in the reader's zone. */
export interface Times {
  /** `21 Nov 2026, 07:26 UTC` */
  moment(ms: number): string
  /** `21 Nov 2026, 07:11–07:26 UTC` */
  span(from: number, to: number): string
  /** `21 Nov 2026` */
  day(ms: number): string
  /** `20 seconds ago` */
  ago(ms: number): string
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const
const kept = new Map<string, Times>()

export function timesIn(language: string, timeZone = 'UTC'): Times {
  const key = `${language} ${timeZone}`
  const known = kept.get(key) ?? newTimes(language === 'en' ? 'en-GB' : language, timeZone)
  // Making one takes longer than writing a page.
  kept.set(key, known)
  return known
}

function newTimes(language: string, timeZone: string): Times {
  const date = { day: 'numeric', month: 'short', year: 'numeric', timeZone } as const
  const days = new Intl.DateTimeFormat(language, date)
  const moments = new Intl.DateTimeFormat(language, {
    ...date,
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
  })
  const relative = new Intl.RelativeTimeFormat(language, { numeric: 'always' })
  return {
    moment: (ms) => moments.format(ms),
    span: (from, to) => moments.formatRange(Math.min(from, to), to),
    day: (ms) => days.format(ms),
    ago(ms) {
      const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['second', 1000]
      return relative.format(-Math.floor(Math.max(0, ms) / size), unit)
    },
  }
}
