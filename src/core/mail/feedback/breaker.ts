import { DAY_MS } from '../../durations.ts'
/** Deliveries and bad news of the last 24 hours, over all dispatchers of one store. */
export interface DayOfFeedback {
  readonly deliveries: number
  readonly hardBounces: number
  readonly complaints: number
}

/** CONTRACT §12: with fewer deliveries a rate says nothing. Rates are shares of deliveries. */
export const BREAKER = {
  windowMs: DAY_MS,
  fewest: 50,
  hardBounces: 0.05,
  complaints: 0.001,
} as const

/** Why sending must pause, in one sentence; undefined while the rates are fine. */
export function breach({ deliveries, hardBounces, complaints }: DayOfFeedback): string | undefined {
  if (deliveries < BREAKER.fewest) return undefined
  if (hardBounces >= deliveries * BREAKER.hardBounces)
    return `${hardBounces} of ${deliveries} messages of the last day bounced hard; providers block senders at ${percent(BREAKER.hardBounces)}`
  if (complaints >= deliveries * BREAKER.complaints)
    return `${complaints} of ${deliveries} messages of the last day were reported as spam; providers block senders at ${percent(BREAKER.complaints)}`
  return undefined
}

const percent = (share: number) => `${share * 100}%`
