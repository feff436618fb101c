import { DAY_MS, HOUR_MS } from '../durations.ts'
import type { AnalyticsEvent, EventDefinition, PropertyValue } from './events.ts'

/** The number of days that the insights page shows by default, so that every figure counts the same days. */
export const SAMPLE_DAYS = 30
/** The page carries the sample: of a platform with hundreds of kinds, the first ones do. */
const KINDS_SHOWN = 12

/** mulberry32: a small generator of numbers from 0 up to 1, the same for a seed everywhere. Not for secrets. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A month of made-up events of these kinds, for a browser that has recorded none. The same `now` gives the same. */
export function sampleEvents(kinds: readonly EventDefinition[], now: number): AnalyticsEvent[] {
  const random = seeded(20_261_121)
  const value = (name: string, type: 'string' | 'number' | 'boolean'): PropertyValue => {
    if (type === 'boolean') return random() < 0.7
    const some = 1 + Math.floor(random() * (type === 'number' ? 10 : 3))
    return type === 'number' ? some : `${name} ${some}`
  }
  const events: AnalyticsEvent[] = []
  for (let ago = SAMPLE_DAYS - 1; ago >= 0; ago -= 1) {
    if (random() < 0.2 && ago > 3) continue
    for (const [index, { name, properties = {} }] of kinds.slice(0, KINDS_SHOWN).entries()) {
      const times = Math.floor(random() * (5 - (index % 4)))
      for (let time = 0; time < times; time += 1)
        events.push({
          kind: name,
          at: now - ago * DAY_MS - Math.floor(random() * 6 * HOUR_MS),
          properties: Object.fromEntries(
            Object.entries(properties).map(([property, type]) => [property, value(property, type)]),
          ),
        })
    }
  }
  return fromFirstDay(events, now)
}

/** In order, and without those that lie before the sample's first day. */
export function fromFirstDay(events: readonly AnalyticsEvent[], now: number): AnalyticsEvent[] {
  const first = now - (SAMPLE_DAYS - 1) * DAY_MS
  return events.filter(({ at }) => at > first && at <= now).sort((a, b) => a.at - b.at)
}
