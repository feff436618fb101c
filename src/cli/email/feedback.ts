import type { Command } from 'commander'
import { DAY_MS } from '../../core/durations.ts'
import type { CountedKind, MailDayCount } from '../../core/mail/feedback/sending.ts'
import { coursePause, type Pause } from '../../core/mail/holds.ts'
import type { Context } from '../context.ts'
import type { DocumentOf } from '../documents/documents.ts'
import { EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { envFileOption, formatOption, type StoreOptions, wholeNumber, withPlatform } from '../options.ts'
import { printJson, printText } from '../print.ts'

/** `platformctl email feedback`: what a mail server sends back, from a pipe. */
export function configureFeedback(email: Command, context: Context, settle: (code: ExitCode) => void): void {
  const command = email
    .command('feedback')
    .summary('read one bounce or complaint from a pipe, and act on it')
    .description(
      'Read one message that a mail server sent back, a delivery status notification (RFC 3464) or an abuse report (RFC 5965), and do what it says: suppress the address, end its subscriptions. A bounce is believed only if it names the envelope sender of MAILER_BOUNCE_ADDRESS or the Message-ID of a message that was sent to its recipient.',
    )
    .argument('[file]', 'the message as a file; standard input when not given, or -')
    .option('--data <folder>', 'the data folder, when STORE_URL is not set (default: .platformctl)')
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      `
Exit codes: 0 recorded or nothing to record, 1 not understood or not about our mail, 2 wrong usage, 3 the store was not reached.

Examples:
  platformctl email feedback bounce.eml --env-file .env
  /etc/aliases:  bounce: "|platformctl email feedback --env-file /etc/platformctl.env; [ $? -le 1 ] || exit 75"`,
    )
    .action(async (file: string | undefined, options: StoreOptions) =>
      settle(await feedback(context, file, options)),
    )
  command
    .command('status')
    .summary('show mail sent, bounces and complaints by day, provider and recipient domain')
    .description(
      'Show the mail sent and the feedback on it: bounces, complaints and deliveries by day, provider and recipient domain, with their rates. Small domains are counted together.',
    )
    .option('--data <folder>', 'the data folder, when STORE_URL is not set (default: .platformctl)')
    .option('--days <days>', 'how many days back, today included', wholeNumber(1, 400), 7)
    .addOption(envFileOption())
    .addOption(formatOption(['text', 'json']))
    .addHelpText(
      'after',
      '\nExamples:\n  platformctl email feedback status\n  platformctl email feedback status --days 30 --format json',
    )
    // `feedback` has options of the same names, and takes those that are given here.
    .action(async (_, self: Command) =>
      settle(await status(context, self.optsWithGlobals<StoreOptions & { days: number }>())),
    )
}

async function status(
  context: Context,
  options: StoreOptions & { readonly days: number },
): Promise<ExitCode> {
  return withPlatform(context, options, async (platform) => {
    const { sending } = await platform.store()
    const counts = await sending.days(context.clock.now() - (options.days - 1) * DAY_MS)
    const paused = coursePause(await sending.holds())
    return options.format === 'json'
      ? printJson(context, 'email feedback status', { ...(paused && { paused }), counts })
      : printText(context, feedbackStatusText({ counts, paused }))
  })
}

async function feedback(
  context: Context,
  file: string | undefined,
  options: StoreOptions,
): Promise<ExitCode> {
  const { LONGEST_REPORT_BYTES, readMailReport } = await import('../../core/mail/feedback/message.ts')
  const raw = await readBytes(context, file, LONGEST_REPORT_BYTES + 1)
  const report = await readMailReport(raw)
  if (report.kind !== 'report') {
    const outcome = report.kind === 'ignored' ? 'nothing to record' : 'not understood'
    say(context, options, { outcome, reason: report.reason, recorded: 0, repeated: 0, unmatched: 0 })
    return report.kind === 'ignored' ? EXIT.passed : EXIT.failed
  }
  const { applyFeedback } = await import('../../core/mail/feedback/changes.ts')
  const { matchReports } = await import('../../core/mail/feedback/match.ts')
  const { BY_MAIL } = await import('../../core/mail/feedback/sending.ts')
  return withPlatform(context, options, async (platform) => {
    const list = await platform.suppressionList()
    const now = context.clock.now()
    const { events, unmatched } = await matchReports(report, Buffer.from(raw).toString('latin1'), {
      ...list,
      now,
    })
    const { counts, pause } = await applyFeedback({
      feedback: { events, ignored: 0 },
      source: BY_MAIL,
      store: list.store,
      sending: list.sending,
      erasureHashes: list.erasureHashes,
      now,
    })
    const { changed, repeated, unchanged } = counts
    if (pause)
      context.stderr.write(`courses are paused: ${pause.reason}; platformctl course resume goes on\n`)
    const [kind, reason] = [events[0]?.kind, (events[0] ?? unmatched[0])?.reason ?? '']
    say(context, options, {
      outcome: kind === undefined ? 'not about our mail' : kind.replace('-', ' '),
      reason,
      recorded: changed + unchanged,
      repeated,
      unmatched: unmatched.length,
    })
    return events.length > 0 ? EXIT.passed : EXIT.failed
  })
}

function say(
  context: Context,
  { format }: StoreOptions,
  said: Omit<DocumentOf<'email feedback'>, 'version'>,
) {
  if (format === 'json') return printJson(context, 'email feedback', said)
  const { outcome, reason, recorded, repeated, unmatched } = said
  const counts = [
    ...(recorded > 0 ? [`${recorded} recorded`] : []),
    ...(repeated > 0 ? [`${repeated} known already`] : []),
    ...(unmatched > 0 ? [`${unmatched} without proof that we sent it`] : []),
  ]
  return printText(context, `${outcome}: ${reason}${counts.length > 0 ? `; ${counts.join(', ')}` : ''}\n`)
}

/** At most `most` bytes, so that a pipe that never ends fills no memory. */
async function readBytes(context: Context, file: string | undefined, most: number): Promise<Uint8Array> {
  if (file !== undefined && file !== '-') {
    const { readFile } = await import('node:fs/promises')
    const path = await import('node:path')
    try {
      return await readFile(path.resolve(context.cwd, file))
    } catch {
      throw wrongUsage(`cannot read ${file}: check the path and who owns it.`)
    }
  }
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of context.stdin) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    chunks.push(bytes)
    size += bytes.byteLength
    if (size >= most) break
  }
  return Buffer.concat(chunks)
}

const KINDS: readonly (readonly [CountedKind, string])[] = [
  ['sent', 'sent'],
  ['delivered', 'delivered'],
  ['hard-bounce', 'hard bounces'],
  ['soft-bounce', 'soft bounces'],
  ['complaint', 'complaints'],
  ['unsubscribed', 'unsubscribed'],
]

/** Mail sent and feedback received: tables by day, by source and by recipient domain. */
export function feedbackStatusText(input: {
  readonly counts: readonly MailDayCount[]
  readonly paused: Pause | undefined
}): string {
  const { counts, paused } = input
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
