import { setImmediate as nextTurn } from 'node:timers/promises'
import { auditEntry, type Operator, PROGRAM } from '../audit.ts'
import { createUnderway } from '../calls.ts'
import { createMails } from '../delivery/messages.ts'
import { HOUR_MS, MINUTE_MS } from '../durations.ts'
import { faultName } from '../errors.ts'
import { systemClock, type Timer, untilAborted, within } from '../host.ts'
import type { Held } from '../mail/holds.ts'
import { triedBefore } from '../mail/send-once.ts'
import type { TransactionalMail } from '../mail/transactional.ts'
import type { Secret } from '../secret.ts'
import { createConfirmations } from './confirmations.ts'
import { createDispatcher, type Dispatch, type DispatcherOptions, lessonOf, MOST_LISTED } from './dispatch.ts'
import type { DispatchRequest } from './dispatch-request.ts'
import { createEnrolments } from './enrolments.ts'
import { aboutOf, type CourseHost } from './host.ts'
import { createNotices, type NoticesOptions } from './notices.ts'
import { nextDay, type Subscription } from './subscription.ts'
import { isDatedAhead } from './transitions/enrol.ts'

const RESOLVE_AT_ONCE = 500
/** How long a process that runs no daemon may take, at its end and in a dispatch call, to send what is queued. */
const LAST_MS = 10_000

export interface CourseOptions
  extends Omit<CourseHost, 'timer' | 'held' | 'signal' | 'keys' | 'addressKey'>,
    Omit<Parameters<typeof createConfirmations>[1], 'inBackground'>,
    DispatcherOptions {
  readonly timer?: Timer
  readonly held?: Held
  /** Resolves the record of a queued sign-in mail anew; undefined: this opener sends no queued mails. */
  readonly again?: TransactionalMail['again']
  /** No daemon looks each minute for what failed: from its first mail on, this process does. */
  readonly isAlone?: boolean
  readonly linkKey: Secret
  /** Keys that signed links before, and are still accepted. */
  readonly oldLinkKeys?: readonly Secret[]
  /** Parts needed to mail subscribers of incidents; undefined: this opener mails them nothing. */
  readonly notices?: Omit<NoticesOptions, 'pace'>
  /** Default: `linkKey`. */
  readonly addressKey?: Secret
}

/** The courses of a platform as their callers see them: routes, schedule and CLI enter here. */
export type Course = ReturnType<typeof openCourse>

/** Opens the course over a store and a mailer; nothing is sent before it is asked to. */
export function openCourse(options: CourseOptions) {
  const { store, mailer, clock, timer = systemClock, log, catalog } = options
  const { linkKey, oldLinkKeys = [], addressKey = linkKey, held = async () => undefined, again } = options
  const closing = new AbortController()
  const host: CourseHost = {
    ...options,
    timer,
    held,
    addressKey,
    keys: [linkKey, ...oldLinkKeys],
    signal: closing.signal,
  }
  const pending = createUnderway()
  let looking: NodeJS.Timeout | undefined
  /** Goes on after the answer; closing waits for it. A fault leaves the row, which the next process takes. */
  const inBackground = (work: Promise<unknown>) => {
    if (options.isAlone && !closing.signal.aborted) looking ??= setInterval(wake, MINUTE_MS).unref()
    const ended = work.catch((error: unknown) =>
      log.warn('message_interrupted', 'a mail could not be sent or recorded now, and is tried again', {
        fault: faultName(error),
      }),
    )
    void pending.during(ended)
  }

  const { engine, ...confirmations } = createConfirmations(host, { ...options, inBackground })
  const senders = [
    engine,
    ...(again === undefined ? [] : createMails(host, again)),
    ...(options.notices ? [createNotices(host, { ...options.notices, pace: options.pace })] : []),
  ]
  const deliverMessages = async () => {
    const sent = await Promise.all(senders.map((sender) => sender.wake()))
    return sent.reduce((sum, one) => sum + one, 0)
  }
  const wake = () => inBackground(deliverMessages())
  async function queueSent(signal?: AbortSignal): Promise<void> {
    if (!options.isAlone) return
    // Ends what listens to a signal that outlives the call.
    const over = new AbortController()
    const stopped = untilAborted(AbortSignal.any([over.signal, ...(signal ? [signal] : [])]))
    await within(LAST_MS, Promise.race([pending.ended(), stopped]), () => [])
    over.abort()
  }

  let reviewedAt: number | undefined
  /** Takes changed courses to those who follow the newest: first to all, then hourly to whom a shorter course ended. */
  async function reviewFollowers(): Promise<void> {
    if (!catalog.courses.some(({ follow }) => follow === 'latest')) return
    const since = timer.monotonic()
    const now = clock.now()
    if (reviewedAt !== undefined && since - reviewedAt < HOUR_MS) return
    const cut = reviewedAt !== undefined
    const revise = (enrolment: Subscription) => catalog.revise(enrolment, now)
    for (let after: string | undefined = ''; after !== undefined; await nextTurn())
      after = await store.review({ after, cut, revise })
    reviewedAt = since
  }

  const run = createDispatcher(host, options)
  const calls = createUnderway()
  const dispatch: Dispatch = ({ signal, ...call }) => {
    wake()
    const both = AbortSignal.any([closing.signal, ...(signal ? [signal] : [])])
    const running = reviewFollowers().then(async () => {
      const result = await run({ ...call, signal: both })
      // A host may stop its process with the answer, and then nothing leaves in the background.
      await queueSent(both)
      return result
    })
    return calls.during(running)
  }

  async function resolveOne(enrolment: Subscription, as: 'retry' | 'sent', operator: Operator) {
    const { id } = enrolment
    const day = enrolment.sentDays.length + 1
    const tried = await triedBefore(store, aboutOf({ ...enrolment, day }))
    const plan = await catalog.plan({ ...enrolment, day }, store, tried?.template)
    // What follows is in a course that this platform does not have: nothing would.
    if (as === 'sent' && plan === undefined) return false
    return store.resolve({
      id,
      as,
      now: clock.now(),
      audit: auditEntry(host, { action: 'resolve', subject: id, operator, details: as }),
      next: ({ confirmedAt = 0, ...known }, sentAt) =>
        plan && catalog.next(plan, { ...known, confirmedAt }, day, sentAt),
      progress: plan && catalog.progress(plan, { ...enrolment, day }),
    })
  }

  return {
    ...confirmations,
    ...createEnrolments(host),
    courses: catalog.courses,
    dispatch,
    /** Sends the confirmations, notices and queued mails that are due, whichever process stored them; gives how many left. */
    deliverMessages,
    /** Starts that, and waits for nothing. */
    wake,
    counts: () =>
      store.counts(clock.now(), Math.max(0, ...catalog.courses.map(({ lessons }) => lessons.length))),
    /** The lessons that a course no longer has and people in the middle of it were sent, and how many people. */
    async deletedLessons(course: string) {
      const lessons = catalog.find(course)?.lessons ?? []
      return [...(await store.sentNames(course))]
        .filter(([lesson]) => !lessons.includes(lesson))
        .map(([lesson, people]) => ({ lesson, people }))
    },
    /** Cheap enough for every scrape. */
    backlog: (request?: DispatchRequest) => store.backlog(clock.now(), request),
    /** What such a call may send, longest due first; the call itself takes most of its lessons from those never tried. */
    due: (request: DispatchRequest) =>
      store.listDue(clock.now(), Math.min(request.limit ?? options.limit, MOST_LISTED), request),
    problems: (limit: number) => store.listProblems(limit),
    /** The history of a subscription, oldest entry first. */
    history: (id: string) => store.history(id),
    /** The Message-ID of the lesson in hand; undefined when there is none, or mail is not configured here. */
    async messageIdOf(one: Subscription): Promise<string | undefined> {
      const day = nextDay(one)
      const plan = day && (await catalog.plan({ ...one, day }, store))
      if (!plan || day > plan.lessons.length) return undefined
      return mailer.messageId(lessonOf(plan, { ...one, day }))
    },
    /** Once a clock that was ahead is right, plans what it dated from now on: it would be late by as much. */
    async redate(): Promise<void> {
      const now = clock.now()
      for (let after: string | undefined = ''; after !== undefined; await nextTurn()) {
        const page: readonly Subscription[] = await store.page(after)
        for (const one of page.filter((each) => isDatedAhead(each, now))) {
          const sent = one.sentDays.length
          const plan = await catalog.plan({ ...one, day: sent + 1 }, store)
          const next = ({ confirmedAt = now, ...known }: Subscription) =>
            plan && catalog.next(plan, { ...known, confirmedAt }, sent)
          await store.redate({ id: one.id, now, next })
        }
        after = page.at(-1)?.id
      }
    },
    /** Puts a lesson that waits for an operator back in line, or marks it sent; false: none does, or its course is no more. */
    async resolve(id: string, as: 'retry' | 'sent', operator: Operator = PROGRAM): Promise<boolean> {
      const found = await store.findById(id)
      return found !== undefined && (await resolveOne(found, as, operator))
    },
    /** Decides about all that are given up or unknown, or those whose reason holds a text (bounced ones too); gives how many. */
    async resolveAll(as: 'retry' | 'sent', reason?: string, operator: Operator = PROGRAM): Promise<number> {
      let resolved = 0
      let after: { readonly since: number; readonly id: string } | undefined
      for (;;) {
        const page = await store.listProblems(RESOLVE_AT_ONCE, after)
        for (const one of page) {
          const { id, problem, nextAttemptAt } = one
          after = { since: problem?.since ?? 0, id }
          const waits =
            problem?.kind === 'unknown' || (nextAttemptAt === undefined && problem?.kind !== 'bounced')
          if (reason === undefined ? !waits : problem?.reason.includes(reason) !== true) continue
          if (await resolveOne(one, as, operator)) resolved += 1
        }
        if (page.length < RESOLVE_AT_ONCE) return resolved
      }
    },
    /** Deletes what the store keeps of courses as they were, once nobody follows it any more. */
    prunePlans: async () => store.prunePlans({ keep: await catalog.versions(), now: clock.now() }),
    /** Ends dispatch calls after the messages in flight, and waits for them; a new one sends nothing. Without a daemon, first sends what is queued. */
    async stopDispatching(): Promise<void> {
      await queueSent()
      closing.abort(new Error('the platform stops'))
      clearInterval(looking)
      await calls.ended()
    },
    close: async () => void (await pending.ended()),
  }
}
