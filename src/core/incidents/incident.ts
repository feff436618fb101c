import type { AuditEntry } from '../audit.ts'
import type { MessageSettlement, MessageStore, QueuedMessage } from '../delivery/messages.ts'
import { DAY_MS } from '../durations.ts'
import { inLanguage } from '../mail/template.ts'

/** An outage with one root cause, from its opening to its closing. Times are UTC milliseconds. */
export interface StoredIncident {
  readonly id: string
  /** The failing probe, the same whichever service saw it. At most one open incident has it. */
  readonly cause: string
  /** The service that saw it first. */
  readonly service: string
  readonly reason: string | undefined
  /** Names of the other services and probes that fail for this cause. */
  readonly affected: readonly string[]
  readonly openedAt: number
  readonly seenAt: number
  readonly closedAt: number | undefined
  readonly acknowledgedAt: number | undefined
  readonly acknowledgedBy: string | undefined
  /** The operator who closed it by hand, and why; undefined if it goes on, or ended when its cause recovered. */
  readonly resolvedBy?: string | undefined
  readonly resolvedReason?: string | undefined
  /** It ended, and its cause fails again: another incident has it. */
  readonly failsAgain?: boolean
}

/** Causes that only a start that is refused sees. */
export const SEEN_AT_STARTS: readonly string[] = ['start_refused', 'half_configured']

/** Of an incident that goes on, and that nobody looks at yet. */
export const UNATTENDED = { closedAt: undefined, acknowledgedAt: undefined, acknowledgedBy: undefined }

export type MessageKind = 'opened' | 'acknowledged' | 'closed' | 'test' | `reminder-${number}`

export interface MessageKey {
  /** The id of an incident, or of a test alert. */
  readonly incident: string
  readonly kind: MessageKind
  /** `webhook`, `escalation`, `mail` or `subscribers`. */
  readonly channel: string
}

export interface MessageRecord extends MessageKey {
  readonly outcome: 'pending' | 'sent' | 'failed'
  readonly attempts: number
  readonly at: number
  readonly reason: string | undefined
}

export interface Silence {
  readonly from: number
  readonly until: number
  readonly reason: string
  readonly by: string
}

/** An operator's message to visitors on the status page. */
export interface Announcement {
  readonly id: string
  /** Plain text, in the platform's language. */
  readonly text: string
  /** The text in other languages, by language tag in lower case. */
  readonly translations?: Readonly<Record<string, string>> | undefined
  /** UTC milliseconds; in the future for what is planned. */
  readonly from: number
  /** UTC milliseconds; undefined until somebody withdraws it. */
  readonly until: number | undefined
  readonly by: string
  readonly updates?: readonly StatusUpdate[]
}

/** What operators say about where they are with an incident or an announcement. */
export const UPDATE_STATES = ['identified', 'monitoring', 'resolved', 'postmortem'] as const

/** What an announcement says in a language, else in its base language, else in the platform's. */
export function saidIn({ text = '', translations = {} }: Partial<NoticeFacts>, language: string): string {
  const tag = inLanguage((one) => Object.hasOwn(translations, one), language)
  return (tag === undefined ? undefined : translations[tag]) ?? text
}

/** Whether an announcement is still to come, is current, or was resolved before its end. */
export function announcementKind({ from, updates = [] }: Announcement, now: number) {
  if (updates.findLast(({ state }) => state !== undefined)?.state === 'resolved') return 'resolved'
  return from > now ? 'planned' : 'current'
}

/** An operator's message to visitors about how an incident or an announcement goes on. */
export interface StatusUpdate {
  readonly id: string
  /** The id of the incident or the announcement. */
  readonly subject: string
  readonly at: number
  readonly text: string
  readonly state: (typeof UPDATE_STATES)[number] | undefined
  readonly by: string
  /** The cause and the beginning of the incident; undefined for an announcement. */
  readonly cause?: string | undefined
  readonly openedAt?: number | undefined
}

/** Something to tell a platform's subscribers. Times are UTC milliseconds. */
export interface Notice {
  /** The id of an incident, of an announcement, or of an update of one. */
  readonly subject: string
  readonly kind: 'opened' | 'closed' | 'announced'
  readonly at: number
  readonly facts: NoticeFacts
}

/** Content of a notice; never reasons, addresses or commands, which are for operators. */
export interface NoticeFacts {
  /** The failing probe or service; undefined for an announcement. */
  readonly cause?: string | undefined
  readonly service?: string | undefined
  readonly affected?: readonly string[] | undefined
  /** The announcement; plain text. */
  readonly text?: string | undefined
  readonly translations?: Announcement['translations']
  readonly from: number
  readonly until?: number | undefined
  /** The id of the incident or the announcement that this is an update of; undefined for other notices. */
  readonly about?: string | undefined
  readonly state?: StatusUpdate['state']
  /** The incident ended because its cause is no longer checked. */
  readonly isGone?: boolean
}

export interface NoticeMail {
  readonly notice: Notice
  /** The subscription. */
  readonly id: string
  readonly enrolment: number
  readonly language: string | undefined
}

/** As long as the status page shows days; a cause that flaps must not fill the disk meanwhile. */
export const INCIDENTS_KEPT = { ms: 90 * DAY_MS, most: 1000 } as const

/** What the plan of alerts needs to know of a channel. */
export interface Hearing {
  readonly name: string
  /** It hears only of incidents that nobody acknowledges within this time. */
  readonly afterMs?: number | undefined
  /** Selects the messages it sends; all when left out. */
  readonly takes?: ((kind: MessageKind, incident: StoredIncident) => boolean) | undefined
}

/** The subscribers of the status page among the channels that were told of incidents. */
export const SUBSCRIBERS = 'subscribers'

export interface Changes {
  /** Open incidents that are still failing. */
  readonly seen?: readonly (Pick<StoredIncident, 'cause' | 'reason' | 'affected'> & { readonly at: number })[]
  /** Each opens unless one with its cause is open. */
  readonly opens?: readonly StoredIncident[]
  /** Causes whose incident ends, unless a round saw it failing after `unseenSince`. */
  readonly closes?: readonly (Pick<StoredIncident, 'cause' | 'resolvedReason'> &
    Readonly<Record<'at' | 'unseenSince', number>>)[]
  readonly told?: readonly (MessageKey & { readonly at: number })[]
}

/** An alert in hand: the next about its incident on its channel. */
export interface AlertClaim extends QueuedMessage, MessageKey {
  /** The number of this attempt, as builds that keep no queue of alerts count it. */
  readonly attempt: number
  /** What it says of its incident, as at its first attempts: a provider refuses another text under a key that it knows. */
  readonly said: AlertFacts
}

/** What may change of an incident while an alert about it is tried. */
export type AlertFacts = Pick<StoredIncident, 'reason' | 'affected' | 'failsAgain'>

export interface AlertSettlement extends MessageSettlement {
  readonly claim: AlertClaim
  /** Something was handed over, or our own fault kept it from that. */
  readonly isTried: boolean
}

export interface Alert {
  /** The same for every attempt, so that a receiver can recognize a repeat. */
  readonly id: string
  readonly kind: MessageKind
  readonly incident: StoredIncident
  /** What it is about happened then: the Date of a mail. */
  readonly at: number
}

export interface QueuedAlert extends MessageKey {
  readonly at: number
  /** It leaves also during a silence or a pause of alerts. */
  readonly leaves: boolean
}

/** The incidents of a platform and the alerts sent about them, shared by all processes on one store. */
export interface IncidentStore {
  /**
   * Applies what `decide` makes of the open incidents and queues the alerts that follow, in one transaction. Before
   * that it repairs what a clock that was ahead has recorded, and counts those rows: such times become now, and
   * silences and reminders of times to come are forgotten.
   */
  follow(input: {
    readonly now: number
    readonly channels: readonly Hearing[]
    /** Of which causes subscribers of the status page hear; undefined: they hear of nothing now. */
    readonly visitorsHear?: ((cause: string) => boolean) | undefined
    readonly decide: (open: readonly StoredIncident[]) => Changes
  }): Promise<{ readonly repaired: number }>
  /** False if there is no such open incident. */
  acknowledge(input: { readonly id: string; readonly now: number; readonly by: string }): Promise<boolean>
  /** Closes an incident by hand, whatever its probe says. False if there is no such open incident. */
  resolve(
    input: Parameters<IncidentStore['acknowledge']>[0] & { reason: string; audit: AuditEntry },
  ): Promise<boolean>
  find(id: string): Promise<StoredIncident | undefined>
  /** The newest incidents up to the limit, and all open ones. */
  list(limit: number): Promise<readonly StoredIncident[]>
  /** The incidents that a channel may have something to say about, and what was said about them. */
  unfinished(
    now: number,
  ): Promise<{ readonly incidents: readonly StoredIncident[]; readonly messages: readonly MessageRecord[] }>
  /** Takes alerts that are due on one channel; while it is `quiet`, only those about a pause. */
  claimAlerts(
    input: Omit<Parameters<MessageStore['claimMessages']>[0], 'stream'> & { channel: string; quiet: boolean },
  ): Promise<readonly AlertClaim[]>
  keepAlerts(input: { messages: readonly AlertClaim[]; now: number; leaseMs: number }): Promise<void>
  settleAlerts(settlements: readonly AlertSettlement[]): Promise<void>
  queuedAlerts(): Promise<readonly QueuedAlert[]>
  /** The messages about these incidents, the newest first. */
  messages(incidents: readonly string[]): Promise<readonly MessageRecord[]>
  /** Deletes incidents that closed before that moment, and of the rest all but the newest `keep`, with their messages; also old silences and announcements. */
  prune(input: { readonly before: number; readonly keep: number }): Promise<void>
  /** Adds a silence to those there are; one of no length ends all that began before. Gives when the longest ends. */
  silence(silence: Silence): Promise<number>
  /** Shows it, and mails it to subscribers of the status page. */
  announce(announcement: Announcement, now: number): Promise<void>
  /** Deletes an announcement, so that no machine mails it any more. False if there is none, or it is over. */
  withdraw(input: { readonly id: string; readonly now: number }): Promise<boolean>
  /** Current and planned ones, in the order in which they begin. */
  announcements(now: number): Promise<readonly Announcement[]>
  /** Adds to the timeline of an incident or announcement, and mails it to subscribers. False if there is none. */
  update(update: StatusUpdate): Promise<boolean>
  /** All timelines that are kept, oldest first. */
  updates(): Promise<readonly StatusUpdate[]>
  /** Of the silences that hold, the one that ends last. */
  silenceAt(now: number): Promise<Silence | undefined>
}
