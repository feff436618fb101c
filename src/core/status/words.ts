import type { ServiceDefinition } from '../service.ts'

/** How services and probes are called on pages. */
export interface Labels {
  readonly isService: (name: string) => boolean
  readonly service: (name: string) => string
  readonly probe: (name: string) => string
}

export function createLabels({
  services,
  probes,
}: {
  readonly services: readonly ServiceDefinition[]
  readonly probes: readonly { readonly name: string; readonly label?: string }[]
}): Labels {
  const ofServices = new Map(services.map(({ name, label }) => [name, label ?? titled(name)]))
  const ofProbes = new Map(probes.flatMap(({ name, label }) => (label === undefined ? [] : [[name, label]])))
  return {
    isService: (name) => ofServices.has(name),
    service: (name) => ofServices.get(name) ?? titled(name),
    probe: (name) => ofServices.get(name) ?? ofProbes.get(name) ?? titled(name),
  }
}

/** `job_store` is "Job store", `region_b` "Region B". */
function titled(name: string): string {
  const words = name.replaceAll(/[_-]/g, ' ')
  return words.slice(0, 1).toUpperCase() + words.slice(1).replace(/ [a-z]$/, (end) => end.toUpperCase())
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
