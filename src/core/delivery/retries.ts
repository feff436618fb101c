import { DAY_MS, HOUR_MS, KEY_LIFE_MS, MINUTE_MS } from '../durations.ts'
import type { StreamName } from '../mail/holds.ts'
import type { Mailer, Outcome, SendOutcome } from '../mail/mailer.ts'

/** What failed: the scope of a transient outcome, or what became of the message otherwise. */
type Failure = Extract<Outcome, { kind: 'transient' }>['scope'] | 'refused' | 'dead' | 'unknown' | 'ours'

/**
 * How a retry is decided: by the row of what failed, and by the numbers of the stream (below). Which answer of a
 * provider is which failure is in `mail/outcome.ts`; a new one is also a scope in `mail/mailer.ts`, and the compiler
 * names the page that lists them. A run asks the row; `refusals.ts` finds out whether a `judged` one is about all mail.
 */
export const FAILURES: Readonly<Record<Failure, Rule>> = {
  /** It may be taken later: greylisting, a full disk, an API's 5xx; every failure of an alert's webhook. */
  message: { problem: 'failed', counts: true, tries: 'most', run: 'goes on' },
  /** Refused for good, or refused as `sender` while others are taken. */
  refused: { problem: 'failed', counts: true, tries: 1, run: 'judged' },
  /** There is no such address. */
  dead: { problem: 'bounced', counts: true, tries: 1, run: 'goes on' },
  /** Perhaps for our key, our sender or our texts. */
  sender: { problem: 'failed', counts: 'countsAll', tries: 'most', run: 'judged' },
  /** No connection, or a rate limit; one of seconds is waited out. */
  connection: { problem: 'failed', counts: 'countsAll', tries: 'most', run: 'ends' },
  /** No answer, so it may have been delivered. So may a claim whose process ended before it recorded an outcome. */
  unknown: { problem: 'unknown', counts: true, tries: 'mostUnknown', run: 'counted' },
  /** Our own configuration or texts: no provider was asked. */
  ours: { counts: false, tries: Number.POSITIVE_INFINITY, pause: 'oursMs', run: 'counted' },
}

interface Rule {
  /** What is noted of the message; `failed` becomes `parked` when it is given up. Default: what it has. */
  readonly problem?: Exclude<JobProblem['kind'], 'parked'>
  /** Whether the attempt is one of `tries`. */
  readonly counts: boolean | 'countsAll'
  /** How many attempts of any kind may fail: 4 is a first and three more. A number holds whatever one may have delivered. */
  readonly tries: number | 'most' | 'mostUnknown'
  /** In place of the stream's growing `pauseMs`, in every stream; the answer can only lengthen it. */
  readonly pause?: number | 'oursMs'
  /**
   * `counted`: equal ones in a row end a run of many; each still counts. `judged`: these too, and then hold nothing against
   * a message. What leaves many at once never gets to the `tries` of a `judged` one: it is final, or as if never tried.
   */
  readonly run: 'goes on' | 'counted' | 'judged' | 'ends'
}

export interface Stream {
  readonly name: StreamName
  /** The pause after a failed attempt; `failures`: how many failed before it. */
  readonly pauseMs: (failures: number, fraction: number) => number
  /** The attempts after which a message is given up, and after which one is that may have been delivered. */
  readonly most: number
  readonly mostUnknown: number
  /** Failures of the connection or the sender count as well. */
  readonly countsAll: boolean
  /** Left to an operator once a provider may have forgotten the key of an unknown outcome. */
  readonly parksUnknown: boolean
  /** Nobody recognizes a repeat: after an unknown outcome they become rarer for as long as that goes on. */
  readonly repeatsRarely?: boolean
  /** Many leave at once: claimed ahead, recorded together, and a refusal is judged by what becomes of the others. */
  readonly isBulk?: true
  /** When what our own configuration or texts kept from leaving is tried again. */
  readonly oursMs: number
}

/** A mail that leaves because of something that happened once: tried until it expires. */
const message = (name: Stream['name'], firstMs: number, longestMs: number): Stream => ({
  name,
  // `fraction` in [0, 1) spreads the retries of many jobs over the upper half of their interval.
  pauseMs(failures, fraction) {
    const full = Math.min(longestMs, firstMs * 2 ** Math.min(failures, 20))
    return Math.round(Math.max(firstMs, full / 2 + (full / 2) * fraction))
  },
  most: Number.POSITIVE_INFINITY,
  mostUnknown: Number.POSITIVE_INFINITY,
  countsAll: true,
  parksUnknown: false,
  oursMs: Math.min(10 * MINUTE_MS, longestMs),
})

/**
 * First retry after ≥ 5 minutes, because of greylisting. The schedule leaves a failing provider alone for the same time
 * (`course/hours.ts`). A lesson is parked after 12 failures, once others are taken.
 */
export const COURSE: Stream = {
  ...message('course', 5 * MINUTE_MS, 6 * HOUR_MS),
  most: 12,
  countsAll: false,
  parksUnknown: true,
  oursMs: 0,
  isBulk: true,
}
export const CONFIRMATION = message('confirmation', 5 * MINUTE_MS, HOUR_MS)
/** Somebody waits for it, and its link works for a short time only. */
export const SIGN_IN = message('sign-in', MINUTE_MS / 2, 5 * MINUTE_MS)
// Hourly for ten hours: a channel that is back must not hear of an outage the next morning.
const ALERT_PAUSES_MS = [15_000, MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, ...Array<number>(10).fill(HOUR_MS)]
/** Somebody should know soon; nobody waits for it after half a day. */
export const ALERT: Stream = {
  ...message('alert', MINUTE_MS, HOUR_MS),
  pauseMs: (failures) => ALERT_PAUSES_MS[failures] ?? 6 * HOUR_MS,
  most: ALERT_PAUSES_MS.length + 1,
  mostUnknown: 8,
}
/** News for visitors: as many at once as there are subscribers. */
export const NOTICE: Stream = { ...message('notice', 5 * MINUTE_MS, HOUR_MS), isBulk: true }
export const MAIL = message('mail', 5 * MINUTE_MS, HOUR_MS)
/** A mail of these streams is not sent any more after this. */
export const EXPIRES_MS = { 'sign-in': HOUR_MS, mail: 3 * DAY_MS } as const

/** Whether the provider no longer knows the key of an attempt that it may have delivered: another could be a second delivery. */
export const isForgotten = ({ unknownSince }: Partial<Job>, { transport }: Mailer, now: number) =>
  transport === 'api' && unknownSince !== undefined && now - unknownSince >= KEY_LIFE_MS
/** The longest pause before a repeat that may be a second delivery. */
const REPEAT_MS = 6 * HOUR_MS

/**
 * What became of one attempt at a job. The mailer's outcomes, and: `over`: there is no reason to send it any more;
 * `untried`: nothing was handed over, and nothing is known against it; `again`: as `untried`, but not by the same call;
 * `gone`: the claim is no longer ours; `finished`: nothing is left to send.
 */
export type Delivery =
  | SendOutcome
  | { readonly kind: 'over'; readonly reason?: string | undefined }
  | { readonly kind: 'untried'; readonly reason?: string }
  | { readonly kind: 'again' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'finished' }

const OUTCOMES = new Set<Delivery['kind']>(['sent', 'transient', 'permanent', 'unknown'])
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
  /** Since its last attempt. If not, all mail may fail, and it is tried beyond the last attempt of its stream. */
  readonly areOthersTaken?: boolean
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

/** What to record of an attempt. Pure, so that the simulation and every store share it. */
export function recordOf(job: Job, delivery: Delivery, at: At): JobRecord {
  const { now } = at
  const kept = { nextAttemptAt: 0, failures: job.failures, problem: undefined, untried: false }
  const later = (time: number) =>
    ({ ...kept, result: 'waits', nextAttemptAt: Math.max(time, job.dueAt) }) as const
  if (delivery.kind === 'sent') return { ...kept, result: 'sent' }
  if (delivery.kind === 'over') {
    const { reason } = delivery
    const problem = reason === undefined ? undefined : ({ kind: 'parked', reason, since: now } as const)
    return { ...kept, result: 'skipped', problem }
  }
  if (delivery.kind === 'finished') return { ...kept, result: 'finished', untried: true }
  if (delivery.kind === 'again' || delivery.kind === 'gone') return later(now + at.stream.oursMs)
  // A first attempt that was not made keeps its place in line; any other goes to the end.
  if (delivery.kind === 'untried') return { ...later(job.wasTried ? now : job.dueAt), untried: true }
  return recordOfFailure(job, delivery, at)
}

type Failed = Exclude<SendOutcome, { kind: 'sent' }>

export function ruleOf(delivery: Failed): Rule {
  if (delivery.kind === 'transient') return FAILURES[delivery.scope]
  if (delivery.kind === 'permanent') return FAILURES[delivery.hardBounce ? 'dead' : 'refused']
  return FAILURES[delivery.kind === 'unknown' ? 'unknown' : 'ours']
}

/** Tried again after a pause, unless this was the last attempt, or the provider would not recognize a repeat then. */
function recordOfFailure(job: Job, delivery: Failed, { now, fraction, stream }: At): JobRecord {
  const { unknownSince, dueAt } = job
  const { reason } = delivery
  const { problem: noted, counts, tries, pause } = ruleOf(delivery)
  const failures = job.failures + Number(counts === 'countsAll' ? stream.countsAll : counts)
  const goesOn = job.untilTaken || (tries === 'most' && job.areOthersTaken === false)
  const isLast =
    failures >= (typeof tries === 'number' ? tries : stream[tries]) && !(noted === 'failed' && goesOn)
  if (isLast && typeof tries === 'number') {
    const problem = { kind: noted === 'bounced' ? noted : 'parked', reason, since: now } as const
    return { result: 'over', nextAttemptAt: 0, failures, problem, untried: false }
  }
  const since = unknownSince ?? now
  const kind = noted === 'failed' && unknownSince !== undefined ? 'unknown' : noted
  const pauseMs = pause === 'oursMs' ? stream.oursMs : (pause ?? stream.pauseMs(job.failures, fraction))
  const nextAttemptAt = Math.max(now + Math.max(leastMs(delivery, now - since, stream), pauseMs), dueAt)
  const willBeForgotten = stream.parksUnknown && kind === 'unknown' && nextAttemptAt - since >= KEY_LIFE_MS
  const isOver = isLast || willBeForgotten
  return {
    result: isOver ? 'over' : 'waits',
    nextAttemptAt,
    failures,
    problem: kind && { kind: isOver && kind === 'failed' ? 'parked' : kind, reason, since },
    untried: false,
  }
}

function leastMs(delivery: Failed, unknownMs: number, { repeatsRarely }: Stream): number {
  if (delivery.kind === 'unknown') return repeatsRarely ? Math.min(unknownMs, REPEAT_MS) : 0
  // A transport from outside may ask for anything.
  const { retryAfterMs = 0 } = delivery.kind === 'transient' ? delivery : {}
  return retryAfterMs > 0 ? Math.min(retryAfterMs, HOUR_MS) : 0
}
