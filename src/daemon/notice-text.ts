import type { Notice } from '../core/course/notices.ts'
import type { NOTICE_SLOTS } from '../core/mail/definition.ts'
import type { ResolvedPlatform } from '../core/platform.ts'
import { createLabels } from '../core/status/words.ts'
import { momentText } from './pages/status/format.ts'

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
  const { cause = '', text = '', from, until } = facts
  const at = (ms: number) => momentText(messages, ms)
  const statusUrl = `${siteUrl}/`
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
      return {
        title: T.announcedTitle(name),
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
