import type { Pacer } from '../mail/feedback/pacer.ts'
import type { SendOutcome, WaitUntilRecorded } from '../mail/mailer.ts'
import type { Delivery, Job, JobRecord, Stream } from './retries.ts'

export interface Ready {
  readonly handOver: (signal: AbortSignal, recorded: WaitUntilRecorded) => Promise<SendOutcome>
}

export interface Attempted<Claim, Prepared extends Ready = Ready> {
  readonly claim: Claim
  readonly delivery: Delivery
  readonly record: JobRecord
  readonly now: number
  /** Undefined: the job never got that far. */
  readonly prepared: Prepared | undefined
}

export interface Asked {
  readonly now: number
  readonly limit: number
  /** How many of them may be jobs that failed before. */
  readonly retries: number
  /** Measured by the store's own clock, which all that share the store agree on, and not by `now`. */
  readonly leaseMs: number
}

/** Where the jobs of one stream come from, and what becomes of them. */
export interface Source<Claim, Prepared extends Ready = Ready> {
  readonly stream: Stream
  /** How many messages are out at once, and how long one may take. */
  readonly lines: number
  readonly patienceMs: number
  /** The pace that all senders of the store share; default: as fast as the transport carries. */
  readonly pace?: Pick<Pacer, 'places' | 'giveBack'> | undefined
  /** Why nothing of it may leave now. Asked before each attempt, so keep the answer for a while. */
  readonly held?: () => Promise<string | undefined>
  /** Whether anything is due; asked before a place within the pace is waited for. */
  readonly isDue?: () => Promise<boolean>
  readonly claim: (asked: Asked) => Promise<readonly Claim[]>
  readonly keep: (claims: readonly Claim[], leaseMs: number) => Promise<void>
  readonly jobOf: (claim: Claim) => Job
  /** Composes a job; or what becomes of it without an attempt. */
  readonly prepare: (claim: Claim) => Promise<Prepared | Delivery>
  /** Asked just before a job is handed over: what becomes of it if that is not to be. */
  readonly lastLook?: ((claim: Claim) => Promise<Delivery | undefined>) | undefined
  /** Whether it was refused so before, and others were taken since: the refusal is about its own message. */
  readonly isRefusedAlone?: (claim: Claim, reason: string) => boolean
  readonly settle: (attempted: readonly Attempted<Claim, Prepared>[]) => Promise<void>
  /** Told of each outcome once it is recorded; `answer` is what the provider said, whatever was made of it. */
  readonly tell: (attempted: Attempted<Claim, Prepared>, answer: Delivery) => void
}
