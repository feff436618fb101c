import { auditEntry, type Operator } from '../../src/core/audit.ts'
import { DAY_MS, MOST_SKEW_MS } from '../../src/core/durations.ts'
import type { Pause } from '../../src/core/mail/holds.ts'
import type { Store } from '../../src/core/store/store.ts'
import type { Seeded } from './seeded.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** A run asks every ten seconds, and messages that it took before are still on their way. */
const MOST_TO_STOP_MS = 20 * MINUTE
const OPERATOR: Operator = { name: 'operator', place: 'simulation' }

export type Reported = 'hard-bounce' | 'complaint'

interface Heard {
  readonly kind: Reported | 'sent'
  readonly byMail: boolean
  /** By the wall clock, as the store counts. */
  readonly at: number
}

/**
 * Keeps its own account of what was sent and of who reported it, and says when courses should pause: five people and
 * 0.3 %, or 5 % of fifty, at least half of them by signed webhook. An operator resumes them hours later.
 */
export function simulateBreaker({
  store,
  time,
  witness,
  random,
  isCalm,
}: {
  readonly store: Pick<Store, 'sending'>
  readonly time: VirtualTime
  readonly witness: Witness
  readonly random: Seeded
  readonly isCalm: () => boolean
}) {
  const account: Heard[] = []
  let resumedAt = Number.NEGATIVE_INFINITY
  let pausedSince: number | undefined

  /** What is in the rolling day since the last resume, give or take `slack`: negative leaves out what is on its edges. */
  function count(
    kind: Heard['kind'],
    { byMail = false, slack }: { byMail?: boolean; slack: number },
  ): number {
    const now = time.clock.now()
    // What a clock further ahead has written says nothing.
    const isAhead = resumedAt > now + MOST_SKEW_MS - slack
    const from = (isAhead ? now - DAY_MS : Math.max(now - DAY_MS, resumedAt)) - slack
    const to = now + MOST_SKEW_MS + slack
    return account.filter(
      (one) => one.kind === kind && one.byMail === byMail && one.at >= from && one.at <= to,
    ).length
  }
  /** At most so many reports may count. */
  function most(kind: Reported): number {
    const proven = count(kind, { slack: 2 * MINUTE })
    return proven + Math.min(proven, count(kind, { byMail: true, slack: 2 * MINUTE }))
  }
  const mayPause = () => {
    const [fewest, complaints, bounces] = [
      count('sent', { slack: -2 * MINUTE }),
      most('complaint'),
      most('hard-bounce'),
    ]
    return (complaints >= 5 && complaints >= fewest * 0.003) || bounces >= Math.max(fewest, 50) * 0.05
  }
  const mustPause = () => {
    const sent = count('sent', { slack: 2 * MINUTE })
    const [complaints, bounces] = [
      count('complaint', { slack: -2 * MINUTE }),
      count('hard-bounce', { slack: -2 * MINUTE }),
    ]
    if (count('sent', { slack: -2 * MINUTE }) < 50) return false
    return (complaints >= 5 && complaints >= sent * 0.003) || bounces >= sent * 0.05
  }

  async function resume(): Promise<void> {
    // No time passes between the two: nobody is told of the end before it is true.
    const now = time.clock.now()
    const audit = auditEntry({ ...time, random }, { action: 'resume', operator: OPERATOR })
    pausedSince = undefined
    resumedAt = now
    await store.sending.resume({ streams: ['course'], now, audit })
    witness.note('', 'courses resumed')
  }

  function looked(pause: Pause | undefined): void {
    if (pause === undefined || pausedSince !== undefined) return
    pausedSince = time.elapsed()
    witness.note('', `courses paused: ${pause.reason}`)
    if (!mayPause()) witness.violation('courses were paused by too few reports that are proven', '')
    time.after(isCalm() ? MINUTE : random.between(HOUR, 8 * HOUR), () => {
      resume().catch((error: unknown) => witness.violation(`resuming met a fault: ${String(error)}`, ''))
    })
  }

  return {
    /** What a dispatcher asks. */
    async isPaused(): Promise<boolean> {
      const pause = await store.sending.check(time.clock.now())
      looked(pause)
      return pause !== undefined
    },
    /** What a webhook or a report by mail answered: no time has passed since. */
    answered(pause: Pause | undefined): void {
      looked(pause)
      if (pausedSince === undefined && mustPause())
        witness.violation('courses go on though too much was reported', '')
    },
    heard(kind: Reported, byMail: boolean): void {
      account.push({ kind, byMail, at: time.clock.now() })
    },
    sent(): void {
      const at = time.clock.now()
      account.push({ kind: 'sent', byMail: false, at })
      store.sending
        .count([{ at, kind: 'sent', source: 'api', domain: 'other', count: 1 }])
        .catch((error: unknown) => witness.violation(`counting met a fault: ${String(error)}`, ''))
    },
    handedOver(enrolment: string): void {
      if (pausedSince !== undefined && time.elapsed() - pausedSince > MOST_TO_STOP_MS)
        witness.violation('a lesson while courses are paused', enrolment)
    },
  }
}
