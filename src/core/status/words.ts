import type { Service } from '../service.ts'

/** How services and probes are called on the status page. */
export const SERVICE_LABEL: Readonly<Record<Service, string>> = {
  web: 'Web',
  api: 'API',
  agent: 'Agent',
}

const LABEL: Readonly<Record<string, string>> = {
  api: 'API',
  datastore: 'Data store',
  sharedstore: 'Shared store',
  errortrack: 'Error reporting',
  limiter: 'Rate limiter',
  cloudb: 'Cloud B',
  cloudqpu: 'Cloud QPU',
  cloudmodel: 'Cloud model',
}

export function probeLabel(probe: string): string {
  const words = probe.replaceAll('_', ' ')
  return (
    LABEL[probe] ??
    words.slice(0, 1).toUpperCase() + words.slice(1).replace(/ [a-z]$/, (end) => end.toUpperCase())
  )
}

const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [24 * 60 * 60 * 1000, 'day'],
  [60 * 60 * 1000, 'hour'],
  [60 * 1000, 'minute'],
  [1000, 'second'],
]

/** A length of time in its largest units, two unless told: `3 hours 12 minutes`. */
export function duration(ms: number, units = 2): string {
  const largest = UNITS.findIndex(([size]) => ms >= size)
  if (largest === -1) return 'less than a second'
  const parts = UNITS.slice(largest, largest + units).map(([size, name], index) => {
    const whole = Math.floor(index === 0 ? ms / size : (ms % (UNITS[largest]?.[0] ?? size)) / size)
    return whole === 0 ? '' : `${whole} ${name}${whole === 1 ? '' : 's'}`
  })
  return parts.filter(Boolean).join(' ')
}

export function listed(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
