import type { CountedKind, MailDayCount } from '../../core/mail/feedback/sending.ts'
import type { Pause } from '../../core/mail/holds.ts'

const KINDS: readonly (readonly [CountedKind, string])[] = [
  ['sent', 'sent'],
  ['delivered', 'delivered'],
  ['hard-bounce', 'hard bounces'],
  ['soft-bounce', 'soft bounces'],
  ['complaint', 'complaints'],
  ['unsubscribed', 'unsubscribed'],
]

/** Mail sent and feedback received: tables by day, by source and by recipient domain. */
export function feedbackStatusText({
  counts,
  paused,
}: {
  readonly counts: readonly MailDayCount[]
  readonly paused: Pause | undefined
}): string {
  const pause = paused ? [`courses are paused: ${paused.reason}; platformctl course resume goes on`, ''] : []
  if (counts.length === 0) return [...pause, 'nothing was sent or reported in this time', ''].join('\n')
  const tables = [
    table('day', counts, ({ day }) => day),
    table('source', counts, ({ source }) => source),
    table('recipients', counts, ({ domain }) => domain),
  ]
  return [...pause, ...tables].join('\n')
}

function table(
  title: string,
  counts: readonly MailDayCount[],
  keyOf: (count: MailDayCount) => string,
): string {
  const keys = [...new Set(counts.map(keyOf))].sort()
  const sumOf = (key: string, kind: CountedKind) =>
    counts.reduce((sum, one) => (keyOf(one) === key && one.kind === kind ? sum + one.count : sum), 0)
  const sentInAll = counts.reduce((sum, one) => (one.kind === 'sent' ? sum + one.count : sum), 0)
  const rows = keys.map((key) => {
    // A source that only reports, such as a provider's webhook, sent nothing itself: compare it with everything sent.
    const sent = sumOf(key, 'sent') || sentInAll
    return [key, ...KINDS.map(([kind]) => cell(sumOf(key, kind), kind, sent))]
  })
  const lines = [[title, ...KINDS.map(([, name]) => name)], ...rows]
  const widths =
    lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  return `${lines.map((line) => line.map((text, n) => (n === 0 ? text.padEnd(widths[n] ?? 0) : text.padStart(widths[n] ?? 0))).join('  ')).join('\n')}\n`
}

/** `3 (1.5%)`: bad news as a share of what was sent. */
function cell(count: number, kind: CountedKind, sent: number): string {
  const bad = kind === 'hard-bounce' || kind === 'soft-bounce' || kind === 'complaint'
  return bad && count > 0 && sent > 0 ? `${count} (${((count / sent) * 100).toFixed(2)}%)` : String(count)
}
