import type { Cadence } from '../../core/course/definition.ts'
import type { PastEntry } from '../../core/course/history.ts'
import type { CourseCounts } from '../../core/course/store.ts'
import type { Subscription } from '../../core/course/subscription.ts'
import { durationText, HOUR_MS } from '../../core/durations.ts'
import type { Pause } from '../../core/mail/holds.ts'
import { BARS, beside, compact, iso, thousands } from './text.ts'

type ProblemDelivery = Subscription & { readonly messageId: string | undefined }

/** The operator's view of the course: who is where, what is due, and what waits for a decision. */
export function courseStatusText(input: {
  readonly counts: CourseCounts
  readonly problems: readonly ProblemDelivery[]
  readonly now: number
  readonly paused?: Pause | undefined
  readonly columns?: number
}): string {
  const { counts, problems, now, paused, columns = Number.POSITIVE_INFINITY } = input
  const row = (name: string, value: string) => beside(name.padEnd(14), value, columns).trimEnd()
  const { oldestDueAt: oldest, nextTryAt: next } = counts
  const age = durationText(Math.max(0, now - (oldest ?? now)))
  const since = oldest === undefined ? '' : `  the oldest for ${age}, since ${iso(oldest)}`
  const nextTry = next === undefined ? '' : `  due and waiting after a failure; next try ${iso(next)}`
  const most = Math.max(...counts.byLessons)
  const progress = counts.byLessons.flatMap((count, sent) => {
    if (count === 0) return []
    const name = sent === 0 ? 'none' : sent === counts.byLessons.length - 1 ? 'all' : `day ${sent}`
    const bar = '█'.repeat(Math.max(1, Math.round((count / most) * 24)))
    return row(`${name} sent`, `${thousands(count)} ${bar}`)
  })
  const lines = compact(
    ...Object.entries(counts.byState).map(([state, count]) => row(state, thousands(count))),
    '',
    ...progress,
    progress.length > 0 && '',
    paused && row('paused', `since ${iso(paused.at)}: ${paused.reason}; platformctl course resume`),
    row('due now', thousands(counts.dueNow) + (counts.dueNow > 0 ? since : '')),
    row('in backoff', thousands(counts.waiting) + nextTry + (counts.dueNow > 0 ? '' : since)),
    row('next 24 hours', dueText(counts.dueByHour, now)),
    row('parked', thousands(counts.parked)),
    row('unknown', thousands(counts.unknown)),
    problems.length > 0 && '',
    ...problems.map((one) => problemText(one, columns)),
  )
  return `${lines.join('\n')}\n`
}

/** One bar an hour from now on, so that a peak is seen before it comes. */
function dueText(byHour: readonly number[], now: number): string {
  const total = byHour.reduce((sum, count) => sum + count, 0)
  if (total === 0) return '0'
  const most = Math.max(...byHour)
  const chart = byHour
    .map((count) => (count === 0 ? '·' : BARS[Math.ceil((count / most) * BARS.length) - 1]))
    .join('')
  const peak = new Date(now + byHour.indexOf(most) * HOUR_MS).toISOString().slice(11, 16)
  return `${thousands(total)}  ${chart}  an hour each; most ${thousands(most)}, from ${peak} UTC`
}

function problemText(found: ProblemDelivery, columns: number): string {
  const { id, address, sentDays, problem, nextAttemptAt, state, messageId } = found
  const waits =
    state === 'confirmed'
      ? `waits for: platformctl course resolve ${id} retry|sent`
      : 'the subscription has ended'
  const next = nextAttemptAt === undefined ? waits : `next try ${iso(nextAttemptAt)}`
  const what = `${id}  day ${sentDays.length + 1}  ${problem?.reason}; ${next}`
  const header = messageId === undefined ? 'unknown here: name the daemon’s --env-file' : `<${messageId}>`
  const lead = `${problem?.kind.padEnd(8)} `
  const below = ' '.repeat(9)
  return `${beside(lead, what, columns)}\n${beside(below, `to ${addressHint(address)}, Message-ID ${header}`, columns)}`
}

/** `ada@example.com` → `a…@example.com`: enough to find it at the provider, and no address on a screen. */
export function addressHint(address: string): string {
  const at = address.lastIndexOf('@')
  return `${[...address.slice(0, at)][0] ?? ''}…${address.slice(at)}`
}

export function historyText(history: readonly PastEntry[]): string {
  if (history.length === 0) return 'no history: nothing happened since this build runs\n'
  return history.map((entry) => `${iso(entry.at)}  ${entryText(entry)}\n`).join('')
}

function entryText(entry: PastEntry): string {
  const { kind, day, attempt, outcome, reason, messageId, providerId, enrolment, source } = entry
  const why = reason === undefined ? '' : `: ${reason}`
  const proof = compact(
    messageId !== undefined && `, Message-ID <${messageId}>`,
    providerId !== undefined && providerId !== messageId && `, provider’s id ${providerId}`,
  ).join('')
  const reported = `${kind.replace('-', ' ')} reported by ${source}${why}${proof}`
  const imported = `imported, enrolment ${enrolment}, with consent${why}`
  return {
    confirmation: `confirmation mail ${outcome}${why}${proof}`,
    notice: `mail about the status page ${outcome}${why}${proof}`,
    confirmed: source === 'import' ? imported : `confirmed, enrolment ${enrolment}`,
    attempt: `day ${day}, attempt ${attempt}: ${outcome}${why}${proof}`,
    unsubscribed: `unsubscribed${source === undefined ? '' : ` at the mail provider, reported by ${source}`}`,
    'hard-bounce': reported,
    'soft-bounce': reported,
    complaint: reported,
    suppressed: `put on the suppression list by ${source}${why}`,
    released: `taken off the suppression list by ${source}${why}`,
    undone: 'unsubscribe undone',
    set: `set ${reason}`,
    resolved: `day ${day}, decided by the operator: ${outcome}`,
  }[kind]
}

const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

/** When the lessons of a course come, for an operator: `every 2 d`, `Mon, Thu at 09:00, Europe/Berlin`. */
export function cadenceText(cadence: Cadence): string {
  if (cadence.kind === 'every') return `every ${durationText(cadence.ms)}`
  const { minute, zone, weekdays } = cadence
  const days = weekdays.length === 0 ? 'daily' : weekdays.map((day) => DAYS[day - 1]).join(', ')
  return `${days} at ${hourText(minute)}, ${zone ?? 'the subscriber’s zone'}`
}

/** Minutes after midnight as `09:00`. */
export const hourText = (minute: number) =>
  `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
