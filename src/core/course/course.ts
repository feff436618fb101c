import type { Operator } from '../audit.ts'
import type { CourseDefinition } from './definition.ts'
import type { PastEntry } from './history.ts'
import type { ExportedPerson, Newcomer } from './people.ts'
import type {
  Admitted,
  Backlog,
  CourseCounts,
  EnrolAnswer,
  Erased,
  Preferences,
  Subscription,
} from './store.ts'

/** The result of `subscribe`: the same for a known and an unknown address (CONTRACT §4). */
export interface SubscribeResult {
  readonly status: 'pending'
  /**
   * A confirmation mail is on its way, if one is due to this address. False only if mail is not configured or
   * the platform has reached its daily limit.
   */
  readonly sent: boolean
  readonly reason?: string
}

export interface DispatchResult {
  readonly processed: number
  readonly sent: number
  readonly failed: number
  readonly unknown: number
  /** Lessons due that this call left. */
  readonly remaining: number
  /** Lessons that are due and wait for their next attempt, because one failed; absent when none does. */
  readonly waiting?: number
  /** ISO 8601: the first of those attempts. */
  readonly nextTryAt?: string
  /** Infinity for a run without one. */
  readonly limit: number
  readonly reason?: string
  readonly results: readonly {
    readonly subscription: string
    readonly day: number
    readonly sent: boolean
    readonly reason?: string
  }[]
}

/** The reason of a dispatch call that ended because its time was over, with lessons left. */
export const OUT_OF_TIME = 'the time for one call is over'
/** The reason of a call that its caller or a shutdown ended, with lessons left. */
export const STOPPED = 'it was stopped before all that is due was sent'
/** CONTRACT §12: the reason of a call that sends nothing because its stream is paused. */
export const PAUSED = 'paused'

/** Somebody who is to get a course; `address` has been parsed. */
interface Request extends Preferences {
  readonly spelling: string
  readonly identity: string
  /** One of the platform's; its first when left out. */
  readonly course?: string | undefined
}

/** What an unsubscribe link says. */
interface Link {
  readonly s: string
  readonly t: string
}

/** The courses of a platform as their callers see them: routes, schedule and CLI enter here. */
export interface Course {
  /** The mail goes out after the answer, which therefore takes the same time for all. */
  subscribe(request: Request): Promise<SubscribeResult>
  /**
   * Mails a new link to an unconfirmed subscription, within the limits of `subscribe`; `none` when there is none. With
   * `wait`, and without a persistent store, gives what became of the first attempt.
   */
  confirmAgain(
    identity: string,
    options?: { readonly wait?: boolean },
  ): Promise<
    | { readonly kind: 'none' }
    | { readonly kind: 'sent'; readonly id: string; readonly queued?: true }
    | { readonly kind: 'not_sent'; readonly reason: string }
  >
  /**
   * Begins a course for somebody who agreed to it elsewhere, without a confirmation mail. The same `key` again answers
   * the same and changes nothing. With an `operator`, the audit log has it, here and in `cancel`.
   */
  enrol(request: Request & { readonly key?: string | undefined }, operator?: Operator): Promise<EnrolAnswer>
  /** Ends a course for a person, as an unsubscribe does; false: there was nothing to end. */
  cancel(request: Pick<Request, 'identity' | 'course'>, operator?: Operator): Promise<boolean>
  /**
   * Changes the language or time zone of a person's enrolments, or of one by its course or id; lessons that were not
   * tried yet follow. Gives how many enrolments were found.
   */
  set(
    request: Preferences & Pick<Request, 'course'> & (Pick<Request, 'identity'> | { readonly id: string }),
    operator?: Operator,
  ): Promise<number>
  /** Every enrolment, or those in one course, a page at a time. */
  people(course?: string): AsyncIterable<readonly ExportedPerson[]>
  /** Imports people, a few hundred a transaction, and gives what became of each; a second time changes nothing. */
  admit(
    people: readonly Newcomer[],
    options: { readonly dryRun: boolean; readonly file: string },
    operator: Operator,
  ): AsyncIterable<readonly { readonly line: number; readonly became: Admitted | 'erased' }[]>
  /** Changes the language or time zone of the subscription that an unsubscribe link names; never tells whether it did. */
  preferByLink(link: Link, wanted: Preferences): Promise<void>
  /** The lesson whose page a signed link opens; undefined for a link that we did not make. */
  lessonOfLink(link: { readonly course: string; readonly t: string }): string | undefined
  confirm(token: string): Promise<'confirmed' | 'invalid' | 'expired'>
  /** The courses of the platform. */
  readonly courses: readonly CourseDefinition[]
  /** The answer that `confirm` would give, without changing anything; `use`: it would confirm now. */
  checkToken(token: string): Promise<'use' | 'confirmed' | 'invalid' | 'expired'>
  /** Never tells whether the link was genuine. */
  unsubscribe(link: Link): Promise<void>
  /** Undoes an unsubscribe made through this very link; never tells whether it did. */
  undoUnsubscribe(link: Link): Promise<void>
  /** At most one message per subscription. Rejects with `store_not_persistent` on the in-memory store. */
  dispatch(options: {
    readonly limit: number
    /** Calls of one run send at most one message per subscription together; default: a run of its own. */
    readonly run?: string
    /** A lesson that was due already when the one before was sent waits for an hour, so that no outage ends in a burst. */
    readonly gentle?: boolean
    /** Ends the call after this time, with the reason `OUT_OF_TIME` if lessons are left. */
    readonly forMs?: number
    readonly signal?: AbortSignal
    readonly onProgress?: (result: DispatchProgress) => void
  }): Promise<DispatchResult>
  /** Sends the confirmations, notices and queued mails that are due, whichever process stored them; gives how many left. */
  deliverMessages(): Promise<number>
  /** Starts that, and waits for nothing. */
  wake(): void
  counts(): Promise<CourseCounts>
  /** The lessons that a course no longer has and people in the middle of it were sent, and how many people. */
  deletedLessons(course: string): Promise<readonly { readonly lesson: string; readonly people: number }[]>
  /** Cheap enough for every scrape. */
  backlog(): Promise<Backlog>
  due(limit: number): Promise<readonly Subscription[]>
  problems(limit: number): Promise<readonly Subscription[]>
  /** The enrolment of a person in a course; without one, the oldest. */
  find(identity: string, course?: string): Promise<Subscription | undefined>
  /** Every enrolment of a person. */
  findPerson(identity: string): Promise<readonly Subscription[]>
  findById(id: string): Promise<Subscription | undefined>
  /** The history of a subscription, oldest entry first. */
  history(id: string): Promise<readonly PastEntry[]>
  /** The Message-ID of the lesson in hand; undefined when there is none, or mail is not configured here. */
  messageIdOf(
    subscription: Pick<
      Subscription,
      'id' | 'course' | 'courseVersion' | 'enrolment' | 'sentDays' | 'sentLessons' | 'lessons'
    >,
  ): Promise<string | undefined>
  /** `operator` is who the audit log names, here and below; default: the embedding program. */
  erase(identity: string, operator?: Operator): Promise<Erased>
  resolve(id: string, as: 'retry' | 'sent', operator?: Operator): Promise<boolean>
  /**
   * Decides about all deliveries that wait for it, or about those whose reason holds a text (bounced ones included);
   * gives how many.
   */
  resolveAll(as: 'retry' | 'sent', reason?: string, operator?: Operator): Promise<number>
  /** Deletes what the store keeps of courses as they were, once nobody follows it any more. */
  prunePlans(): Promise<void>
  /** Ends dispatch calls after the messages in flight, and waits for them; a new one sends nothing. */
  stopDispatching(): Promise<void>
  /** Waits for mails that are on their way. */
  close(): Promise<void>
}

export interface DispatchProgress {
  readonly subscription: string
  readonly day: number
  readonly outcome: 'sent' | 'failed' | 'unknown'
}
