import type { Cadence } from '../../core/course/definition.ts'

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** When the lessons of a course come, for an operator: `every 2 d`, `Mon, Thu at 09:00, Europe/Berlin`. */
export function cadenceText(cadence: Cadence): string {
  if (cadence.kind === 'every') return `every ${durationText(cadence.ms)}`
  const { minute, zone, weekdays } = cadence
  const days = weekdays.length === 0 ? 'daily' : weekdays.map((day) => DAYS[day - 1]).join(', ')
  return `${days} at ${hourText(minute)}, ${zone ?? 'the subscriber’s zone'}`
}

/** Minutes after midnight as `09:00`. */
export function hourText(minute: number): string {
  return `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
}

/** A length of time in the largest unit that it is a whole number of. */
export function durationText(ms: number): string {
  const [size, unit] = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ].find(([one]) => ms % Number(one) === 0) ?? [1, 'ms']
  return `${ms / Number(size)} ${unit}`
}
