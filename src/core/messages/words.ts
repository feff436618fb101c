import { DAY_MS, HOUR_MS, MINUTE_MS } from '../durations.ts'

const UNITS = [
  ['day', DAY_MS],
  ['hour', HOUR_MS],
  ['minute', MINUTE_MS],
  ['second', 1000],
] as const
const SIZES = UNITS.map(([, size]) => size)

/** Writes lengths of time in their largest units, as `3 hours 12 minutes`; below an hour in one. */
export function lengths(
  /** Day, hour, minute, second. */
  units: readonly (readonly [one: string, other: string])[],
  none: string,
) {
  return (ms: number, most = ms < HOUR_MS ? 1 : 2): string => {
    const largest = SIZES.findIndex((size) => ms >= size)
    if (largest === -1) return none
    const parts = SIZES.slice(largest, largest + most).map((size, index) => {
      const whole = Math.floor(index === 0 ? ms / size : (ms % (SIZES[largest] ?? size)) / size)
      const forms = units[largest + index]
      return whole === 0 ? '' : `${whole} ${forms?.[whole === 1 ? 0 : 1]}`
    })
    return parts.filter(Boolean).join(' ')
  }
}

/** How pages and mails write time in each language; pages' scripts write it again in the reader's zone. */
export type Times = ReturnType<typeof newTimes>

const kept = new Map<string, Times>()

export function timesIn(language: string, timeZone = 'UTC'): Times {
  const key = `${language} ${timeZone}`
  const known = kept.get(key) ?? newTimes(language === 'en' ? 'en-GB' : language, timeZone)
  // Making one takes longer than writing a page.
  kept.set(key, known)
  return known
}

function newTimes(language: string, timeZone: string) {
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
    /** `21 Nov 2026, 07:26 UTC` */
    moment: (ms: number) => moments.format(ms),
    /** `21 Nov 2026, 07:11–07:26 UTC` */
    span: (from: number, to: number) => moments.formatRange(Math.min(from, to), to),
    /** `21 Nov 2026` */
    day: (ms: number) => days.format(ms),
    /** `20 seconds ago` */
    ago(ms: number): string {
      const [unit, size] = UNITS.find(([, length]) => ms >= length) ?? ['second', 1000]
      return relative.format(-Math.floor(Math.max(0, ms) / size), unit)
    },
  }
}
