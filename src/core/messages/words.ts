import { DAY_MS, HOUR_MS } from '../durations.ts'

const SIZES = [DAY_MS, HOUR_MS, 60_000, 1000] as const

type Forms = readonly [one: string, other: string]

/**
 * Makes a function that writes lengths of time in a language, in their largest units: `3 hours 12 minutes`.
 * Below an hour, it writes one unit by default.
 */
export function lengths({
  units,
  none,
}: {
  /** Day, hour, minute, second. */
  readonly units: readonly [Forms, Forms, Forms, Forms]
  readonly none: string
}): (ms: number, most?: number) => string {
  return (ms, most = ms < HOUR_MS ? 1 : 2) => {
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

/** Makes a function that writes lists in a language: `web, API and agent`. */
export function lists(and: string): (words: readonly string[]) => string {
  return (words) =>
    words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} ${and} ${words.at(-1)}`
}
