import type { AuditEntry } from '../audit.ts'
import type { MessageSettlement, MessageStore, NewMessage, QueuedMessage } from '../delivery/messages.ts'
import type { Asked } from '../delivery/source.ts'
import type { LateLessons } from '../incidents/conditions.ts'
import type { NoticeMail } from '../incidents/incident.ts'
import type { LessonText } from '../mail/definition.ts'
import type { Keeps } from '../mail/send-once.ts'
import type { DispatchRequest } from './dispatch-request.ts'
import type { HistoryEntry, PastEntry } from './history.ts'
import type {
  Admitted,
  Arrival,
  Begin,
  Claim,
  EnrolRefusal,
  Joining,
  Preferences,
  Revision,
  Settlement,
  Subscription,
  SubscriptionState,
  TokenAnswer,
} from './subscription.ts'
import type { Resolution } from './transitions/claim.ts'
import type { redate } from './transitions/enrol.ts'

export interface Erased {
  readonly existed: boolean
  /** Invites, sign-in requests and records of sent mail that held the address. */
  readonly related: number
  /** False: the file could not be rewritten while another process reads it, and may still hold the bytes. */
  readonly bytesGone: boolean
}

export interface CourseCounts extends Omit<Backlog, 'due' | 'sending'> {
  readonly byCourse: Readonly<Record<string, Readonly<Record<SubscriptionState, number>>>>
  readonly byState: Readonly<Record<SubscriptionState, number>>
  /** Confirmed subscriptions by the lessons they were sent, from none to all of the longest course. */
  readonly byLessons: readonly number[]
  /** With those that are out for sending. */
  readonly dueNow: number
  /** Mails due in the next 24 hours, hour by hour, not counting those due now. */
  readonly dueByHour: readonly number[]
  readonly parked: number
  readonly unknown: number
}

export interface Backlog {
  /** Lessons that are due and can be sent now. */
  readonly due: number
  /** Lessons that are due and wait for their next attempt, because one failed. */
  readonly waiting: number
  /** Lessons that are out for sending, or were when their process was killed. */
  readonly sending: number
  /** UTC milliseconds of the first attempt of those that wait. */
  readonly nextTryAt: number | undefined
  /** UTC milliseconds at which the oldest lesson that is due became so, whatever was tried since. */
  readonly oldestDueAt: number | undefined
}

/** The result of an enrolment request. */
export type EnrolAnswer =
  | { readonly enrolled: true; readonly id: string; readonly enrolment: number }
  | { readonly enrolled: false; readonly reason: EnrolRefusal }

export interface TokenUse {
  readonly tokenHash: string
  readonly now: number
}

/** An operator's or a reader's change of a subscription. */
export interface Change {
  readonly id: string
  readonly now: number
  /** Written in the same transaction, if it changes anything. */
  readonly audit?: AuditEntry | undefined
}

/** When an enrolment's lesson in hand is due after a change; undefined: as before. */
export type Moved = (enrolment: Subscription) => number | undefined

/** What an attempt at a confirmation leaves behind. */
export interface CourseMessageSettlement extends MessageSettlement {
  /** Written into the history of its subscription in the same transaction. */
  readonly entry?: HistoryEntry | undefined
}

export interface CourseStore extends MessageStore<CourseMessageSettlement>, Keeps {
  /** What a queued notice says, and to whom, as things are now; undefined: there is no reason to send it any more. */
  noticeMail(asked: { readonly id: string; readonly now: number }): Promise<NoticeMail | undefined>
  /**
   * Stores a new confirmation token, with the message that mails it, and answers whether to mail it: not if the
   * mailbox had one for this course within the hour or three within the day, is confirmed with lessons left, or the
   * platform has reached its daily limit. Work and durable write are always the same, so that time tells nothing.
   */
  requestConfirmation(
    input: Omit<Joining, 'mailboxKey'> &
      TokenUse & {
        /** Default: the identity. */
        readonly mailboxKey?: string
        /** Confirmations that the whole platform may mail in 24 hours. */
        readonly mostADay?: number
        /** No mail is configured: the subscription is kept, and nothing is mailed or counted. */
        readonly withoutMail?: boolean
        readonly message?: Omit<NewMessage, 'payload'>
      },
  ): Promise<{
    readonly mail: boolean
    /** The platform has reached its daily limit, for every address alike. */
    readonly exhausted: boolean
    readonly suppressed?: boolean
    readonly message?: QueuedMessage | undefined
  }>
  /** The result that `confirm` would give, without changing anything; `use`: it would confirm. */
  checkToken(input: TokenUse): Promise<'use' | TokenAnswer>
  /**
   * Removes what was never confirmed and had its last link before that moment, a few hundred a transaction, with the
   * messages of all streams that were done with or expired before it, and the lessons noted for dispatch calls. Queues
   * confirmations that an older build could not deliver before it ended.
   */
  pruneUnconfirmed(before: number): Promise<void>
  /** Confirms by token hash; a second use of the same token says the same. */
  confirm(input: TokenUse & { readonly begin: Begin }): Promise<TokenAnswer | 'no_course'>
  /** Begins a course, once for each `key`: the same key again answers the same and changes nothing. */
  enrol(
    input: Joining & {
      readonly begin: Begin
      readonly now: number
      readonly key?: string | undefined
      /** Written in the same transaction, if somebody is enrolled; `subject` is the subscription. */
      readonly audit?: ((subject: string) => AuditEntry) | undefined
    },
  ): Promise<EnrolAnswer>
  /** Imports people in one transaction, and gives what became of each, in their order. */
  admit(
    input: Pick<Change, 'now' | 'audit'> & {
      readonly arrivals: readonly Arrival[]
      readonly dryRun: boolean
    },
  ): Promise<readonly Admitted[]>
  /** A page of all enrolments, by their ids. */
  page(after: string): Promise<readonly Subscription[]>
  /** `enrolment`: the number that its link has; a later one than the store knows was lost, and is kept out as well. */
  unsubscribe(input: Change & { readonly enrolment?: number | undefined }): Promise<void>
  undoUnsubscribe(input: Change): Promise<void>
  /** Changes the language or time zone of an enrolment, and of the confirmation that it waits for; false: nothing changed. */
  set(input: Change & Preferences & { readonly moved: Moved }): Promise<boolean>
  /**
   * Takes up to `limit` due lessons, none that this `call` took before: first those whose lease ran out, longest in
   * hand first, because the provider forgets their key; then up to `retries` of those that failed, then those that did
   * not, then further failed ones. So neither starves the other.
   */
  claimDue(
    input: Asked &
      DispatchRequest & {
        /** Names the dispatch call: one message for each subscription a call. */
        readonly call: string
        /** Leaves out lessons that were due when the one before was sent, for an hour after that. */
        readonly gentle?: boolean | undefined
      },
  ): Promise<readonly Claim[]>
  /** Renews for `leaseMs` what `call` has out, even if the subscriber left or came back meanwhile. */
  keep(
    input: Pick<Asked, 'now' | 'leaseMs'> & { readonly claims: readonly Claim[]; readonly call: string },
  ): Promise<void>
  /** Moves what a clock ahead has dated to `now`, and the next lesson with it. */
  redate(input: Pick<Change, 'id'> & Parameters<typeof redate>[1]): Promise<void>
  /** True while the claim still holds: not taken over, not unsubscribed. Asked just before handing over. */
  stillHolds(claim: Claim): Promise<boolean>
  /** Records several outcomes in one durable commit; what came too late is left out. */
  settle(settlements: readonly Settlement[]): Promise<void>
  /** Cheap enough for every scrape: reads the indexes of what is due, claimed or in trouble, and no other row. */
  backlog(now: number, request?: DispatchRequest): Promise<Backlog>
  /** When a lesson was last sent, by whichever process, within some seconds. */
  lastSentAt(): Promise<number | undefined>
  listDue(now: number, limit: number, request?: DispatchRequest): Promise<readonly Subscription[]>
  /** Whether a gentle claim would find a lesson now. One look into the index, unless much is overdue. */
  isDue(now: number): Promise<boolean>
  /** How many lessons were given up and wait for `course resolve`. Reads the index of what is in trouble. */
  undecided(): Promise<number>
  /** The lessons that could have left by `before`, and did not. */
  late(asked: { readonly now: number; readonly before: number }): Promise<LateLessons>
  /** `lessons`: of the longest course. */
  counts(now: number, lessons?: number): Promise<CourseCounts>
  findPerson(identity: string): Promise<readonly Subscription[]>
  /** The enrolment of a person in a course; without one, the oldest. */
  find(identity: string, course?: string): Promise<Subscription | undefined>
  /** Revises a page of enrolments; gives the id to go on after. `cut`: only those that a shorter course ended. */
  review(input: {
    readonly after: string
    readonly cut: boolean
    readonly revise: (enrolment: Subscription) => Revision | undefined
  }): Promise<string | undefined>
  /** The lessons by name that people under way in a course were sent, and how many people. */
  sentNames(course: string): Promise<ReadonlyMap<string, number>>
  /** The courses besides the `known` that people are in the middle of, and how many people. Reads every row. */
  removedCourses(
    known: readonly string[],
  ): Promise<readonly { readonly course: string; readonly people: number }[]>
  pinnedPlan(input: { readonly course: string; readonly version: string }): Promise<string | undefined>
  lessonText(hash: string): Promise<LessonText | undefined>
  /** Deletes plans that nobody has followed for a day, but those in `keep`, and texts that no plan names. */
  prunePlans(input: { readonly keep: readonly string[]; readonly now: number }): Promise<void>
  findById(id: string): Promise<Subscription | undefined>
  /** Oldest first, those after one that was listed before. */
  listProblems(
    limit: number,
    after?: { readonly since: number; readonly id: string },
  ): Promise<readonly Subscription[]>
  /**
   * Removes the address and all about it, and leaves a keyed hash so that it is not mailed again. `spellings` are the
   * address as rows may have it, in lower case; `recipients` are what records of sent mail hold.
   */
  erase(input: {
    readonly identity: string
    readonly spellings: readonly string[]
    readonly suppressionHash: string
    readonly recipients: readonly string[]
    readonly now: number
    /** Written in the same transaction. */
    readonly audit?: AuditEntry
  }): Promise<Erased>
  /** Replaces the token of a mail that cannot be made again: another key of links, or an older build. */
  renewConfirmation(input: TokenUse & { readonly id: string }): Promise<boolean>
  /** Writes an entry into the history of a subscription, unless that was erased. */
  remember(subscription: string, entry: HistoryEntry): Promise<void>
  /** The newest entries of a subscription, oldest first. */
  history(subscription: string): Promise<readonly PastEntry[]>
  /** Puts a parked or unknown lesson back in line, or marks it sent. */
  resolve(input: Change & Resolution): Promise<boolean>
}
