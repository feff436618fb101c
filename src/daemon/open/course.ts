import { parseAddress } from '../../core/address.ts'
import type { Clock } from '../../core/clock.ts'
import { openCatalog } from '../../core/course/catalog.ts'
import type { Course } from '../../core/course/course.ts'
import { createNotices, type Notice } from '../../core/course/notices.ts'
import { openCourse } from '../../core/course/open.ts'
import { HOUR_MS } from '../../core/durations.ts'
import type { Settings } from '../../core/env/settings.ts'
import { type IncidentStore, saidIn } from '../../core/incidents/incident.ts'
import type { Log } from '../../core/log.ts'
import type { MailSet, NOTICE_SLOTS } from '../../core/mail/definition.ts'
import type { Directory } from '../../core/mail/directory.ts'
import { readLessonTexts } from '../../core/mail/lesson-texts.ts'
import type { KeptMail } from '../../core/mail/send-once.ts'
import { openTransactionalMail, type TransactionalMail } from '../../core/mail/transactional.ts'
import { timesIn } from '../../core/messages/time.ts'
import { type Once, once } from '../../core/once.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import type { Random } from '../../core/random.ts'
import { recent } from '../../core/recent.ts'
import { createLabels, headline } from '../../core/status/words.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { MailService } from './mail.ts'
import type { Stores } from './stores.ts'

/** The longest announcement that a mail holds whole; the status page has the rest. */
const LONGEST = 480

/** Text of a notice for visitors, in their language or else the platform's: no reasons, addresses or commands. */
export function noticeSlots(
  platform: ResolvedPlatform,
  siteUrl: string,
  { kind, at: now, facts }: Notice,
  language = platform.language,
): Readonly<Record<Exclude<keyof typeof NOTICE_SLOTS, 'unsubscribeUrl'>, string>> {
  const labels = createLabels({ ...platform, language })
  const { messages } = labels
  const { notices: T, status } = messages
  const { name } = platform
  const { cause = '', from, until } = facts
  const text = saidIn(facts, language)
  const at = timesIn(messages.language).moment
  const statusUrl = `${siteUrl}/${language === platform.language ? '' : `?language=${encodeURIComponent(language)}`}`
  const what = labels.probe(cause)
  switch (kind) {
    case 'opened': {
      const means = T.means[cause] ?? T.meansOther
      return {
        title: T.openedTitle(name, what),
        text: T.opened(what, means),
        when: T.since(at(from)),
        statusUrl,
      }
    }
    case 'closed': {
      const when = until === undefined ? T.since(at(from)) : T.lasted(at(from), at(until), until - from)
      return { title: T.closedTitle(name, what), text: T.closed(what), when, statusUrl }
    }
    case 'announced':
      if (facts.about !== undefined)
        return {
          title: T.updateTitle(name, cause === '' ? undefined : what),
          text: shortened(text),
          when: `${status.updateStates[facts.state ?? 'update']}, ${at(from)}.`,
          statusUrl,
        }
      return {
        title: T.announcedTitle(name, headline(text)),
        text: shortened(text),
        when:
          until === undefined && from <= now
            ? T.since(at(from))
            : status.planned(at(from), until === undefined ? undefined : at(until)),
        statusUrl,
      }
  }
}

/** On one line, as a header field can hold it. */
function shortened(text: string): string {
  const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
  // Half of a surrogate pair at the cut would show as a replacement character.
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** Read when the first course begins or the first lesson is sent. */
const textsOf = (mails: MailSet) => mails.texts ?? (() => readLessonTexts(mails))

export interface CoursePart {
  readonly course: Once<Course>
  readonly transactionalMail: () => Promise<TransactionalMail>
  /** Where mails are kept to be sent for certain; undefined while nothing outlives the process. */
  readonly keptMail: () => Promise<KeptMail | undefined>
  /** The budget of confirmations was found used up within the last hour. */
  readonly confirmationsExhausted: () => boolean
}

/** The courses and the transactional mails over one store and mailer, opened when first asked for. */
export function openCoursePart({
  platform,
  settings,
  stores: { store, keys, isKept },
  mail: { mailer, pacer, tally, held },
  directory,
  metrics,
  clock,
  random,
  log,
}: {
  readonly platform: ResolvedPlatform
  readonly settings: Settings
  readonly stores: Stores
  readonly mail: MailService
  readonly directory: Directory | undefined
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}): CoursePart {
  const { siteUrl } = settings.site
  let exhaustedAt = Number.NEGATIVE_INFINITY
  const confirmationsExhausted = () => clock.monotonic() - exhaustedAt < HOUR_MS
  const course = once(async () => {
    const kept = await store()
    const opened = openCourse({
      catalog: await openCatalog(platform.courses, {
        texts: textsOf(platform.mails),
        log,
        notices: createNotices(kept.notices),
      }),
      notices: {
        store: kept.notices,
        silentUntil: openSilence(kept.incidents, clock),
        isAnnounced: async (id) =>
          (await kept.incidents.announcements(clock.now())).some((one) => one.id === id),
        slots: (notice, language) => noticeSlots(platform, siteUrl, notice, language),
      },
      store: kept.course,
      persistent: kept.persistent,
      mailer,
      clock,
      random,
      log,
      siteUrl,
      confirmationsPerDay: settings.budgets.confirmationsPerDay,
      onExhausted() {
        metrics.confirmationRefused()
        if (!confirmationsExhausted())
          log.warn(
            'confirmations_exhausted',
            'the platform has mailed as many confirmations as EMAIL_CONFIRMATIONS_PER_DAY allows in 24 hours',
          )
        exhaustedAt = clock.monotonic()
      },
      again: async (...asked) => (await transactionalMail()).again(...asked),
      ...(await keys()),
      ...(pacer && { pace: pacer }),
      held,
      async isPaused() {
        await tally.flush()
        const pause = await kept.sending.check(clock.now())
        if (pause) log.warn('courses_paused', `courses are paused: ${pause.reason}`)
        return pause !== undefined
      },
    })
    return { ...opened, dispatch: metrics.dispatch(opened.dispatch) }
  })
  const openKept = async (opened: Awaited<ReturnType<typeof store>>): Promise<KeptMail> => ({
    sentMail: opened.sentMail,
    addressKey: (await keys()).addressKey.reveal(),
    queue: opened.persistent ? { refusal: mailer.refusal, wake: (await course()).wake } : undefined,
  })
  const keptMail = async () => {
    const opened = (await isKept()) ? await store() : undefined
    return opened?.persistent ? openKept(opened) : undefined
  }
  const transactionalMail: Once<TransactionalMail> = once(async () => {
    const opened = await store()
    return openTransactionalMail(mailer, await openKept(opened), {
      mails: platform.mails,
      directory: directory ?? opened.directory,
      held,
      async confirmAgain(email) {
        const address = parseAddress(email)
        const answer = address.ok ? await (await course()).confirmAgain(address.identity) : undefined
        return answer === undefined || answer.kind === 'none' ? { kind: 'not_found' } : answer
      },
      siteUrl,
      clock,
    })
  })
  return { course, transactionalMail, keptMail, confirmationsExhausted }
}

/** Asked before each notice, so that a fan-out asks the store once in a while only. */
const SILENCE_ASKED_MS = 1000

function openSilence(incidents: IncidentStore, clock: Clock): () => Promise<number | undefined> {
  const silence = recent(SILENCE_ASKED_MS, clock.monotonic, () => incidents.silenceAt(clock.now()))
  return async () => (await silence())?.until
}
