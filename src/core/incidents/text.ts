import { lengths } from '../messages/words.ts'
import { nextStep, type Places } from '../next-step.ts'
import type { MessageKind, StoredIncident } from './incident.ts'

/** Text of one alert, for every channel. */
export interface AlertText {
  readonly title: string
  readonly lines: readonly string[]
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

const duration = lengths({
  units: [
    ['day', 'days'],
    ['hour', 'hours'],
    ['minute', 'minutes'],
    ['second', 'seconds'],
  ],
  none: 'less than a second',
})
const minute = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

export function alertText({
  incident,
  kind,
  advice,
  platform,
  isService,
  places,
}: {
  readonly incident: StoredIncident
  readonly kind: MessageKind
  readonly advice: Advice
  /** What the daemon was started with, for the commands of the text. */
  readonly places?: Places | undefined
  /** The platform's name. */
  readonly platform: string
  readonly isService: (name: string) => boolean
}): AlertText {
  const { service, affected, reason, openedAt, closedAt, acknowledgedBy, seenAt } = incident
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
  if (kind === 'closed')
    return {
      title: about(ended),
      lines: [`It lasted ${duration((closedAt ?? seenAt) - openedAt)}, since ${minute(openedAt)}.`],
    }
  if (kind === 'acknowledged')
    return {
      title: about(`is being looked at by ${acknowledgedBy ?? 'somebody'}`),
      lines: [`Since: ${minute(openedAt)}. No reminders follow.`],
    }
  return {
    title: about(kind === 'opened' ? is : still),
    lines: [
      ...(reason === undefined ? [] : [`Cause: ${reason}.`]),
      `Since: ${minute(openedAt)}.`,
      ...(affected.length === 0 ? [] : [`Also failing for this cause: ${affected.join(', ')}.`]),
      `What it means: ${advice.means}.`,
      `Start with: ${pasted(advice.command)}`,
      `Runbook: ${advice.runbook}`,
      `Acknowledge: ${pasted(`platformctl alert ack ${incident.id}`)}`,
    ],
  }
}
