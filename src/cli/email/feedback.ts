import { DAY_MS } from '../../core/durations.ts'
import { codeOf } from '../../core/errors.ts'
import type { CountedKind, MailDayCount } from '../../core/mail/feedback/sending.ts'
import { coursePause, type Pause } from '../../core/mail/holds.ts'
import { boundedBody } from '../../core/network/proxy.ts'
import { type Answer, command, platformCommand, withPlatform } from '../command.ts'
import { type Context, EXIT, wrongUsage } from '../context.ts'
import { readWholeFile } from '../environment.ts'
import { STORE, value, wholeNumber } from '../inputs.ts'
import { compact, table } from '../output/text.ts'

const status = platformCommand({
  summary: 'show mail sent, bounces and complaints by day, provider and recipient domain',
  description:
    'Show the mail sent and the feedback on it: bounces, complaints and deliveries by day, provider and recipient domain, with their rates. Small domains are counted together.',
  examples: ['', '--days 30 --format json'],
  document: 'email feedback status',
  inputs: { '--days <days>': value('how many days back, today included', wholeNumber(1, 400), 7) },
  async run(context, { days }, platform) {
    const { sending } = await platform.store()
    const counts = await sending.days(context.clock.now() - (days - 1) * DAY_MS)
    const paused = coursePause(await sending.holds())
    return { json: { paused, counts }, text: feedbackStatusText(counts, paused) }
  },
})

export const feedback = command({
  summary: 'read one bounce or complaint from a pipe, and act on it',
  description:
    'Read one message that a mail server sent back, a delivery status notification (RFC 3464), an abuse report (RFC 5965) or the plain text of an older server, and do what it says: suppress the address, end its subscriptions. A bounce is believed only if it names the envelope sender of MAILER_BOUNCE_ADDRESS or the Message-ID of a message that was sent to its recipient.',
  exits:
    '0 recorded or nothing to record, 1 not understood or not about our mail, 2 wrong usage, 3 the store was not reached.',
  examples: [
    'bounce.eml --env-file .env',
    '--env-file /etc/platformctl/env --data /var/lib/platformctl < bounce.eml',
  ],
  document: 'email feedback',
  inputs: { '[file]': 'the message as a file; standard input when not given, or -', ...STORE },
  async run(context, { file, ...place }) {
    const messages = await import('../../core/mail/feedback/message.ts')
    const raw = await readBytes(context, file, messages.LONGEST_REPORT_BYTES)
    const report = await messages.readMailReport(raw)
    if (report.kind !== 'report') {
      const outcome = report.kind === 'ignored' ? 'nothing to record' : 'not understood'
      const json = { outcome, reason: report.reason, recorded: 0, repeated: 0, unmatched: 0 }
      return answer(json, report.kind === 'ignored')
    }
    const { applyFeedback } = await import('../../core/mail/feedback/store.ts')
    const { BY_MAIL } = await import('../../core/mail/feedback/sending.ts')
    return withPlatform(context, place, async (platform) => {
      const list = await platform.mailService.suppressionList()
      const now = context.clock.now()
      const text = Buffer.from(raw).toString('latin1')
      const { events, unmatched } = await messages.matchReports(report, text, { ...list, now })
      const { counts, pause } = await applyFeedback({
        ...list,
        feedback: { events, ignored: 0 },
        source: BY_MAIL,
        now,
      })
      if (pause)
        context.stderr.write(`courses are paused: ${pause.reason}; platformctl course resume goes on\n`)
      const json = {
        outcome: events[0]?.kind.replace('-', ' ') ?? 'not about our mail',
        reason: (events[0] ?? unmatched[0])?.reason ?? '',
        recorded: counts.changed + counts.unchanged,
        repeated: counts.repeated,
        unmatched: unmatched.length,
      }
      return answer(json, events.length > 0)
    })
  },
  commands: { status },
})

function answer(json: Answer<'email feedback'>['json'], passed: boolean): Answer<'email feedback'> {
  const { outcome, reason, recorded, repeated, unmatched } = json
  const counts = compact(
    recorded > 0 && `${recorded} recorded`,
    repeated > 0 && `${repeated} known already`,
    unmatched > 0 && `${unmatched} without proof that we sent it`,
  )
  const text = `${outcome}: ${reason}${counts.length > 0 ? `; ${counts.join(', ')}` : ''}\n`
  return { json, text, exit: passed ? EXIT.passed : EXIT.failed }
}

/** One byte too many in place of more than `most`, so that a pipe that never ends, or a huge file, fills no memory. */
async function readBytes(context: Context, file: string | undefined, most: number): Promise<Uint8Array> {
  if (file !== undefined && file !== '-')
    return (await readWholeFile(context, file, most)) ?? new Uint8Array(most + 1)
  return boundedBody(context.stdin, most).catch((error: unknown) => {
    if (codeOf(error) === 'too_large') return new Uint8Array(most + 1)
    throw context.signal.aborted ? wrongUsage('interrupted before the whole message was read.') : error
  })
}

const BAD: readonly CountedKind[] = ['hard-bounce', 'soft-bounce', 'complaint']
const COLUMNS: readonly CountedKind[] = ['sent', 'delivered', ...BAD, 'unsubscribed']

export function feedbackStatusText(counts: readonly MailDayCount[], paused: Pause | undefined): string {
  const pause = paused && `courses are paused: ${paused.reason}; platformctl course resume goes on\n`
  const none = 'nothing was sent or reported in this time\n'
  const tables = [
    countsTable('day', counts, ({ day }) => day),
    countsTable('source', counts, ({ source }) => source),
    countsTable('recipients', counts, ({ domain }) => domain),
  ]
  return compact(pause, ...(counts.length === 0 ? [none] : tables)).join('\n')
}

function countsTable(title: string, counts: readonly MailDayCount[], keyOf: (count: MailDayCount) => string) {
  const sumOf = (some: readonly MailDayCount[], wanted: CountedKind) =>
    some.reduce((sum, { kind, count }) => (kind === wanted ? sum + count : sum), 0)
  const rows = [...Map.groupBy(counts, keyOf)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, of]) => {
      // A source that only reports, such as a provider's webhook, sent nothing itself: compare it with everything sent.
      const sent = sumOf(of, 'sent') || sumOf(counts, 'sent')
      return [key, ...COLUMNS.map((kind) => cell(sumOf(of, kind), kind, sent))]
    })
  const names = COLUMNS.map((kind) => (BAD.includes(kind) ? `${kind.replace('-', ' ')}s` : kind))
  return table([[title, ...names], ...rows], { numbers: true })
}

/** `3 (1.5%)`: bad news as a share of what was sent. */
function cell(count: number, kind: CountedKind, sent: number): string {
  const isShare = BAD.includes(kind) && count > 0 && sent > 0
  return isShare ? `${count} (${((count / sent) * 100).toFixed(2)}%)` : String(count)
}
