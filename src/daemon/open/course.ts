import { parseAddress } from '../../core/address.ts'
import { type Once, once, recent } from '../../core/calls.ts'
import { openCatalog } from '../../core/course/catalog.ts'
import { type Course, openCourse } from '../../core/course/open.ts'
import { HOUR_MS } from '../../core/durations.ts'
import type { Settings } from '../../core/env/settings.ts'
import type { Host } from '../../core/host.ts'
import { type Notice, saidIn } from '../../core/incidents/incident.ts'
import { type NOTICE_SLOTS, translationName } from '../../core/mail/definition.ts'
import { readLessonTexts } from '../../core/mail/folder-mails.ts'
import type { KeptMail } from '../../core/mail/send-once.ts'
import { inLanguage } from '../../core/mail/template.ts'
import { openTransactionalMail, type TransactionalMail } from '../../core/mail/transactional.ts'
import { timesIn } from '../../core/messages/words.ts'
import type { ResolvedPlatform } from '../../core/platform.ts'
import { shortened } from '../../core/sentences.ts'
import { createLabels, headline } from '../../core/status/words.ts'
import type { OpenOptions } from '../embedding.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { openMail } from './mail.ts'
import type { Stores } from './stores.ts'

/** The longest announcement that a mail holds whole; the status page has the rest. */
const LONGEST = 480
const SILENCE_ASKED_MS = 1000

/** Text of a notice for visitors, in their language if the mail around it is, so that no mail mixes two. */
export function noticeSlots(
  platform: ResolvedPlatform,
  siteUrl: string,
  { kind, at: now, facts }: Notice,
  wanted = platform.language,
): Readonly<Record<Exclude<keyof typeof NOTICE_SLOTS, 'unsubscribeUrl'>, string>> {
  const isWritten = (tag: string) =>
    platform.mails.definitions.some(({ name }) => name === translationName(tag, 'status-notice'))
  const language = inLanguage(isWritten, wanted) ?? platform.language
  const labels = createLabels({ ...platform, language })
  const { notices: T, status, language: spoken } = labels.messages
  const name = oneLine(platform.name)
  const { cause = '', from, until } = facts
  const text = oneLine(saidIn(facts, language))
  const { moment: at, span } = timesIn(spoken)
  const statusUrl = `${siteUrl}/${wanted === platform.language ? '' : `?language=${encodeURIComponent(wanted)}`}`
  const what = oneLine(labels.probe(cause))
  const since = T.since(at(from))
  const slots = (title: string, text: string, when: string) => ({ title, text, when, statusUrl })
  if (kind === 'opened')
    return slots(T.openedTitle(name, what), T.opened(what, T.means[cause] ?? T.meansOther), since)
  if (kind === 'closed' && facts.isGone) return slots(T.goneTitle(name, what), T.gone(what), since)
  if (kind === 'closed') {
    const when = until === undefined ? since : T.lasted(at(from), at(until), until - from)
    return slots(T.closedTitle(name, what), T.closed(what), when)
  }
  if (facts.about !== undefined) {
    const when = `${status.updateStates[facts.state ?? 'update']}, ${at(from)}.`
    return slots(T.updateTitle(name, cause === '' ? undefined : what), text, when)
  }
  const current = until === undefined ? since : span(from, until)
  const when = from <= now ? current : status.planned(at(from), until === undefined ? undefined : at(until))
  return slots(T.announcedTitle(name, headline(text)), text, when)
}

/** Text from anywhere as a slot takes it: one line, without control characters and those for right-to-left text. */
const oneLine = (text: string) =>
  shortened(text.replaceAll(/[\s\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim(), LONGEST).toWellFormed()

/** The courses and the transactional mails over one store and mailer, opened when first asked for. */
export function openCoursePart(
  { clock, timer, random, log }: Host,
  { platform, directory, history }: OpenOptions,
  settings: Settings,
  { store, keys, isKept }: Stores,
  { mailer, pacer, tally, held }: ReturnType<typeof openMail>,
  metrics: Metrics,
) {
  const { siteUrl } = settings.site
  let exhaustedAt = Number.NEGATIVE_INFINITY
  /** The budget of confirmations was found used up within the last hour. */
  const confirmationsExhausted = () => clock.monotonic() - exhaustedAt < HOUR_MS
  const course: Once<Course> = once(async () => {
    const kept = await store()
    // Asked before each notice: a fan-out asks the store once in a while only.
    const silence = recent(SILENCE_ASKED_MS, clock.monotonic, () => kept.incidents.silenceAt(clock.now()))
    const opened = openCourse({
      catalog: await openCatalog(platform.courses, {
        texts: platform.mails.texts ?? (() => readLessonTexts(platform.mails)),
        log,
      }),
      notices: {
        isSilent: async () => (await silence()) !== undefined,
        slots: (notice, language) => noticeSlots(platform, siteUrl, notice, language),
      },
      store: kept.course,
      persistent: kept.persistent,
      mailer,
      clock,
      random,
      log,
      siteUrl,
      limit: settings.dispatch.limit,
      confirmationsPerDay: settings.budgets.confirmationsPerDay,
      onExhausted() {
        metrics.series.platformctl_confirmations_refused_total.inc()
        if (!confirmationsExhausted())
          log.warn(
            'confirmations_exhausted',
            'the platform has mailed as many confirmations as EMAIL_CONFIRMATIONS_PER_DAY allows in 24 hours',
          )
        exhaustedAt = clock.monotonic()
      },
      again: async (...asked) => (await transactionalMail()).again(...asked),
      ownDirectory: directory !== undefined,
      ...(await keys()),
      ...(pacer && { pace: pacer }),
      held,
      isAlone: history === undefined,
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
    timer,
  })
  /** Where mails are kept to be sent for certain; undefined while nothing outlives the process. */
  const keptMail = async () => {
    const opened = (await isKept()) ? await store() : undefined
    return opened?.persistent ? openKept(opened) : undefined
  }
  const transactionalMail: Once<TransactionalMail> = once(async () => {
    const opened = await store()
    return openTransactionalMail(mailer, await openKept(opened), {
      mails: platform.mails,
      directory: directory ?? opened.directory,
      ownDirectory: directory !== undefined,
      held,
      async confirmAgain(email) {
        const address = parseAddress(email)
        const answer = address.ok ? await (await course()).confirmAgain(address.identity) : undefined
        return answer === undefined || answer.kind === 'none' ? { kind: 'not_found' } : answer
      },
      value: settings.value,
      siteUrl,
      clock,
      log,
    })
  })
  return { course, transactionalMail, keptMail, confirmationsExhausted }
}
