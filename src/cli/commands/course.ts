import type { Subscription } from '../../core/course/subscription.ts'
import { coursePause } from '../../core/mail/holds.ts'
import { courseCommand, type Define } from '../command.ts'
import { failure, listColumns, operatorOf, wrongUsage } from '../context.ts'
import * as people from '../course/enrolments.ts'
import { addressOf, choice } from '../inputs.ts'
import { addressHint, courseStatusText, historyText } from '../output/course-text.ts'
import { iso, labelled, plural } from '../output/text.ts'
import { resumeStreams } from './mail.ts'

const status = courseCommand({
  summary: 'show how many are unconfirmed, confirmed or unsubscribed, what is due, and what needs a decision',
  examples: ['', '--format json'],
  document: 'course status',
  async run(context, _, { course, platform }) {
    const counts = await course.counts()
    const found = await course.problems(50)
    const paused = coursePause(await (await platform.store()).sending.holds())
    const problems = await Promise.all(
      found.map(async (one) => ({ ...one, messageId: await course.messageIdOf(one) })),
    )
    const waiting = problems.map(({ id, sentDays, problem, nextAttemptAt, address, messageId }) => {
      const day = sentDays.length + 1
      return { id, day, ...problem, nextAttemptAt, messageId, address: addressHint(address) }
    })
    const now = context.clock.now()
    const text = courseStatusText({ counts, paused, problems, now, columns: listColumns(context.stdout) })
    return { json: { ...counts, paused, problems: waiting }, text }
  },
})

const resume = courseCommand({
  summary:
    'resume courses that are paused, as mail resume --stream course does; the next dispatch sends again',
  examples: [''],
  document: 'course resume',
  async run(context, _, { platform }) {
    if ((await resumeStreams(context, (await platform.store()).sending, ['course'])).length === 0)
      throw failure('courses are not paused.')
    return {
      json: { resumed: true },
      text: 'courses go on with the next dispatch; the rates are counted from now\n',
    }
  },
})

const show = courseCommand({
  summary:
    'show what courses store about one person, with the history of what was sent; the JSON form is for access requests',
  examples: ['ada@example.com', 'SUBSCRIPTION', 'ada@example.com --format json'],
  document: 'course show',
  inputs: { '<address-or-id>': 'the address, or the subscription’s id as course status shows it' },
  async run(_, { addressOrId: who }, { course }) {
    const byAddress = who.includes('@')
    const stored = byAddress
      ? await course.findPerson(addressOf(who).identity)
      : [(await course.findById(who)) ?? []].flat()
    const found = stored.map(published)
    const histories = await Promise.all(found.map(({ id }) => course.history(id)))
    const enrolments = found.map((enrolment, index) => ({
      ...enrolment,
      history: (histories[index] ?? []).map((entry) => ({ ...entry, at: iso(entry.at) })),
    }))
    const [oldest] = enrolments
    if (oldest === undefined) throw failure(`no subscription has this ${byAddress ? 'address' : 'id'}.`)
    const texts = found.map(
      (enrolment, index) => `${labelled(rows(enrolment), 14)}\n${historyText(histories[index] ?? [])}`,
    )
    // The oldest also at the top, as before there were several.
    return { json: { ...oldest, enrolments }, text: texts.join('\n') }
  },
})

/** A subscription without what only the store needs. */
function published(found: Subscription): Subscription {
  const { id, address, course, state, enrolment, createdAt, unsubscribedAt } = found
  const { sentDays, lessons, sentLessons, dueAt, lastSentAt, courseVersion, timeZone, language } = found
  const { nextAttemptAt, failures, problem, consent } = found
  // For somebody imported, the stored time is calculated back from the next lesson.
  const confirmedAt = found.confirmedAt && (consent?.at ?? found.confirmedAt)
  const person = { id, address, course, state, enrolment, createdAt, confirmedAt, unsubscribedAt }
  const progress = { sentDays, lessons, ...(sentLessons && { sentLessons }), dueAt, lastSentAt }
  const settings = { courseVersion, timeZone, language }
  return { ...person, ...progress, ...settings, nextAttemptAt, failures, problem, consent }
}

function rows(found: Subscription): (readonly [string, string])[] {
  const { unsubscribedAt, problem, consent } = found
  const time = (ms: number | undefined) => (ms === undefined ? 'never' : iso(ms))
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
    ...(unsubscribedAt === undefined ? [] : [['unsubscribed', time(unsubscribedAt)] as const]),
    ['consent', consent ? `${time(consent.at)}, ${consent.how}` : 'not recorded'],
    ['days sent', found.sentDays.join(', ') || 'none'],
    ['next attempt', time(found.nextAttemptAt)],
    ...(problem ? [['problem', `${problem.kind}: ${problem.reason}`] as const] : []),
  ]
}

const erase = courseCommand({
  summary:
    'remove an address from the store, with its subscriptions, history, invites, sign-in requests and records of sent mail. What remains: a keyed hash, so that no course mails the address again; what your own program stores; backups, and stores that db restore kept, until you delete them; the mail provider’s own logs',
  examples: ['ada@example.com --yes    cannot be undone'],
  document: 'course erase',
  inputs: { '<address>': 'the address', '--yes': 'do it; without this nothing is changed' },
  async run(context, { address, yes }, { course }) {
    const { identity } = addressOf(address)
    if (!yes) throw wrongUsage('erasing cannot be undone: add --yes to confirm.')
    const { existed, related, bytesGone } = await course.erase(identity, operatorOf(context))
    const erased = existed || related > 0
    const more = related > 0 ? `, with ${plural(related, 'other record')} about it` : ''
    return {
      json: { erased, related, bytesGone, suppressed: true },
      text: erased
        ? `erased${more}; no course will mail the address again\n`
        : 'there was nothing to erase; no course will mail the address\n',
      fault: bytesGone
        ? undefined
        : 'the rows are deleted, but their bytes may stay in the file, which another process reads, or in the journal, which cannot be written (platformctl db verify): run this command again after that.',
    }
  },
})

const BECAME = {
  retry: {
    one: 'it is due now; the next dispatch sends it',
    all: 'put back in line; the next dispatch sends them',
  },
  sent: {
    one: 'recorded as sent; any next lesson follows in its turn',
    all: 'recorded as sent; any next lessons follow in their turn',
  },
} as const

const resolve = courseCommand({
  summary: 'retry parked, unknown or bounced deliveries, or mark them, or a lesson that is due, as sent',
  examples: [
    'SUBSCRIPTION retry    send it again',
    'SUBSCRIPTION sent     it arrived; go on with the next day',
    '--all retry           every parked or unknown delivery',
    '--reason "the address does not exist" retry',
  ],
  document: 'course resolve',
  inputs: {
    '[id]': 'the subscription, as course status shows it; not with --all or --reason',
    '[as]': choice('retry: send it again; sent: it arrived', ['retry', 'sent'], { kind: 'decision' }),
    '--all': 'every parked or unknown delivery',
    '--reason <text>': 'every delivery whose reason contains this text, bounced ones included',
  },
  async run(context, { id, as, all, reason }, { course }) {
    const operator = operatorOf(context)
    if (all || reason !== undefined) {
      // Without a subscription, the decision is the only argument.
      if (as !== undefined || (id !== 'retry' && id !== 'sent'))
        throw wrongUsage('with --all or --reason, give the decision alone: retry or sent.')
      const count = await course.resolveAll(id, reason, operator)
      return {
        json: { count, resolved: id },
        text: `${plural(count, 'delivery', 'deliveries')} ${BECAME[id].all}\n`,
      }
    }
    if (id === undefined || as === undefined)
      throw wrongUsage(
        'name a subscription and a decision: platformctl course resolve SUBSCRIPTION retry|sent, or --all retry|sent.',
      )
    if (!(await course.resolve(id, as, operator)))
      throw failure(`no delivery of ${id} waits for a decision, or its course is not in this definition.`)
    return { json: { subscription: id, resolved: as }, text: `${BECAME[as].one}\n` }
  },
})

export const define: Define = () => ({
  examples: ['status --data /var/lib/platformctl', 'show ada@example.com', 'resolve SUBSCRIPTION retry'],
  commands: {
    status,
    show,
    list: people.list,
    enrol: people.enrol,
    set: people.set,
    export: people.exportPeople,
    import: people.importPeople,
    cancel: people.cancel,
    'resend-confirmation': people.resendConfirmation,
    erase,
    resume,
    resolve,
  },
})
