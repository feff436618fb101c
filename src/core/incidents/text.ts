import { lengths } from '../messages/words.ts'
import { nextStep, type Places } from '../next-step.ts'
import type { MessageKind, StoredIncident } from './incident.ts'

/** Text of one alert, for every channel. */
export interface AlertText {
  readonly title: string
  readonly lines: readonly string[]
  /** The status page; undefined where its address is not set. */
  readonly link?: string | undefined
}

/**
 * Advice for operators about a cause: its name, the effect of its failure, the command to start with, and the runbook.
 */
export interface Advice {
  readonly label: string
  /**
   * How a message describes the cause when it begins, while it lasts and when it has ended; the default is
   * `is failing`.
   */
  readonly words?: { readonly is: string; readonly still: string; readonly ended: string }
  readonly means: string
  readonly command: string
  readonly runbook: string
}

export const duration = lengths({
  units: [
    ['day', 'days'],
    ['hour', 'hours'],
    ['minute', 'minutes'],
    ['second', 'seconds'],
  ],
  none: 'less than a second',
})
export const minute = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

/** Longer, and the limits of a service would cut off the commands below it. */
const LONGEST_FACT = 300

/** What others wrote, as part of one line: no line ends, nothing that turns the direction of what follows. */
function quoted(text: string): string {
  const line = text.replace(/[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]+/gu, ' ')
  return line.length <= LONGEST_FACT ? line : `${line.slice(0, LONGEST_FACT - 1)}…`.toWellFormed()
}

export function alertText(input: AlertInput): AlertText {
  const { title, lines } = wordsOf(input)
  const { link } = input
  return { title, lines: link === undefined ? lines : [...lines, `Status page: ${link}`], link }
}

interface AlertInput {
  readonly incident: StoredIncident
  readonly kind: MessageKind
  readonly advice: Advice
  /** What the daemon was started with, for the commands of the text. */
  readonly places?: Places | undefined
  /** The platform's name. */
  readonly platform: string
  readonly isService: (name: string) => boolean
  /** The status page. */
  readonly link?: string | undefined
}

function wordsOf({ incident, kind, advice, platform, isService, places }: AlertInput): AlertText {
  const { service, affected, reason, openedAt, closedAt, acknowledgedBy, seenAt } = incident
  const { resolvedBy, resolvedReason } = incident
  const { is, still, ended } = advice.words ?? {
    is: 'is failing',
    still: 'is still failing',
    ended: 'works again',
  }
  const pasted = (command: string) => (places === undefined ? command : nextStep(command, places))
  // A condition concerns the whole platform, not one service.
  const services = [service, ...affected.filter(isService)].join(', ')
  const name = advice.words ? advice.label : `${advice.label} (${services})`
  const about = (what: string) => `${platform}: ${name} ${what}`
  if (kind === 'test')
    return {
      title: `${platform}: test alert`,
      lines: ['Nothing is wrong. Alerts of this platform arrive here.'],
    }
  const lasted = `It lasted ${duration((closedAt ?? seenAt) - openedAt)}, since ${minute(openedAt)}.`
  if (kind === 'closed' && resolvedBy !== undefined)
    return {
      title: `${platform}: ${name}: resolved by ${quoted(resolvedBy)}`,
      lines: [
        ...(resolvedReason === undefined ? [] : [`Reason: ${quoted(resolvedReason)}.`]),
        lasted,
        'If it still fails, an alert follows within minutes.',
      ],
    }
  if (kind === 'closed')
    return {
      title: about(ended),
      lines: [lasted],
    }
  if (kind === 'acknowledged')
    return {
      title: about(`is being looked at by ${quoted(acknowledgedBy ?? 'somebody')}`),
      lines: [`Since: ${minute(openedAt)}. No reminders follow.`],
    }
  return {
    title: about(kind === 'opened' ? is : still),
    lines: [
      ...(reason === undefined ? [] : [`Cause: ${quoted(reason)}.`]),
      `Since: ${minute(openedAt)}.`,
      ...(affected.length === 0 ? [] : [`Also failing for this cause: ${quoted(affected.join(', '))}.`]),
      `What it means: ${advice.means}.`,
      `Start with: ${pasted(advice.command)}`,
      `Runbook: platformctl runbook ${advice.runbook}`,
      `Acknowledge: ${pasted(`platformctl alert ack ${incident.id}`)}`,
    ],
  }
}
