import type { AuditEntry } from '../../audit.ts'
import { DAY_MS, MINUTE_MS } from '../../durations.ts'
import type { Hold, LastMail, Pause, StreamName, StreamQueue } from '../holds.ts'
import type { FeedbackKind } from './event.ts'

/** `sent`: a mail server took the message. */
export type CountedKind = FeedbackKind | 'sent'

/** Messages or reports of one kind, to be added to the counts of their minute and day. */
export interface MailCount {
  /** UTC milliseconds. */
  readonly at: number
  readonly kind: CountedKind
  /** The transport of what was sent; the source of what was reported. */
  readonly source: string
  readonly domain: string
  readonly count: number
  /** It changed nothing, since its address was suppressed already: counted by day, but not by the breaker. */
  readonly known?: boolean
}

export interface MailDayCount extends Omit<MailCount, 'at' | 'known'> {
  /** `2026-11-22` */
  readonly day: string
}

interface Operation {
  readonly streams: readonly StreamName[]
  readonly now: number
  readonly audit: AuditEntry
}

/** Sending state shared by all dispatchers of one store: counts, the breaker and the pace. */
export interface SendingStore {
  count(counts: readonly MailCount[]): Promise<void>
  /** The current pause of courses. Starts one if the counts of the last day call for it (CONTRACT §12). */
  check(now: number): Promise<Pause | undefined>
  holds(): Promise<readonly Hold[]>
  queue(now: number): Promise<readonly StreamQueue[]>
  lastMail(): Promise<LastMail>
  /** When the first mail was queued that waits after a failure, or was given up since `before`, while none of its stream left; alerts aside. */
  stalledSince(at: { readonly now: number; readonly before: number }): Promise<number | undefined>
  /** Pauses streams and gives their holds; one that is paused already keeps its time, and has both reasons, the new one first. */
  pause(input: Operation & { readonly reason: string }): Promise<readonly Hold[]>
  /** Ends the pauses of streams and gives those that it ended. Earlier counts do not pause courses again. */
  resume(input: Operation): Promise<readonly Hold[]>
  /** The counts of each day, beginning with the day that `since` is in. */
  days(since: number): Promise<readonly MailDayCount[]>
  /** Reserves slots for that many messages; gives the microseconds until the first one. */
  reserve(input: { readonly messages: number; readonly intervalUs: number }): Promise<number>
  prune(before: number): Promise<void>
}

/**
 * A stored place further ahead was written under another clock, and is ignored. A burst of other mail delays lessons by
 * at most a minute, beside what 32 dispatchers hold at a slow pace.
 */
export const furthestUs = (intervalUs: number) => 60_000_000 + 32 * intervalUs

/** How long counts of minutes are kept; the breaker needs one day. */
export const COUNTED_MINUTES_KEPT_MS = 48 * 60 * MINUTE_MS

/** The source of reports that came by mail, which anybody can write. */
export const BY_MAIL = 'pipe'
/** The source of refusals: the mail server did not take the message, so it is not counted as `sent`. */
export const AT_ONCE = 'send'

/** What the breaker looks at, counted by the minute. A version that does not know one leaves it out. */
export type BreakerKind = 'sent' | `${'hard-bounce' | 'complaint'}${'' | ' by mail' | ' at once'}`

function breakerKind({ kind, source, known = false }: MailCount): BreakerKind | undefined {
  if (kind === 'sent') return kind
  if (known || (kind !== 'hard-bounce' && kind !== 'complaint')) return undefined
  return source === BY_MAIL ? `${kind} by mail` : source === AT_ONCE ? `${kind} at once` : kind
}

export const minuteOf = (at: number) => Math.floor(at / MINUTE_MS)
export const dayNameOf = (at: number) => new Date(at).toISOString().slice(0, 10)

/** Counts summed up by minute and by day, in an order that two writers share. */
export function sumCounts(counts: readonly MailCount[]) {
  const minutes = new Map<string, { minute: number; kind: BreakerKind; count: number }>()
  const days = new Map<string, MailDayCount>()
  for (const one of counts) {
    const { at, kind, source, domain, count } = one
    const [minute, day] = [minuteOf(at), dayNameOf(at)]
    const judged = breakerKind(one)
    if (judged !== undefined) {
      const key = `${minute} ${judged}`
      minutes.set(key, { minute, kind: judged, count: (minutes.get(key)?.count ?? 0) + count })
    }
    const key = `${day} ${source} ${domain} ${kind}`
    days.set(key, { day, kind, source, domain, count: (days.get(key)?.count ?? 0) + count })
  }
  const sorted = <T>(rows: ReadonlyMap<string, T>) =>
    [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  return { minutes: sorted(minutes), days: sorted(days) }
}

/** The large mailbox providers; a small domain could name a person, and is counted with the others. */
// biome-ignore format: a list of names is read as a text
const DOMAINS = new Set([
  'gmail.com', 'googlemail.com', 'outlook.com', 'hotmail.com', 'live.com', 'msn.com', 'yahoo.com',
  'aol.com', 'icloud.com', 'me.com', 'proton.me', 'protonmail.com', 'gmx.de', 'gmx.net', 'web.de',
  't-online.de', 'orange.fr', 'free.fr', 'libero.it', 'mail.ru', 'yandex.ru', 'qq.com', '163.com',
])

export function countedDomain(identity: string): string {
  const domain = identity.slice(identity.lastIndexOf('@') + 1)
  return DOMAINS.has(domain) ? domain : 'other'
}

/** Mails sent and feedback received on one UTC day. */
export type DayOfMail = Readonly<ReturnType<typeof dailyMail>[number]>

/** A time on the first of the last `days` days, of which today is one. */
export const firstOfDays = (days: number, now: number): number => now - (days - 1) * DAY_MS

/** The last days, oldest first, over all sources and recipients; a day without mail is there with zeros. */
export function dailyMail(counts: readonly MailDayCount[], { days, now }: { days: number; now: number }) {
  return Array.from({ length: days }, (_, index) => {
    const day = dayNameOf(firstOfDays(days, now) + index * DAY_MS)
    const of = (kind: MailDayCount['kind']) =>
      counts.reduce((sum, one) => (one.day === day && one.kind === kind ? sum + one.count : sum), 0)
    return {
      /** `2026-11-22` */
      day,
      sent: of('sent'),
      hardBounces: of('hard-bounce'),
      softBounces: of('soft-bounce'),
      complaints: of('complaint'),
    }
  })
}

/** CONTRACT §12: below these numbers a rate says nothing. Rates are shares of the messages handed over. */
export const BREAKER = {
  windowMs: DAY_MS,
  fewestMessages: 50,
  hardBounces: 0.05,
  fewestComplaints: 5,
  complaints: 0.003,
} as const

/** Whether the breaker made a pause, or found its reason while the pause lasted. */
export const isBreach = (pause: Pause | undefined) =>
  /(?:^|; )\d{1,16} of \d{1,16} messages of the last day [^;]{1,40}; providers block/.test(
    pause?.reason ?? '',
  )

/** Why sending must pause, in one sentence; undefined while the rates are fine. `sums`: of the last 24 hours, over all dispatchers. */
export function breach(sums: (kind: BreakerKind) => number): string | undefined {
  const refused = sums('hard-bounce at once')
  const messages = sums('sent') + refused
  if (messages === 0) return undefined
  const hardBounces = counted(sums('hard-bounce') + refused, sums('hard-bounce by mail'))
  const complaints = counted(sums('complaint'), sums('complaint by mail'))
  const because = (count: number, what: string, share: number) =>
    `${count} of ${messages} messages of the last day ${what}; providers block senders at ${share * 100}%`
  if (messages >= BREAKER.fewestMessages && hardBounces >= messages * BREAKER.hardBounces)
    return because(hardBounces, 'bounced hard', BREAKER.hardBounces)
  return complaints >= BREAKER.fewestComplaints && complaints >= messages * BREAKER.complaints
    ? because(complaints, 'were reported as spam', BREAKER.complaints)
    : undefined
}

/**
 * Those of a webhook or of a mail server's answer are proven. Anybody can write one by mail: these count up to the number
 * of proven ones, so that forged reports alone never pause courses.
 */
const counted = (proven: number, byMail: number) => proven + Math.min(proven, byMail)
