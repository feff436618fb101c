import { DAY_MS } from '../durations.ts'
import type { Announcement, StatusUpdate } from '../incidents/incident.ts'
import type { Plan } from './definition.ts'

/**
 * The stream of notices. Visitors subscribe to it like a course and get a mail when an incident begins, when
 * it ends, and when something is announced. Its lessons are the notices, due as soon as they are published.
 * No course may have this name.
 */
export const NOTICES = 'status'

/** The mail that every notice is sent by. */
const NOTICE_MAIL = 'status-notice'
/** The mail with the link that confirms an address for notices. */
export const NOTICE_CONFIRMATION_MAIL = 'status-confirmation'

/** Something to tell a platform's subscribers. Times are UTC milliseconds. */
export interface Notice {
  /** Rises by one with each notice. */
  readonly seq: number
  /** The id of an incident or of an announcement. */
  readonly subject: string
  readonly kind: 'opened' | 'closed' | 'announced'
  /** When it was published. */
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
}

/** The notices of a platform, and which of its subscribers are due one. */
export interface NoticeStore {
  /** Adds a notice; false if its subject has one of its kind. */
  publish(notice: Omit<Notice, 'seq'>): Promise<boolean>
  /** The number of the newest; 0 when there is none. */
  head(): Promise<number>
  /** The notices with a higher number, oldest first; if there are very many, only the newest. */
  after(seq: number): Promise<readonly Notice[]>
  /**
   * Makes a notice due for up to `limit` subscribers who have nothing due and have not had the newest one;
   * gives how many.
   */
  wake(input: { readonly now: number; readonly limit: number }): Promise<number>
  /** Whether a notice is to be sent now. */
  isDue(now: number): Promise<boolean>
  /**
   * Deletes notices published before that time, except the newest one and those of announcements that still
   * exist, which would be published again.
   */
  prune(before: number): Promise<void>
}

/** How many notices are kept in memory. A subscriber that is further behind misses the older ones. */
export const NOTICES_KEPT = 2000
/** A notice that could not be sent within this time is skipped. */
const NEWS_MS = 3 * DAY_MS

/** The notices read so far, in memory. */
export interface Notices {
  /** Reads the notices published since the last call. */
  refresh(): Promise<void>
  head(): number
  /** The plan for an enrolment that began after notice `base`. */
  plan(base: number): Plan
  find(seq: number): Notice | undefined
  /**
   * Whether a notice need not be sent any more: it is old or forgotten, its announcement is over, or its
   * incident has ended.
   */
  isOver(seq: number, now: number): boolean
}

export function createNotices(store: Pick<NoticeStore, 'after'>): Notices {
  let head = 0
  let known = new Map<number, Notice>()
  /** The numbers of the notices that said so, by incident. */
  let ended = new Map<string, number>()
  let plans = new Map<number, Plan>()
  const plan = (base: number): Plan => {
    const seqs = Array.from({ length: Math.max(0, head - base) }, (_, index) => base + index + 1)
    return {
      lessons: seqs.map(() => NOTICE_MAIL),
      cadence: { kind: 'published', at: seqs.map((seq) => known.get(seq)?.at ?? 0) },
      spacingMs: 0,
    }
  }
  return {
    async refresh() {
      const answer = await store.after(head)
      // The answer of another call may have arrived first.
      const newer = answer.filter(({ seq }) => seq > head)
      const last = newer.at(-1)
      if (last === undefined) return
      head = last.seq
      known = new Map(
        [...known.values(), ...newer].slice(-NOTICES_KEPT).map((notice) => [notice.seq, notice]),
      )
      ended = new Map(
        [...known.values()].flatMap(({ kind, subject, seq }) => (kind === 'closed' ? [[subject, seq]] : [])),
      )
      plans = new Map()
    },
    head: () => head,
    plan(base) {
      const found = plans.get(base) ?? plan(base)
      plans.set(base, found)
      return found
    },
    find: (seq) => known.get(seq),
    isOver(seq, now) {
      const notice = known.get(seq)
      if (notice === undefined || now - notice.at >= NEWS_MS) return true
      const { kind, subject, facts } = notice
      if (kind === 'opened') return ended.has(subject)
      if (facts.about !== undefined && (ended.get(facts.about) ?? 0) > seq) return true
      return kind === 'announced' && facts.until !== undefined && facts.until <= now
    },
  }
}

/** The notice after which an enrolment began, as its version says. */
export function baseOf(courseVersion: string | undefined): number {
  const base = Number(courseVersion)
  return Number.isSafeInteger(base) && base >= 0 ? base : Number.MAX_SAFE_INTEGER
}
