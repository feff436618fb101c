import { HOUR_MS } from '../durations.ts'
import type { Mailer, Outcome, SendOutcome } from '../mail/mailer.ts'
import type { Stream } from './streams.ts'

/**
 * What became of one attempt at a job. The mailer's outcomes, and: `over`: there is no reason to send it any more;
 * `untried`: nothing was handed over, and nothing is known against it; `again`: as `untried`, but not by the same call;
 * `gone`: the claim is no longer ours; `finished`: nothing is left to send.
 */
export type Delivery =
  | SendOutcome
  | { readonly kind: 'over'; readonly reason?: string | undefined }
  | { readonly kind: 'untried'; readonly reason?: string }
  | { readonly kind: 'again' | 'gone' | 'finished' }

const OUTCOMES: ReadonlySet<Delivery['kind']> = new Set<Outcome['kind']>([
  'sent',
  'transient',
  'permanent',
  'unknown',
])
/** Whether an attempt was made. */
export const isOutcome = (delivery: Delivery): delivery is Outcome => OUTCOMES.has(delivery.kind)
/** Whether an attempt was made, or a fault of ours kept it from being made. */
export const isAnswer = (delivery: Delivery): delivery is SendOutcome =>
  isOutcome(delivery) || delivery.kind === 'not_configured' || delivery.kind === 'not_composed'

/** Why a job waits or is over: `parked` was given up, `bounced` is a dead address. */
export interface JobProblem {
  readonly kind: 'failed' | 'unknown' | 'parked' | 'bounced'
  readonly reason: string
  readonly since: number
}

export interface Job {
  /** Not before this, even if the clock was set back since the claim. */
  readonly dueAt: number
  readonly failures: number
  /** Since when an attempt with an unknown outcome may have delivered it. */
  readonly unknownSince: number | undefined
  /** It has a problem that an attempt left behind, so it is no first attempt. */
  readonly wasTried: boolean
  /** For the end of an alert: it is tried beyond the last attempt of its stream, until one may have delivered it. */
  readonly untilTaken?: boolean
}

/** What is written of an attempt, whatever the job is. */
export interface JobRecord {
  /** `over`: nothing more is tried; `skipped`: what comes after it goes on; `finished`: nothing does. */
  readonly result: 'sent' | 'skipped' | 'over' | 'waits' | 'finished'
  /** Of `waits`: UTC milliseconds. */
  readonly nextAttemptAt: number
  readonly failures: number
  /** Undefined: as it was, if the job waits; none otherwise. */
  readonly problem: JobProblem | undefined
  /** Nothing was handed over: the same call may take it again. */
  readonly untried: boolean
}

interface At {
  readonly now: number
  /** In [0, 1): spreads the retries of many jobs. */
  readonly fraction: number
  readonly stream: Stream
}

/**
 * Providers remember an idempotency key for 24 hours. An unknown outcome is not retried after 20: the wall clock may
 * be stepped back meanwhile, and an attempt takes its time to arrive.
 */
export const KEY_LIFE_MS = 20 * HOUR_MS
/** Whether the provider no longer knows the key of an attempt that it may have delivered: another could be a second delivery. */
export const isForgotten = (
  { unknownSince }: Pick<Job, 'unknownSince'>,
  { transport }: Pick<Mailer, 'transport'>,
  now: number,
) => transport === 'api' && unknownSince !== undefined && now - unknownSince >= KEY_LIFE_MS
/** The longest pause before a repeat that may be a second delivery. */
const REPEAT_MS = 6 * HOUR_MS

type Rules = {
  readonly [Kind in Delivery['kind']]: (
    job: Job,
    delivery: Extract<Delivery, { readonly kind: Kind }>,
    at: At,
  ) => JobRecord
}

const ended =
  (result: Exclude<JobRecord['result'], 'waits'>) =>
  ({ failures }: Job): JobRecord => ({
    result,
    nextAttemptAt: 0,
    failures,
    problem: undefined,
    untried: result === 'finished',
  })
/** Tried again at that time, with the problem that it has. */
const later = ({ dueAt, failures }: Job, at: number): JobRecord => ({
  result: 'waits',
  nextAttemptAt: Math.max(at, dueAt),
  failures,
  problem: undefined,
  untried: false,
})
const ours = (job: Job, _: unknown, { now, stream }: At) => later(job, now + stream.oursMs)

/** What an attempt's outcome records, and when the next one comes. Of lessons and notices, `refusals.ts` first says whose fault a refusal is. */
const RECORD: Rules = {
  sent: ended('sent'),
  over: (job, { reason }, { now }) => ({
    ...ended('skipped')(job),
    problem: reason === undefined ? undefined : { kind: 'parked', reason, since: now },
  }),
  finished: ended('finished'),
  again: ours,
  gone: (job, _, { now }) => later(job, now),
  // A first attempt that was not made keeps its place in line; any other goes to the end.
  untried: (job, _, { now }) => ({ ...later(job, job.wasTried ? now : job.dueAt), untried: true }),
  // Our own configuration or texts: no provider was asked, and no failure is counted.
  not_configured: ours,
  not_composed: ours,
  permanent(job, { hardBounce, reason }, at) {
    // A full mailbox, for one, takes it later.
    if (job.untilTaken && !hardBounce)
      return recordOf(job, { kind: 'transient', scope: 'message', reason }, at)
    const problem = { kind: hardBounce ? 'bounced' : 'parked', reason, since: at.now } as const
    return { ...ended('over')(job), failures: job.failures + 1, problem }
  },
  unknown(job, { reason }, at) {
    const { stream, now } = at
    const failures = job.failures + 1
    const problem = { kind: 'unknown', reason, since: job.unknownSince ?? now } as const
    const isLast = stream.countsAll && failures >= stream.most
    const leastMs = stream.repeatsRarely ? Math.min(now - problem.since, REPEAT_MS) : 0
    return retried(job, { problem, failures, leastMs, isLast }, at)
  },
  transient(job, { reason, scope, retryAfterMs = 0 }, at) {
    const { unknownSince } = job
    const { stream, now } = at
    // What is about all messages counts against none, unless the stream counts attempts.
    const failures = job.failures + (scope === 'message' || stream.countsAll ? 1 : 0)
    const kind = unknownSince === undefined ? 'failed' : 'unknown'
    const problem = { kind, reason, since: unknownSince ?? now } as const
    const isLast = !job.untilTaken && failures >= stream.most
    // A transport from outside may ask for anything.
    const leastMs = retryAfterMs > 0 ? Math.min(retryAfterMs, HOUR_MS) : 0
    return retried(job, { problem, failures, leastMs, isLast }, at)
  },
}

/** Tried again after a pause, unless this was the last attempt, or the provider would not recognize a repeat then. */
function retried(
  job: Job,
  after: {
    readonly problem: JobProblem
    readonly failures: number
    readonly leastMs: number
    readonly isLast: boolean
  },
  { now, fraction, stream }: At,
): JobRecord {
  const { problem, failures, leastMs, isLast } = after
  const nextAttemptAt = Math.max(now + Math.max(leastMs, stream.pauseMs(job.failures, fraction)), job.dueAt)
  const willBeForgotten =
    stream.parksUnknown && problem.kind === 'unknown' && nextAttemptAt - problem.since >= KEY_LIFE_MS
  const isOver = isLast || willBeForgotten
  return {
    result: isOver ? 'over' : 'waits',
    nextAttemptAt,
    failures,
    problem: isOver && problem.kind === 'failed' ? { ...problem, kind: 'parked' } : problem,
    untried: false,
  }
}

/** What to record of an attempt. Pure, so that the simulation and every store share it. */
export function recordOf(job: Job, delivery: Delivery, at: At): JobRecord {
  // The key and the value come from one delivery, which the compiler does not follow through an index.
  const rule = RECORD[delivery.kind] as (job: Job, delivery: Delivery, at: At) => JobRecord
  return rule(job, delivery, at)
}
