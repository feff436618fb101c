import type { Course } from '../../core/course/course.ts'
import type { Subscription } from '../../core/course/store.ts'
import type { OpenedPlatform } from '../../daemon/platform.ts'
import { type Configure, type Context, listColumns, operatorOf } from '../context.ts'
import type { EnrolOptions } from '../course/enrolments.ts'
import { CommandError, EXIT, type ExitCode, wrongUsage } from '../exit.ts'
import { choiceArgument, formatOption, type StoreOptions, storeSubcommand, withPlatform } from '../options.ts'
import { printJson, printText } from '../print.ts'

interface Options extends StoreOptions {
  readonly all?: true
  readonly reason?: string
  readonly yes?: true
}

type Enrolling = EnrolOptions & StoreOptions
const enrolments = () => import('../course/enrolments.ts')
type Transfer = typeof import('../course/transfer.ts')
const transfer = () => import('../course/transfer.ts')

export const configure: Configure = (command, context, settle) => {
  const add = (name: string, summary: string, ...examples: string[]) =>
    storeSubcommand(command, { name, summary, examples }).addOption(formatOption(['text', 'json']))
  const run = async (options: StoreOptions, work: (platform: OpenedPlatform) => Promise<ExitCode>) =>
    settle(await withPlatform(context, options, work))
  const runCourse = (options: StoreOptions, work: (course: Course) => Promise<ExitCode>) =>
    run(options, async (platform) => work(await platform.course()))

  command
    .description(
      'Manage courses and the people in them: counts, one address, enrolment, erasure, and deliveries that need a decision.',
    )
    .addHelpText(
      'after',
      `
Examples:
  platformctl course status --data /var/lib/platformctl
  platformctl course show ada@example.com
  platformctl course resolve SUBSCRIPTION retry`,
    )
  add('status', 'show counts by state, what is due, and what needs a decision', '', ' --format json').action(
    (options: Options) => run(options, (platform) => status(context, platform, options)),
  )
  add(
    'show',
    'show everything stored about one person, with the history of what was sent; the JSON form answers an access request',
    ' ada@example.com',
    ' SUBSCRIPTION',
    ' ada@example.com --format json',
  )
    .argument('<address-or-id>', 'the address, or the subscription’s id as course status shows it')
    .action((address: string, options: Options) =>
      runCourse(options, (course) => show(context, course, address, options)),
    )
  const courseOption = ['--course <id>', 'the course (default: the first of the platform)'] as const
  add('list', 'the courses of the platform, or those of one person', '', ' ada@example.com', ' --format json')
    .argument('[address]', 'the address of a person')
    .action((address: string | undefined, options: Enrolling) =>
      run(options, async (platform) => (await enrolments()).listCourses(context, platform, address, options)),
    )
  add(
    'enrol',
    'begin a course for somebody who agreed to it elsewhere, without a confirmation mail',
    ' ada@example.com',
    ' ada@example.com --course glazing --time-zone Europe/Berlin --key order-1047',
  )
    .argument('<address>', 'the address')
    .option(...courseOption)
    .option('--time-zone <name>', 'IANA name, for courses at the subscriber’s local hour')
    .option('--language <tag>', 'a language tag (default: that of the platform)')
    .option('--key <text>', 'an idempotency key: a second call with the same key changes nothing')
    .action((address: string, options: Enrolling) =>
      run(options, async (platform) => (await enrolments()).enrolPerson(context, platform, address, options)),
    )
  add(
    'set',
    'change the language or time zone of a person; the lessons and mails to come follow',
    ' ada@example.com --language de',
    ' SUBSCRIPTION --time-zone Europe/Vienna',
  )
    .argument('<address-or-id>', 'the address, for all courses of this person, or a subscription’s id')
    .option('--course <id>', 'only this course')
    .option('--language <tag>', 'a language tag, as de or pt-BR')
    .option('--time-zone <name>', 'IANA name, as Europe/Vienna')
    .action((who: string, options: Enrolling) =>
      run(options, async (platform) => (await enrolments()).setPreferences(context, platform, who, options)),
    )
  storeSubcommand(command, {
    name: 'export',
    summary:
      'print who is in the courses: state, language, time zone, what was sent and when, what is next, proof of consent',
    examples: [' > people.csv', ' --course glazing --format json > people.json'],
  })
    .option('--course <id>', 'only this course')
    .addOption(formatOption(['csv', 'json']))
    .action((options: StoreOptions & Parameters<Transfer['exportPeople']>[2]) =>
      run(options, async (platform) => (await transfer()).exportPeople(context, platform, options)),
    )
  add(
    'import',
    'enrol people who agreed elsewhere, from CSV or JSON as course export writes it, with proof of consent on each line. Nobody is imported if a line has a fault; who unsubscribed, is suppressed or was erased is left out; a second time changes nothing',
    ' people.csv --dry-run',
    ' people.csv',
  )
    .argument(
      '<file>',
      'columns address, consent_at and consent_how; course, language, time_zone, sent, next_at …',
    )
    .option('--dry-run', 'check the file and report; change nothing')
    .action((file: string, options: StoreOptions & Parameters<Transfer['importPeople']>[3]) =>
      run(options, async (platform) => (await transfer()).importPeople(context, platform, file, options)),
    )
  add('cancel', 'end a course for a person, as an unsubscribe does', ' ada@example.com --course glazing')
    .argument('<address>', 'the address')
    .option(...courseOption)
    .action((address: string, options: Enrolling) =>
      run(options, async (platform) =>
        (await enrolments()).cancelEnrolment(context, platform, address, options),
      ),
    )
  add(
    'resend-confirmation',
    'mail the confirmation link to an unconfirmed address again, within the limits of subscribing',
    ' ada@example.com',
  )
    .argument('<address>', 'the address')
    .action((address: string, options: Enrolling) =>
      run(options, async (platform) =>
        (await enrolments()).resendConfirmation(context, platform, address, options),
      ),
    )
  add(
    'erase',
    'remove an address and everything about it from the store: subscription, history, invites, sign-in requests, records of sent mail. What remains: a keyed hash, so that the address is not mailed again; backups, and stores that db restore kept, until you delete them; the mail provider’s own logs',
    ' ada@example.com --yes    cannot be undone',
  )
    .argument('<address>', 'the address')
    .option('--yes', 'do it; without this nothing is changed')
    .action((address: string, options: Options) =>
      runCourse(options, (course) => erase(context, course, address, options)),
    )
  add(
    'resume',
    'resume courses that are paused, as mail resume --stream course does; the next dispatch sends again',
    '',
  ).action((options: Options) => run(options, (platform) => resume(context, platform, options)))
  add(
    'resolve',
    'retry parked, unknown or bounced deliveries, or mark them, or a lesson that is due, as sent',
    ' SUBSCRIPTION retry    send it again',
    ' SUBSCRIPTION sent     it arrived; go on with the next day',
    ' --all retry           every parked or unknown delivery',
    ' --reason "the address does not exist" retry',
  )
    .argument('[id]', 'the subscription, as course status shows it; not with --all or --reason')
    .addArgument(
      choiceArgument('[as]', 'retry: send it again; sent: it arrived', {
        kind: 'decision',
        choices: ['retry', 'sent'],
      }),
    )
    .option('--all', 'every parked or unknown delivery')
    .option('--reason <text>', 'every delivery whose reason contains this text, bounced ones included')
    .action(async (id: string | undefined, as: Decision | undefined, options: Options) => {
      const decide = decisionOf(id, as, options)
      await runCourse(options, (course) => decide(context, course, options))
    })
}

async function status(context: Context, platform: OpenedPlatform, options: Options): Promise<ExitCode> {
  const course = await platform.course()
  const [counts, problems] = [await course.counts(), await course.problems(50)]
  const { coursePause } = await import('../../core/mail/holds.ts')
  const paused = coursePause(await (await platform.store()).sending.holds())
  if (options.format === 'json') {
    const { addressHint } = await import('../output/course-text.ts')
    const waiting = await Promise.all(
      problems.map(async (one) => ({
        id: one.id,
        day: one.sentDays.length + 1,
        ...one.problem,
        nextAttemptAt: one.nextAttemptAt,
        address: addressHint(one.address),
        messageId: await course.messageIdOf(one),
      })),
    )
    return printJson(context, 'course status', { ...counts, ...(paused && { paused }), problems: waiting })
  }
  const { courseStatusText } = await import('../output/course-text.ts')
  return printText(
    context,
    courseStatusText({
      counts,
      paused,
      problems: await Promise.all(
        problems.map(async (one) => ({ ...one, messageId: await course.messageIdOf(one) })),
      ),
      now: context.clock.now(),
      columns: listColumns(context.stdout),
    }),
  )
}

async function resume(context: Context, platform: OpenedPlatform, options: Options): Promise<ExitCode> {
  const { resumeStreams } = await import('../mail-holds.ts')
  if ((await resumeStreams(context, platform, ['course'])).length === 0)
    throw new CommandError(EXIT.failed, 'courses are not paused.')
  if (options.format === 'json') return printJson(context, 'course resume', { resumed: true })
  return printText(context, 'courses go on with the next dispatch; the rates are counted from now\n')
}

async function show(context: Context, course: Course, address: string, options: Options): Promise<ExitCode> {
  const byAddress = address.includes('@')
  const found = byAddress
    ? await course.findPerson(await identityOf(address))
    : [(await course.findById(address)) ?? []].flat()
  if (found.length === 0)
    throw new CommandError(EXIT.failed, `no subscription has this ${byAddress ? 'address' : 'id'}.`)
  const all = await Promise.all(
    found.map(async (enrolment) => ({ enrolment, history: await course.history(enrolment.id) })),
  )
  if (options.format === 'json') {
    const enrolments = all.map(({ enrolment, history }) => ({
      ...published(enrolment),
      history: history.map((entry) => ({ ...entry, at: new Date(entry.at).toISOString() })),
    }))
    // The oldest also at the top, as before there were several.
    const [oldest] = enrolments
    if (oldest) return printJson(context, 'course show', { ...oldest, enrolments })
  }
  const { historyText } = await import('../output/course-text.ts')
  const texts = all.map(({ enrolment, history }) => {
    const lines = rows(enrolment).map(([name, value]) => `${name.padEnd(14)}${value}\n`)
    return `${lines.join('')}\n${historyText(history)}`
  })
  return printText(context, texts.join('\n'))
}

/** A subscription without what only the store needs. */
function published(found: Subscription): Subscription {
  const { id, address, course, state, enrolment, sentDays, sentLessons, lessons, failures, problem } = found
  const { createdAt, confirmedAt, unsubscribedAt, dueAt, lastSentAt, nextAttemptAt } = found
  const { courseVersion, timeZone, language, consent } = found
  return {
    ...{ id, address, course, state, enrolment, createdAt, confirmedAt, unsubscribedAt, sentDays, lessons },
    ...(sentLessons && { sentLessons }),
    ...{ dueAt, lastSentAt, courseVersion, timeZone, language, nextAttemptAt, failures, problem, consent },
  }
}

function rows(found: Subscription): [string, string][] {
  const time = (ms: number | undefined) => (ms === undefined ? 'never' : new Date(ms).toISOString())
  return [
    ['id', found.id],
    ['address', found.address],
    ['course', found.course],
    ['state', found.state],
    ['enrolment', String(found.enrolment)],
    ['language', found.language ?? 'that of the platform'],
    ['time zone', found.timeZone ?? 'not known'],
    ['subscribed', time(found.createdAt)],
    ['confirmed', time(found.confirmedAt)],
    ...(found.unsubscribedAt === undefined
      ? []
      : ([['unsubscribed', time(found.unsubscribedAt)]] as [string, string][])),
    ['consent', found.consent ? `${time(found.consent.at)}, ${found.consent.how}` : 'not recorded'],
    ['days sent', found.sentDays.join(', ') || 'none'],
    ['next attempt', time(found.nextAttemptAt)],
    ...(found.problem
      ? ([['problem', `${found.problem.kind}: ${found.problem.reason}`]] as [string, string][])
      : []),
  ]
}

async function erase(context: Context, course: Course, address: string, options: Options): Promise<ExitCode> {
  const identity = await identityOf(address)
  if (!options.yes) throw wrongUsage('erasing cannot be undone: add --yes to confirm.')
  const { existed, related, bytesGone } = await course.erase(identity, operatorOf(context))
  const erased = existed || related > 0
  if (options.format === 'json')
    printJson(context, 'course erase', { erased, related, bytesGone, suppressed: true })
  else {
    const more = related > 0 ? ` (with ${related} invites, sign-in requests or records of sent mail)` : ''
    context.stdout.write(
      erased
        ? `erased${more}; the address will not be mailed again\n`
        : 'there was nothing to erase; the address will not be mailed\n',
    )
  }
  if (bytesGone) return EXIT.passed
  throw new CommandError(
    EXIT.failed,
    'the rows are deleted, but their bytes stay in the file while another process reads it: run this command again when that process has ended.',
  )
}

type Decision = 'retry' | 'sent'

/** The decision that `course resolve` is to record. Refuses a malformed one before the store is opened. */
function decisionOf(
  id: string | undefined,
  as: Decision | undefined,
  { all, reason }: Options,
): (context: Context, course: Course, options: Options) => Promise<ExitCode> {
  if (!all && reason === undefined) {
    if (id === undefined || as === undefined)
      throw wrongUsage(
        'name a subscription and a decision: platformctl course resolve SUBSCRIPTION retry|sent, or --all retry|sent.',
      )
    return (context, course, options) => resolve(context, course, id, as, options)
  }
  // Without a subscription, the decision is the only argument.
  const decision = as === undefined ? id : undefined
  if (decision !== 'retry' && decision !== 'sent')
    throw wrongUsage('with --all or --reason, give the decision alone: retry or sent.')
  return (context, course, options) => resolveAll(context, course, decision, options)
}

async function resolveAll(
  context: Context,
  course: Course,
  as: Decision,
  options: Options,
): Promise<ExitCode> {
  const resolved = await course.resolveAll(as, options.reason, operatorOf(context))
  if (options.format === 'json')
    return printJson(context, 'course resolve', { count: resolved, resolved: as })
  const deliveries = resolved === 1 ? '1 delivery' : `${resolved} deliveries`
  return printText(
    context,
    as === 'retry'
      ? `${deliveries} put back in line; the next dispatch sends them\n`
      : `${deliveries} recorded as sent; the next lessons follow in their turn\n`,
  )
}

async function resolve(
  context: Context,
  course: Course,
  id: string,
  as: Decision,
  options: Options,
): Promise<ExitCode> {
  if (!(await course.resolve(id, as, operatorOf(context))))
    throw new CommandError(EXIT.failed, `no delivery of ${id} waits for a decision.`)
  if (options.format === 'json')
    return printJson(context, 'course resolve', { subscription: id, resolved: as })
  return printText(
    context,
    as === 'retry'
      ? 'it is due now; the next dispatch sends it\n'
      : 'recorded as sent; the next lesson follows in its turn\n',
  )
}

async function identityOf(address: string): Promise<string> {
  const { parseAddress } = await import('../../core/address.ts')
  const parsed = parseAddress(address)
  if (!parsed.ok) throw wrongUsage(`${parsed.reason}.`)
  return parsed.identity
}
