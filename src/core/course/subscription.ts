import type { JobProblem } from '../delivery/retries.ts'
import type { LessonText } from '../mail/definition.ts'
import { NOTICES } from './definition.ts'
import type { HistoryEntry } from './history.ts'

export type SubscriptionState = 'unconfirmed' | 'confirmed' | 'unsubscribed'
export type TokenAnswer = 'confirmed' | 'invalid' | 'expired'

export interface Subscription {
  /** Random, URL-safe; safe to show to an operator. */
  readonly id: string
  /** As the visitor spelt it. */
  readonly address: string
  readonly course: string
  readonly state: SubscriptionState
  /** Rises each time that the course starts over (CONTRACT §5). */
  readonly enrolment: number
  /** UTC milliseconds. */
  readonly createdAt: number
  readonly confirmedAt: number | undefined
  readonly unsubscribedAt: number | undefined
  /** Lowest first. */
  readonly sentDays: readonly number[]
  /** Names of those lessons, for an enrolment that follows the newest course; undefined or fewer: not known. */
  readonly sentLessons?: readonly string[] | undefined
  /** How many lessons the course has, as this enrolment knows it. */
  readonly lessons: number
  /** How many it had when the course became shorter and so ended for this enrolment. */
  readonly promised?: number | undefined
  /** When the lesson in hand is due; the next attempt of one that failed is later. */
  readonly dueAt: number | undefined
  readonly lastSentAt: number | undefined
  /** The version of the course that it began with; undefined: it follows the newest. */
  readonly courseVersion: string | undefined
  /** IANA name; undefined: not known. */
  readonly timeZone: string | undefined
  /** A language tag; undefined: the platform's. */
  readonly language: string | undefined
  /** When the next lesson is to be tried; undefined when none is. */
  readonly nextAttemptAt: number | undefined
  readonly failures: number
  readonly problem: Problem | undefined
  /** Undefined: enrolled before this was recorded. */
  readonly consent?: Consent | undefined
}

/**
 * A subscription as a store keeps it: one row, claimed under a fencing number, of which only the holder may record an
 * outcome. Its changes are functions in `transitions/`; SQL writes their results, and those of claims.
 */
export interface SubscriptionRecord extends Subscription {
  /** The address in the form in which two spellings of it are the same. */
  readonly identity: string
  /** The stored list of sent days when it cannot be parsed: it is kept as it is, and nothing is sent until it is repaired. */
  readonly unreadableDays?: unknown
  /** The least row format that a build has to know to claim it. */
  readonly needs: number
  /** Rises with every claim and every change of state: an outcome that brings an older number came too late. */
  readonly fence: number
  /** When the day in hand was first tried; it lasts until that day is sent, because the message's Date comes from it. */
  readonly firstAttemptAt: number | undefined
  /** Set while the day's message is out. A claim that finds it set knows that the attempt before was lost. */
  readonly claimedAt: number | undefined
  /** End of the lease, by the store's clock: until then no other dispatcher may claim the lesson. */
  readonly leaseUntil: number | undefined
  /** The dispatch call that claimed it last: one message for each subscription a call. */
  readonly claimedBy: string | undefined
}

export interface Consent {
  readonly at: number
  readonly how: string
}

/**
 * Why a lesson waits: `parked` needs an operator, `failed` and `unknown` come back by themselves. `bounced` and
 * `suppressed` ended the subscription: its address does not exist, or may not be mailed.
 */
export interface Problem extends Pick<JobProblem, 'reason' | 'since'> {
  readonly kind: JobProblem['kind'] | 'suppressed'
}

/** What an enrolment that follows the newest course keeps of its lessons, because a number may name another one tomorrow. */
export interface Progress {
  readonly sentLessons: readonly string[]
  /** The row format that a build has to know to send the next lesson; older builds go by its number. */
  readonly needs: number
}

export interface Next {
  readonly dueAt: number
  /** How many lessons the course has by now. */
  readonly lessons: number
}

/** One lesson taken for sending, as its row is then. Only an outcome with this `fence` is accepted. */
export interface Claim extends SubscriptionRecord {
  readonly day: number
  readonly confirmedAt: number
  readonly dueAt: number
  /** When this day was first tried: the Date header, so that every attempt has the same bytes. */
  readonly firstAttemptAt: number
}

/** The record of a finished claim, computed by the pure schedule. */
export interface Settlement extends Pick<Subscription, 'nextAttemptAt' | 'failures' | 'problem'> {
  readonly claim: Claim
  readonly now: number
  readonly sent: boolean
  /** True if nothing was handed over: the same dispatch call may take it again. */
  readonly untried?: boolean
  /** How many lessons the course has by now; undefined: as many as before. */
  readonly lessons?: number
  /** With this lesson sent, for enrolments that follow the newest course. */
  readonly progress?: Progress | undefined
  /** A hard bounce ends the subscription. */
  readonly end: boolean
  readonly attempt?: Pick<HistoryEntry, 'outcome' | 'reason' | 'messageId' | 'providerId'>
}

export interface Revision {
  readonly progress: Progress
  /** The next lesson, if a shorter course had ended the enrolment and it goes on; undefined: nothing changes. */
  readonly next: Next | undefined
  /** It no longer waits for the course to become longer. */
  readonly settled: boolean
}

/** A course as it was when enrolments began with it, under a name made of its content. */
export interface PinnedPlan {
  readonly version: string
  /** JSON. */
  readonly plan: string
  readonly texts: readonly LessonText[]
}

export interface Start {
  readonly lessons: number
  /** Of the first lesson; undefined: none is planned yet. */
  readonly dueAt: number | undefined
  /** The plan that it keeps; undefined: it follows the newest. */
  readonly pinned?: PinnedPlan | undefined
}

/** Says how an enrolment begins; undefined: the platform no longer has that course. */
export type Begin = (enrolment: Pick<Claim, 'course' | 'confirmedAt' | 'timeZone'>) => Start | undefined

export interface Preferences {
  /** IANA name. */
  readonly timeZone?: string | undefined
  readonly language?: string | undefined
}

/** Somebody who is to get a course; the address has been parsed. */
export interface CourseRequest extends Preferences {
  readonly spelling: string
  readonly identity: string
  /** One of the platform's; default: its first. */
  readonly course?: string | undefined
}

export interface Joining extends Preferences, Pick<SubscriptionRecord, 'identity' | 'address' | 'course'> {
  /** Of a new subscription. */
  readonly id: string
  /** The key that all spellings of a mailbox share, for the caps. */
  readonly mailboxKey: string
  /** The hashes that an erasure of the address leaves: nobody who was erased is enrolled, imported or asked to confirm. */
  readonly erasureHashes?: readonly string[]
}

/** Somebody to import into a course, with lessons that were sent elsewhere. */
export interface Arrival extends Joining {
  /** The enrolments that came before this one, if its id is that of the import. */
  readonly before?: number
  readonly consent: Consent
  readonly start: Start
  readonly confirmedAt: number
  readonly sent: number
  readonly progress: Progress | undefined
  readonly lastSentAt: number | undefined
}

type Refused = 'unsubscribed' | 'suppressed' | 'erased'

/** `known`: in the course already, or through with it. */
export type Admitted = 'imported' | 'known' | Refused

/** `unsubscribed`: only the person can begin this course again. `conflict`: the key enrolled somebody else, or in another course. */
export type EnrolRefusal = Refused | 'already_enrolled' | 'no_such_course' | 'conflict'

/** The lowest unsent day, or undefined when all lessons were sent. */
export function nextDay({ sentDays, lessons }: Pick<Subscription, 'sentDays' | 'lessons'>) {
  // Nearly always in order.
  for (let day = 1; day <= lessons; day += 1)
    if (sentDays[day - 1] !== day && !sentDays.includes(day)) return day
  return undefined
}

/** In the middle of a course, or subscribed to notices, which have no end. */
export const isUnderWay = (record: Pick<Subscription, 'course' | 'state' | 'sentDays' | 'lessons'>) =>
  record.state === 'confirmed' && (record.course === NOTICES || nextDay(record) !== undefined)

/** Ended because no mail may go to its address; only an operator can change that. */
export const isSuppressed = ({ problem }: Pick<Subscription, 'problem'>): boolean =>
  problem?.kind === 'bounced' || problem?.kind === 'suppressed'
