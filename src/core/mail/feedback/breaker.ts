import { DAY_MS } from '../../durations.ts'
import type { BreakerKind } from './sending.ts'

/** Reports of one kind. Anybody can write one by mail; those of a webhook or of a mail server's answer are proven. */
interface Reports {
  readonly proven: number
  readonly byMail: number
}

/** Deliveries and bad news of the last 24 hours, over all dispatchers of one store. */
export interface DayOfFeedback {
  readonly deliveries: number
  readonly hardBounces: Reports
  readonly complaints: Reports
}

/** CONTRACT §14.5: below these numbers a rate says nothing. Rates are shares of deliveries. */
export const BREAKER = {
  windowMs: DAY_MS,
  fewestDeliveries: 50,
  hardBounces: 0.05,
  fewestComplaints: 5,
  complaints: 0.003,
} as const

/** A day's feedback from the sums of its minutes. */
export function dayOfFeedback(sums: (kind: BreakerKind) => number): DayOfFeedback {
  return {
    deliveries: sums('sent'),
    hardBounces: { proven: sums('hard-bounce'), byMail: sums('hard-bounce by mail') },
    complaints: { proven: sums('complaint'), byMail: sums('complaint by mail') },
  }
}

/** Why sending must pause, in one sentence; undefined while the rates are fine. */
export function breach(day: DayOfFeedback): string | undefined {
  const { deliveries } = day
  if (deliveries === 0) return undefined
  const [hardBounces, complaints] = [counted(day.hardBounces), counted(day.complaints)]
  if (deliveries >= BREAKER.fewestDeliveries && hardBounces >= deliveries * BREAKER.hardBounces)
    return `${hardBounces} of ${deliveries} messages of the last day bounced hard; providers block senders at ${percent(BREAKER.hardBounces)}`
  if (complaints >= BREAKER.fewestComplaints && complaints >= deliveries * BREAKER.complaints)
    return `${complaints} of ${deliveries} messages of the last day were reported as spam; providers block senders at ${percent(BREAKER.complaints)}`
  return undefined
}

/** Reports by mail count up to the number of proven ones, so that forged reports alone never pause courses. */
const counted = ({ proven, byMail }: Reports) => proven + Math.min(proven, byMail)

const percent = (share: number) => `${share * 100}%`
