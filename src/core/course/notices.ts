import { messageEngine, type QueuedMessage } from '../delivery/messages.ts'
import { isOutcome, NOTICE } from '../delivery/retries.ts'
import { DAY_MS } from '../durations.ts'
import type { Notice } from '../incidents/incident.ts'
import type { Pacer } from '../mail/feedback/pacer.ts'
import type { Mail } from '../mail/mailer.ts'
import { NOTICES } from './definition.ts'
import { outcomeFields } from './history.ts'
import type { CourseHost } from './host.ts'
import { unsubscribeBy } from './links.ts'

const NOTICE_MAIL = 'status-notice'
export const NOTICE_CONFIRMATION_MAIL = 'status-confirmation'

/** A notice is news for this long. */
export const NOTICE_LIFE_MS = 3 * DAY_MS

export interface NoticesOptions {
  readonly pace?: Pick<Pacer, 'places' | 'giveBack'> | undefined
  /** Whether an operator silenced what incidents cause; what operators say is mailed all the same. */
  readonly isSilent: () => Promise<boolean>
  readonly slots: (notice: Notice, language: string | undefined) => Readonly<Record<string, string>>
}

/** Mails notices from the rows that their causes leave, to each subscriber one after the other. */
export function createNotices(host: CourseHost, { pace, isSilent, slots }: NoticesOptions) {
  const { clock, store, mailer, siteUrl, keys } = host
  /** The notice as things are now; undefined: its subscriber has left, it was withdrawn, or what failed works again. */
  const current = ({ id }: QueuedMessage) => store.noticeMail({ id, now: clock.now() })
  // What an older build handed over keeps the name by which the provider recognizes a repeat.
  const nameOf = ({ key: about, payload }: QueuedMessage): Pick<Mail, 'template' | 'label' | 'about'> => ({
    template: NOTICE_MAIL,
    about,
    ...(JSON.parse(payload) as Partial<Pick<Mail, 'label' | 'about'>>),
  })
  const engine = messageEngine(host, {
    stream: NOTICE,
    pace,
    isQuiet: isSilent,
    // Its turn within the pace may have come long after it was composed.
    async lastLook(message) {
      const isQuiet = await isSilent()
      const found = await current(message)
      if (found === undefined) return { kind: 'over' }
      return isQuiet && found.notice.kind !== 'announced' ? { kind: 'untried' } : undefined
    },
    async mailOf(message) {
      const found = await current(message)
      if (found === undefined) return undefined
      const { id, enrolment, language } = found
      const unsubscribing = unsubscribeBy(siteUrl, keys, { id, enrolment, course: NOTICES, language })
      return {
        ...nameOf(message),
        ...unsubscribing,
        stream: 'notice',
        language,
        slots: { ...slots(found.notice, language), ...unsubscribing.slots },
        to: { name: undefined, address: message.address },
        date: new Date(message.createdAt),
      }
    },
    expired: 'it was news no more before it could be mailed',
    settlementOf(settlement, { claim, delivery, now: at }) {
      if (!isOutcome(delivery)) return settlement
      const about = { messageId: mailer.messageId(nameOf(claim)), ...outcomeFields(delivery) }
      return { ...settlement, entry: { at, kind: 'notice', enrolment: 0, day: 0, ...about } }
    },
  })
  return {
    async wake(): Promise<number> {
      let all = 0
      // A subscriber’s next notice can be claimed once the one before is recorded.
      for (let sent = 1; sent > 0; all += sent) sent = await engine.wake()
      return all
    },
  }
}
